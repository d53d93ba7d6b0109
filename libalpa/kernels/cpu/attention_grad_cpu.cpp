#include "libalpa/kernels/cpu/attention_cpu.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/vector_math.h"

namespace alpa::ops {
namespace {

constexpr std::int64_t kTileStride = AttentionScratch::kKeyBlock;

/// With p = softmax row and dp = the gradient of its entries: `weights` becomes p, `gradient` p * (dp -
/// delta) * scale, the gradient of the products of query and key, both 0 but in [from, visible). What is in
/// `scores` and `dp` is lost.
template <class Element>
void gradient_row(float* scores, float* dp, std::int64_t from, std::int64_t visible, std::int64_t count,
                  float scale, float log_sum, float delta, Element* weights, Element* gradient) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float p = fast_exp_of_softmax(scores[i] * scale - log_sum);
    scores[i] = i < visible ? p : 0.0f;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float d = scores[i] * (dp[i] - delta) * scale;
    dp[i] = i < visible ? d : 0.0f;
  }
  std::fill(scores, scores + from, 0.0f);
  std::fill(dp, dp + from, 0.0f);
  round_row(scores, weights, count);
  round_row(dp, gradient, count);
}

template <class T>
float dot(const T* x, const T* y, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += to_float(x[i]) * to_float(y[i]);
  return sum;
}

/// attention_grad of one call, worked off in tasks. A task of a whole key head makes all three gradients from
/// each tile of scores; where key heads are too few for the threads, one round of tasks makes the gradient of
/// a block of queries each and a second one those of a block of keys, at the price of computing the scores
/// twice. T: of the tensors, Element: of what is multiplied.
template <class T, class Element>
class Gradient {
 public:
  Gradient(const AttentionExtents& extents, const AttentionScratch& scratch, const KernelCall& call)
      : e_(extents),
        scratch_(scratch),
        call_(call),
        first_keys_(call, 6, 2, extents),
        position_(query_position(call.operands[1], call.operands[2])) {}

  void run() const {
    const std::int64_t key_heads = e_.batch * e_.groups;
    const auto tasks = [this](std::int64_t count, const auto& body) {
      for_tasks(count, 5 * e_.flops(), scratch_, call_.workspace,
                [&](std::int64_t task, float* own) { body(task, Scratch(scratch_, own)); });
    };
    // Seven products instead of five, against threads that have no key head left to work on.
    const std::int64_t threads = host_threads(), rounds = (key_heads + threads - 1) / threads;
    if (5 * rounds * threads <= 7 * key_heads) {
      tasks(key_heads, [this](std::int64_t task, const Scratch& own) { whole_key_head(task, own); });
      return;
    }
    tasks(e_.batch * e_.heads * e_.query_blocks(),
          [this](std::int64_t task, const Scratch& own) { query_block(task, own); });
    tasks(key_heads * e_.key_blocks(),
          [this](std::int64_t task, const Scratch& own) { key_block(task, own); });
  }

 private:
  static constexpr std::int64_t kQueries = AttentionScratch::kQueryBlock, kKeys = AttentionScratch::kKeyBlock;

  /// One worker's memory.
  struct Scratch {
    float *scores, *dp, *deltas, *log_sums, *query, *doutput, *key, *value, *dkey, *dvalue, *dquery;
    Element *weights, *gradient;  ///< tiles of the softmax and of the scores' gradient

    Scratch(const AttentionScratch& s, float* own)
        : scores(own),
          dp(own + s.tiles / 2),
          deltas(own + s.tiles),
          log_sums(deltas + kQueries),
          query(own + s.tiles + s.row_values),
          doutput(query + s.query_blocks / 2),
          key(query + s.query_blocks),
          value(key + s.key_block),
          dkey(key + s.key_values),
          dvalue(dkey + s.key_block),
          dquery(dkey + s.key_gradients),
          weights(tile_as<Element>(scores, key)),
          gradient(tile_as<Element>(dp, key) +
                   (std::is_same_v<Element, float> ? 0 : kQueries * kTileStride)) {}
  };

  struct Head {
    std::int64_t batch, query, key;
  };

  /// A block of queries with what belongs to them.
  struct Queries {
    HeadRows<const Element> query, doutput;
    const float *deltas, *log_sums;
    std::int64_t batch, first;  ///< its first row
  };

  struct Keys {
    HeadRows<const Element> key, value;
    std::int64_t first;
  };

  HeadRows<T> query_target(const Head& head, std::int64_t first) const {
    return head_rows(call_.result<T>(0), head.batch, e_.queries, e_.heads, e_.width, head.query, first,
                     kQueries);
  }
  HeadRows<T> key_target(std::size_t result, const Head& head, std::int64_t first) const {
    return head_rows(call_.result<T>(result), head.batch, e_.keys, e_.groups, e_.width, head.key, first,
                     kKeys);
  }

  Queries load_queries(const Head& head, std::int64_t first, const Scratch& own) const {
    const auto rows = [&](std::size_t operand) {
      return head_rows(call_.operand<T>(operand), head.batch, e_.queries, e_.heads, e_.width, head.query,
                       first, kQueries);
    };
    const HeadRows<const T> doutput = rows(0), query = rows(1), output = rows(4);
    const float* log_sums =
        call_.operand<float>(5) + (head.batch * e_.heads + head.query) * e_.queries + first;
    run_vectorized(
        best_instruction_set(), 0, query.count, [=, width = e_.width](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r)
            own.deltas[r] = dot(doutput.data + r * doutput.stride, output.data + r * output.stride, width);
        });
    return {rows_as<Element>(query, e_.width, own.query),
            rows_as<Element>(doutput, e_.width, own.doutput),
            own.deltas,
            log_sums,
            head.batch,
            first};
  }

  void begin(HeadRows<float> sums, HeadRows<T> target) const {
    call_.accumulate ? resume(sums, target, e_.width) : clear(sums, e_.width);
  }

  Keys load_keys(const Head& head, std::int64_t first, const Scratch& own) const {
    const auto rows = [&](std::size_t operand, float* buffer) {
      return rows_as<Element>(head_rows(call_.operand<T>(operand), head.batch, e_.keys, e_.groups, e_.width,
                                        head.key, first, kKeys),
                              e_.width, buffer);
    };
    return {rows(2, own.key), rows(3, own.value), first};
  }

  /// Makes the softmax and the gradient of the scores of one tile; returns how many of the keys any query
  /// sees.
  std::int64_t make_tile(const Queries& q, const Keys& k, const Scratch& own) const {
    const std::int64_t seen =
        std::min(k.key.count, e_.visible(position_ + q.first + q.query.count - 1) - k.first);
    if (seen <= 0) return 0;
    const ProductExtents extents{q.query.count, seen, e_.width};
    multiply(extents, {{false, q.query.stride}, q.query.data}, {{true, k.key.stride}, k.key.data}, 0.0f,
             {own.scores, kTileStride});
    multiply(extents, {{false, q.doutput.stride}, q.doutput.data}, {{true, k.value.stride}, k.value.data},
             0.0f, {own.dp, kTileStride});
    run_vectorized(best_instruction_set(), 0, q.query.count, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const auto within = [&](std::int64_t at) { return std::clamp(at - k.first, std::int64_t{0}, seen); };
        const std::int64_t visible = e_.causal ? within(position_ + q.first + r + 1) : seen;
        const std::int64_t row = r * kTileStride;
        gradient_row(own.scores + row, own.dp + row, within(first_keys_.of(q.batch, q.first + r)), visible,
                     seen, e_.scale, q.log_sums[r], q.deltas[r], own.weights + row, own.gradient + row);
      }
    });
    return seen;
  }

  void add_to_queries(const Keys& k, std::int64_t seen, const Scratch& own, HeadRows<float> dquery) const {
    multiply({dquery.count, e_.width, seen}, {{false, kTileStride}, own.gradient},
             {{false, k.key.stride}, k.key.data}, 1.0f, {dquery.data, dquery.stride});
  }

  void add_to_keys(const Queries& q, std::int64_t seen, const Scratch& own, HeadRows<float> dkey,
                   HeadRows<float> dvalue) const {
    const ProductExtents extents{seen, e_.width, q.query.count};
    multiply(extents, {{true, kTileStride}, own.gradient}, {{false, q.query.stride}, q.query.data}, 1.0f,
             {dkey.data, dkey.stride});
    multiply(extents, {{true, kTileStride}, own.weights}, {{false, q.doutput.stride}, q.doutput.data}, 1.0f,
             {dvalue.data, dvalue.stride});
  }

  /// The gradients of one block of keys; dquery(head, first query, keys, seen) takes those of the queries
  /// from each tile.
  template <class QueryGradient>
  void keys_against_queries(Head head, std::int64_t first_key, const Scratch& own,
                            const QueryGradient& dquery) const {
    const HeadRows<T> dkey_target = key_target(1, head, first_key),
                      dvalue_target = key_target(2, head, first_key);
    const HeadRows<float> dkey = sums_of(dkey_target, e_.width, own.dkey),
                          dvalue = sums_of(dvalue_target, e_.width, own.dvalue);
    begin(dkey, dkey_target);
    begin(dvalue, dvalue_target);
    const Keys keys = load_keys(head, first_key, own);
    for (head.query = head.key * e_.share; head.query < (head.key + 1) * e_.share; ++head.query)
      for (std::int64_t first = 0; first < e_.queries; first += kQueries) {
        const std::int64_t last = std::min(first + kQueries, e_.queries) - 1;
        if (e_.visible(position_ + last) <= first_key) continue;
        if (first_keys_.of(head.batch, first) >= first_key + keys.key.count) break;  // nor do later ones
        const Queries queries = load_queries(head, first, own);
        const std::int64_t seen = make_tile(queries, keys, own);
        add_to_keys(queries, seen, own, dkey, dvalue);
        dquery(head, first, keys, seen);
      }
    store(dkey, dkey_target, e_.width);
    store(dvalue, dvalue_target, e_.width);
  }

  void whole_key_head(std::int64_t task, const Scratch& own) const {
    const HeadPlace place(task, e_.batch, e_.groups);
    const Head head{place.batch, 0, place.head};
    const auto sums = [&](const Head& at, std::int64_t first) {
      const std::int64_t row = (at.query - at.key * e_.share) * e_.queries + first;
      return sums_of(query_target(at, first), e_.width, own.dquery + row * e_.width);
    };
    const auto for_query_blocks = [&](const auto& body) {
      Head at = head;
      for (at.query = at.key * e_.share; at.query < (at.key + 1) * e_.share; ++at.query)
        for (std::int64_t first = 0; first < e_.queries; first += kQueries) body(at, first);
    };
    for_query_blocks(
        [&](const Head& at, std::int64_t first) { begin(sums(at, first), query_target(at, first)); });
    for (std::int64_t first_key = 0; first_key < e_.keys; first_key += kKeys)
      keys_against_queries(head, first_key, own,
                           [&](const Head& at, std::int64_t first, const Keys& keys, std::int64_t seen) {
                             add_to_queries(keys, seen, own, sums(at, first));
                           });
    for_query_blocks([&](const Head& at, std::int64_t first) {
      store(sums(at, first), query_target(at, first), e_.width);
    });
  }

  void query_block(std::int64_t task, const Scratch& own) const {
    const std::int64_t first = task % e_.query_blocks() * kQueries,
                       query = task / e_.query_blocks() % e_.heads;
    const Head head{task / e_.query_blocks() / e_.heads, query, query / e_.share};
    const HeadRows<T> target = query_target(head, first);
    const HeadRows<float> sums = sums_of(target, e_.width, own.dquery);
    begin(sums, target);
    const Queries queries = load_queries(head, first, own);
    const std::int64_t seen_by_last = e_.visible(position_ + first + queries.query.count - 1);
    const std::int64_t from = first_keys_.of(head.batch, first) / kKeys * kKeys;
    for (std::int64_t first_key = from; first_key < seen_by_last; first_key += kKeys) {
      const Keys keys = load_keys(head, first_key, own);
      add_to_queries(keys, make_tile(queries, keys, own), own, sums);
    }
    store(sums, target, e_.width);
  }

  void key_block(std::int64_t task, const Scratch& own) const {
    const std::int64_t first = task % e_.key_blocks() * kKeys, key_head = task / e_.key_blocks();
    keys_against_queries({key_head / e_.groups, 0, key_head % e_.groups}, first, own,
                         [](const Head&, std::int64_t, const Keys&, std::int64_t) {});
  }

  const AttentionExtents& e_;
  const AttentionScratch& scratch_;
  const KernelCall& call_;
  FirstKeys first_keys_;
  std::int64_t position_;  ///< of the first query, counted from the first key
};

}  // namespace

std::unique_ptr<Kernel> attention_grad_cpu(const KernelShape& shape) {
  if (!types_match(shape, shape.operands.size() > 6 ? "tttttfi->ttt" : "tttttf->ttt")) return nullptr;
  const AttentionExtents extents(shape.operands[1], shape.operands[2], shape.attributes);
  const AttentionScratch scratch = attention_scratch({shape.operands, shape.attributes});
  return for_attention_types(shape.operands[0].dtype, [&](auto zero, auto multiplied) {
    using Made = Gradient<decltype(zero), decltype(multiplied)>;
    return host_kernel([extents, scratch](const KernelCall& call) { Made(extents, scratch, call).run(); });
  });
}

}  // namespace alpa::ops
