#include <algorithm>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/vector_math.h"
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/routing.h"

namespace alpa::ops {
namespace {

struct Routing {
  std::int64_t groups, tokens, experts;

  explicit Routing(const TensorType& logits)
      : groups(logits.shape[0]), tokens(logits.shape[1]), experts(logits.shape[2]) {}
  std::int64_t all_tokens() const { return groups * tokens; }
};

/// The experts of the `choices` largest logits, the largest first, the lower expert where two are equal.
template <class T>
void choose(const T* logits, std::int64_t experts, std::int64_t choices, std::int32_t* chosen) {
  for (std::int64_t j = 0; j < choices; ++j) {
    std::int64_t best = -1;
    for (std::int64_t e = 0; e < experts; ++e) {
      if (std::find(chosen, chosen + j, static_cast<std::int32_t>(e)) != chosen + j) continue;
      if (best < 0 || to_float(logits[e]) > to_float(logits[best])) best = e;
    }
    chosen[j] = static_cast<std::int32_t>(best);
  }
}

/// What softmax divides by, for logits shifted by `largest`.
template <class T>
float sum_of_exp(const T* logits, float largest, std::int64_t experts) {
  float sum = 0;
  for (std::int64_t e = 0; e < experts; ++e) sum += fast_exp(to_float(logits[e]) - largest);
  return sum;
}

/// The weights of one token's choices.
template <class T>
void weigh(const T* logits, std::int64_t experts, std::int64_t choices, bool normalize,
           const std::int32_t* chosen, float* weights) {
  const float largest = to_float(logits[chosen[0]]);
  float sum = 0;
  for (std::int64_t j = 0; j < choices; ++j)
    sum += weights[j] = fast_exp(to_float(logits[chosen[j]]) - largest);
  if (!normalize) sum = sum_of_exp(logits, largest, experts);
  for (std::int64_t j = 0; j < choices; ++j) weights[j] /= sum;
}

/// Softmax's gradient: gate * (d gate - sum of gates * d gates), over the chosen experts alone where the
/// weights were normalised.
template <class T>
void weigh_gradient(const T* logits, std::int64_t experts, std::int64_t choices, bool normalize,
                    const float* dweights, T* dlogits) {
  std::int32_t chosen[kMostChoices] = {};
  float weights[kMostChoices] = {};
  choose(logits, experts, choices, chosen);
  weigh(logits, experts, choices, normalize, chosen, weights);
  float product = 0;
  for (std::int64_t j = 0; j < choices; ++j) product += weights[j] * dweights[j];
  const float largest = to_float(logits[chosen[0]]);
  const float scale = normalize ? 0.0f : -product / sum_of_exp(logits, largest, experts);
  for (std::int64_t e = 0; e < experts; ++e)
    dlogits[e] = from_float<T>(scale == 0.0f ? 0.0f : scale * fast_exp(to_float(logits[e]) - largest));
  for (std::int64_t j = 0; j < choices; ++j)
    dlogits[chosen[j]] = from_float<T>(weights[j] * (dweights[j] - product));
}

/// The share of a group's first choices that went to each expert, times the number of experts.
template <class T>
void shares_of(const T* logits, const Routing& r, float* shares) {
  std::fill(shares, shares + r.experts, 0.0f);
  const float part = static_cast<float>(r.experts) / static_cast<float>(r.tokens);
  for (std::int64_t s = 0; s < r.tokens; ++s) {
    std::int32_t first = 0;
    choose(logits + s * r.experts, r.experts, 1, &first);
    shares[first] += 1.0f;
  }
  for (std::int64_t e = 0; e < r.experts; ++e) shares[e] *= part;
}

/// sum of gates * shares for one token; `sum` is left as what softmax divides by.
template <class T>
float weighted_share(const T* logits, const float* shares, std::int64_t experts, float largest, float& sum) {
  float weighted = 0;
  sum = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    const float gate = fast_exp(to_float(logits[e]) - largest);
    sum += gate;
    weighted += gate * shares[e];
  }
  return weighted / sum;
}

template <class T>
float largest_of(const T* logits, std::int64_t experts) {
  float largest = to_float(logits[0]);
  for (std::int64_t e = 1; e < experts; ++e) largest = std::max(largest, to_float(logits[e]));
  return largest;
}

/// Replaces the experts in `slots` by their slots.
void take_places(std::int32_t* slots, std::int64_t tokens, std::int64_t choices, std::int32_t capacity,
                 std::int32_t* taken, std::int64_t experts) {
  std::fill(taken, taken + experts, 0);
  for (std::int64_t j = 0; j < choices; ++j)
    for (std::int64_t s = 0; s < tokens; ++s) {
      std::int32_t& slot = slots[s * choices + j];
      const std::int32_t expert = slot, place = taken[expert]++;
      slot = place < capacity ? expert * capacity + place : -1;
    }
}

}  // namespace

std::unique_ptr<Kernel> top_k_slots_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->i")) return nullptr;
  const Routing r(shape.operands[0]);
  const std::int64_t choices = shape.results[0].shape[2];
  const auto capacity = static_cast<std::int32_t>(shape.attributes.integer("capacity"));
  std::vector<std::int32_t> taken(static_cast<std::size_t>(r.groups * r.experts));
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, taken = std::move(taken)](const KernelCall& call) mutable {
      const T* logits = call.operand<T>(0);
      std::int32_t *slots = call.result<std::int32_t>(0), *places = taken.data();
      for_ranges(r.all_tokens(), row_grain(r.experts), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t s = begin; s < end; ++s)
          choose(logits + s * r.experts, r.experts, choices, slots + s * choices);
      });
      for_ranges(r.groups, row_grain(r.tokens * choices), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t g = begin; g < end; ++g)
          take_places(slots + g * r.tokens * choices, r.tokens, choices, capacity, places + g * r.experts,
                      r.experts);
      });
    });
  });
}

std::unique_ptr<Kernel> top_k_weights_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->f")) return nullptr;
  const Routing r(shape.operands[0]);
  const std::int64_t choices = shape.results[0].shape[2];
  const bool normalize = shape.attributes.integer("normalize", 1) != 0;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* logits = call.operand<T>(0);
      float* weights = call.result<float>(0);
      for_ranges(r.all_tokens(), row_grain(r.experts), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t s = begin; s < end; ++s) {
          std::int32_t chosen[kMostChoices] = {};
          choose(logits + s * r.experts, r.experts, choices, chosen);
          weigh(logits + s * r.experts, r.experts, choices, normalize, chosen, weights + s * choices);
        }
      });
    });
  });
}

std::unique_ptr<Kernel> top_k_weights_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tf->t")) return nullptr;
  const Routing r(shape.operands[0]);
  const std::int64_t choices = shape.operands[1].shape[2];
  const bool normalize = shape.attributes.integer("normalize", 1) != 0;
  return for_type(shape.operands[0].dtype, [=](auto zero) {
    using T = decltype(zero);
    return host_kernel([=](const KernelCall& call) {
      const T* logits = call.operand<T>(0);
      const float* dweights = call.operand<float>(1);
      T* dlogits = call.result<T>(0);
      for_ranges(r.all_tokens(), row_grain(r.experts), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t s = begin; s < end; ++s)
          weigh_gradient(logits + s * r.experts, r.experts, choices, normalize, dweights + s * choices,
                         dlogits + s * r.experts);
      });
    });
  });
}

std::unique_ptr<Kernel> balance_loss_cpu(const KernelShape& shape) {
  if (!types_match(shape, "t->f")) return nullptr;
  const Routing r(shape.operands[0]);
  std::vector<float> all_shares(static_cast<std::size_t>(r.groups * r.experts));
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, all_shares = std::move(all_shares)](const KernelCall& call) mutable {
      const T* logits = call.operand<T>(0);
      float *losses = call.result<float>(0), *of_groups = all_shares.data();
      for_ranges(r.groups, row_grain(r.tokens * r.experts), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t g = begin; g < end; ++g) {
          const T* group = logits + g * r.tokens * r.experts;
          float *shares = of_groups + g * r.experts, sum = 0;
          shares_of(group, r, shares);
          for (std::int64_t s = 0; s < r.tokens; ++s) {
            const T* token = group + s * r.experts;
            losses[g * r.tokens + s] =
                weighted_share(token, shares, r.experts, largest_of(token, r.experts), sum);
          }
        }
      });
    });
  });
}

std::unique_ptr<Kernel> balance_loss_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, "tf->t")) return nullptr;
  const Routing r(shape.operands[0]);
  std::vector<float> all_shares(static_cast<std::size_t>(r.groups * r.experts));
  return for_type(shape.operands[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return host_kernel([=, all_shares = std::move(all_shares)](const KernelCall& call) mutable {
      const T* logits = call.operand<T>(0);
      const float* dlosses = call.operand<float>(1);
      T* dlogits = call.result<T>(0);
      float* of_groups = all_shares.data();
      for_ranges(r.groups, row_grain(r.tokens * r.experts), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t g = begin; g < end; ++g) {
          float* shares = of_groups + g * r.experts;
          shares_of(logits + g * r.tokens * r.experts, r, shares);
          for (std::int64_t s = g * r.tokens; s < (g + 1) * r.tokens; ++s) {
            const T* token = logits + s * r.experts;
            const float largest = largest_of(token, r.experts);
            float sum = 0;
            const float mean = weighted_share(token, shares, r.experts, largest, sum);
            for (std::int64_t e = 0; e < r.experts; ++e)
              dlogits[s * r.experts + e] = from_float<T>(dlosses[s] * fast_exp(to_float(token[e]) - largest) /
                                                         sum * (shares[e] - mean));
          }
        }
      });
    });
  });
}

}  // namespace alpa::ops
