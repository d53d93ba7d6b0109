#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/kernels/reference_call.h"

namespace alpa {
namespace {

/// Of a group of tokens: [g s e] of the logits, in operand 0.
struct Logits {
  const Values& values;
  std::size_t groups, tokens, experts;

  explicit Logits(const ReferenceCall& c)
      : values(c.in[0]), groups(c.extent(0, 0)), tokens(c.extent(0, 1)), experts(c.extent(0, 2)) {}

  double at(std::size_t token, std::size_t expert) const { return values[token * experts + expert]; }

  Values gates(std::size_t token) const {
    Values gates;
    double sum = 0;
    for (std::size_t e = 0; e < experts; ++e) sum += std::exp(at(token, e));
    for (std::size_t e = 0; e < experts; ++e) gates.push_back(std::exp(at(token, e)) / sum);
    return gates;
  }

  /// All experts, those of the largest logits first.
  std::vector<std::size_t> ranking(std::size_t token) const {
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return at(token, a) > at(token, b); });
    return order;
  }

  /// The share of first choices in group g that went to each expert.
  Values shares(std::size_t g) const {
    Values shares(experts, 0.0);
    for (std::size_t s = 0; s < tokens; ++s)
      shares[ranking(g * tokens + s)[0]] += 1 / static_cast<double>(tokens);
    return shares;
  }
};

/// The index of a slot's first number among the experts' rows [e g c d] of that width.
std::size_t row_at(double slot, std::size_t g, std::size_t groups, std::size_t capacity, std::size_t width) {
  const auto index = static_cast<std::size_t>(slot);
  return ((index / capacity * groups + g) * capacity + index % capacity) * width;
}

/// visit(position in the slots, index of a token's first number, index of its row's) for all that are not
/// dropped.
template <class Visit>
void for_routes(const ReferenceCall& c, std::size_t slots, std::size_t capacity, std::size_t width,
                Visit visit) {
  const std::size_t groups = c.extent(slots, 0), tokens = c.extent(slots, 1), choices = c.extent(slots, 2);
  for (std::size_t i = 0; i < c.in[slots].size(); ++i)
    if (c.in[slots][i] >= 0)
      visit(i, i / choices * width, row_at(c.in[slots][i], i / choices / tokens, groups, capacity, width));
}

}  // namespace

ReferenceResults top_k_slots_reference(const ReferenceCall& c) {
  const Logits logits(c);
  const auto choices = static_cast<std::size_t>(c.attributes.integer("size_k"));
  const double capacity = static_cast<double>(c.attributes.integer("capacity"));
  Values slots(logits.groups * logits.tokens * choices);
  for (std::size_t g = 0; g < logits.groups; ++g) {
    Values taken(logits.experts, 0.0);
    for (std::size_t j = 0; j < choices; ++j)
      for (std::size_t token = g * logits.tokens; token < (g + 1) * logits.tokens; ++token) {
        const std::size_t expert = logits.ranking(token)[j];
        const double place = taken[expert]++;
        slots[token * choices + j] = place < capacity ? static_cast<double>(expert) * capacity + place : -1;
      }
  }
  return {slots};
}

ReferenceResults top_k_weights_reference(const ReferenceCall& c) {
  const Logits logits(c);
  const auto choices = static_cast<std::size_t>(c.attributes.integer("size_k"));
  Values weights;
  for (std::size_t token = 0; token < logits.groups * logits.tokens; ++token) {
    const Values gates = logits.gates(token);
    const std::vector<std::size_t> ranking = logits.ranking(token);
    double sum = 0;
    for (std::size_t j = 0; j < choices; ++j) sum += gates[ranking[j]];
    for (std::size_t j = 0; j < choices; ++j)
      weights.push_back(gates[ranking[j]] / (c.attributes.integer("normalize", 1) ? sum : 1));
  }
  return {weights};
}

/// By the Jacobian: d gate_i / d logit_j = gate_i ((i = j) - gate_j).
ReferenceResults top_k_weights_grad_reference(const ReferenceCall& c) {
  const Logits logits(c);
  const std::size_t choices = c.extent(1, 2);
  Values dlogits;
  for (std::size_t token = 0; token < logits.groups * logits.tokens; ++token) {
    const Values gates = logits.gates(token);
    const std::vector<std::size_t> ranking = logits.ranking(token);
    double sum = 0, weighted = 0;
    for (std::size_t j = 0; j < choices; ++j) {
      sum += gates[ranking[j]];
      weighted += gates[ranking[j]] * c.in[1][token * choices + j];
    }
    Values dgates(logits.experts, 0.0);
    for (std::size_t j = 0; j < choices; ++j) {
      const double dweight = c.in[1][token * choices + j];
      dgates[ranking[j]] =
          c.attributes.integer("normalize", 1) ? dweight / sum - weighted / (sum * sum) : dweight;
    }
    for (std::size_t j = 0; j < logits.experts; ++j) {
      double d = 0;
      for (std::size_t i = 0; i < logits.experts; ++i) d += dgates[i] * gates[i] * ((i == j) - gates[j]);
      dlogits.push_back(d);
    }
  }
  return {dlogits};
}

ReferenceResults balance_loss_reference(const ReferenceCall& c) {
  const Logits logits(c);
  Values losses;
  for (std::size_t token = 0; token < logits.groups * logits.tokens; ++token) {
    const Values gates = logits.gates(token), shares = logits.shares(token / logits.tokens);
    double loss = 0;
    for (std::size_t e = 0; e < logits.experts; ++e)
      loss += static_cast<double>(logits.experts) * gates[e] * shares[e];
    losses.push_back(loss);
  }
  return {losses};
}

ReferenceResults balance_loss_grad_reference(const ReferenceCall& c) {
  const Logits logits(c);
  Values dlogits;
  for (std::size_t token = 0; token < logits.groups * logits.tokens; ++token) {
    const Values gates = logits.gates(token), shares = logits.shares(token / logits.tokens);
    for (std::size_t j = 0; j < logits.experts; ++j) {
      double d = 0;
      for (std::size_t e = 0; e < logits.experts; ++e)
        d += static_cast<double>(logits.experts) * shares[e] * gates[e] * ((e == j) - gates[j]);
      dlogits.push_back(d * c.in[1][token]);
    }
  }
  return {dlogits};
}

ReferenceResults dropped_reference(const ReferenceCall& c) {
  Values counts(c.extent(0, 0) * c.extent(0, 1));
  for (std::size_t i = 0; i < c.in[0].size(); ++i) counts[i / c.extent(0, 2)] += c.in[0][i] < 0;
  return {counts};
}

ReferenceResults dispatch_reference(const ReferenceCall& c) {
  const std::size_t width = c.width(0), capacity = static_cast<std::size_t>(c.attributes.integer("size_c"));
  Values rows(static_cast<std::size_t>(c.attributes.integer("size_e")) * c.extent(0, 0) * capacity * width);
  for_routes(c, 1, capacity, width, [&](std::size_t i, std::size_t token, std::size_t row) {
    const double weight = c.in.size() == 3 ? c.in[2][i] : 1;
    for (std::size_t d = 0; d < width; ++d) rows[row + d] = weight * c.in[0][token + d];
  });
  return {rows};
}

ReferenceResults combine_reference(const ReferenceCall& c) {
  const std::size_t width = c.width(0);
  Values tokens(c.extent(1, 0) * c.extent(1, 1) * width);
  for_routes(c, 1, c.extent(0, 2), width, [&](std::size_t i, std::size_t token, std::size_t row) {
    const double weight = c.in.size() == 3 ? c.in[2][i] : 1;
    for (std::size_t d = 0; d < width; ++d) tokens[token + d] += weight * c.in[0][row + d];
  });
  return {tokens};
}

ReferenceResults combine_grad_weights_reference(const ReferenceCall& c) {
  const std::size_t width = c.width(0);
  Values dweights(c.in[2].size());
  for_routes(c, 2, c.extent(1, 2), width, [&](std::size_t i, std::size_t token, std::size_t row) {
    for (std::size_t d = 0; d < width; ++d) dweights[i] += c.in[0][token + d] * c.in[1][row + d];
  });
  return {dweights};
}

}  // namespace alpa
