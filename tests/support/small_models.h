#pragma once
#include <cstdint>

#include "libalpa/graph/autodiff.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::testing_models {

/// A GPT in miniature, built by hand: embedding, `blocks` pre-norm transformer blocks, tied head.
inline Graph tiny_gpt_forward(std::int64_t samples, int blocks = 2, std::int64_t sequence = 8,
                              std::int64_t model = 16, std::int64_t heads = 4, std::int64_t vocabulary = 32) {
  GraphBuilder g(op_catalog());
  const Initializer normal{Initializer::Kind::normal, 0.1}, ones{Initializer::Kind::ones, 0}, zeros{};
  const auto weight = [&](const std::string& name, Shape shape, Initializer init) {
    return g.state(name, {DType::f32, std::move(shape)}, init, true);
  };
  const auto einsum = [&](ValueIndex x, ValueIndex w, const char* equation) {
    return g.add("einsum", {x, w}, {{"equation", equation}}, equation);
  };
  g.graph().samples = samples;
  g.begin_layer("embedding");
  const ValueIndex tokens = g.input(InputKind::tokens, {DType::i32, {samples, sequence}}, "tokens");
  const ValueIndex targets = g.input(InputKind::targets, {DType::i32, {samples, sequence}}, "targets");
  const ValueIndex table = weight("table", {vocabulary, model}, normal);
  ValueIndex x = g.add("embedding", {table, tokens});
  x = g.add("bias_add", {x, weight("positions", {sequence, model}, normal)});
  for (int b = 0; b < blocks; ++b) {
    const std::string name = "block." + std::to_string(b) + ".";
    g.begin_layer("block." + std::to_string(b));
    const auto norm = [&](ValueIndex value, const std::string& which) {
      return g.add("layer_norm",
                   {value, weight(name + which + ".gain", {model}, ones),
                    weight(name + which + ".bias", {model}, zeros)},
                   {{"epsilon", 1e-5}});
    };
    const ValueIndex n = norm(x, "norm1");
    ValueIndex qkv[3];
    const char* which[] = {"query", "key", "value"};
    for (int i = 0; i < 3; ++i) {
      qkv[i] = einsum(n, weight(name + which[i], {model, heads, model / heads}, normal),
                      "b s d, d h k -> b s h k");
      qkv[i] = g.add("bias_add", {qkv[i], weight(name + which[i] + ".bias", {heads, model / heads}, zeros)});
    }
    const ValueIndex a = g.add("attention", {qkv[0], qkv[1], qkv[2]}, {{"causal", std::int64_t{1}}});
    ValueIndex o =
        einsum(a, weight(name + "output", {heads, model / heads, model}, normal), "b s h k, h k d -> b s d");
    o = g.add("bias_add", {o, weight(name + "output.bias", {model}, zeros)});
    x = g.add("add", {x, o});
    const ValueIndex up = weight(name + "up", {model, 4 * model}, normal);
    ValueIndex h = einsum(norm(x, "norm2"), up, "b s d, d f -> b s f");
    h = g.add("gelu", {g.add("bias_add", {h, weight(name + "up.bias", {4 * model}, zeros)})});
    h = einsum(h, weight(name + "down", {4 * model, model}, normal), "b s f, f d -> b s d");
    x = g.add("add", {x, g.add("bias_add", {h, weight(name + "down.bias", {model}, zeros)})});
  }
  g.begin_layer("head");
  const ValueIndex n =
      g.add("layer_norm", {x, weight("norm.gain", {model}, ones), weight("norm.bias", {model}, zeros)},
            {{"epsilon", 1e-5}});
  const ValueIndex logits = einsum(n, table, "b s d, v d -> b s v");
  const ValueIndex m = g.add("row_max", {logits});
  const ValueIndex z = g.add("row_sum_exp", {logits, m});
  g.graph().loss = g.add("reduce_sum", {g.add("cross_entropy", {logits, targets, m, z})});
  return g.finish();
}

inline Graph tiny_gpt(std::int64_t samples, int blocks = 2) {
  return training_graph(tiny_gpt_forward(samples, blocks), op_catalog(), {});
}

}  // namespace alpa::testing_models
