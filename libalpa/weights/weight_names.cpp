#include "libalpa/weights/weight_names.h"

#include <algorithm>
#include <cctype>

namespace alpa {
namespace {

// As the library `transformers` writes them. Letters of axes: v vocabulary, s position, d model, h head, g
// head of keys and values, k inside a head, f inner.

/// Linear maps lie as [in, out], and the three projections of the attention are one.
WeightFamily gpt2() {
  return {.name = "gpt2",
          .sentence = "GPT-2",
          .rows = {{"embedding.table", "v d", "wte.weight", "v d"},
                   {"embedding.positions", "s d", "wpe.weight", "s d"},
                   {"block.#.attention_norm.gain", "d", "h.#.ln_1.weight", "d"},
                   {"block.#.attention_norm.bias", "d", "h.#.ln_1.bias", "d"},
                   {"block.#.attention.query", "d h k", "h.#.attn.c_attn.weight", "d (3 h k)", 0},
                   {"block.#.attention.key", "d h k", "h.#.attn.c_attn.weight", "d (3 h k)", 1},
                   {"block.#.attention.value", "d h k", "h.#.attn.c_attn.weight", "d (3 h k)", 2},
                   {"block.#.attention.query_bias", "h k", "h.#.attn.c_attn.bias", "(3 h k)", 0},
                   {"block.#.attention.key_bias", "h k", "h.#.attn.c_attn.bias", "(3 h k)", 1},
                   {"block.#.attention.value_bias", "h k", "h.#.attn.c_attn.bias", "(3 h k)", 2},
                   {"block.#.attention.output", "h k d", "h.#.attn.c_proj.weight", "(h k) d"},
                   {"block.#.attention.output_bias", "d", "h.#.attn.c_proj.bias", "d"},
                   {"block.#.mlp_norm.gain", "d", "h.#.ln_2.weight", "d"},
                   {"block.#.mlp_norm.bias", "d", "h.#.ln_2.bias", "d"},
                   {"block.#.mlp.up", "d f", "h.#.mlp.c_fc.weight", "d f"},
                   {"block.#.mlp.up_bias", "f", "h.#.mlp.c_fc.bias", "f"},
                   {"block.#.mlp.down", "f d", "h.#.mlp.c_proj.weight", "f d"},
                   {"block.#.mlp.down_bias", "d", "h.#.mlp.c_proj.bias", "d"},
                   {"head.norm.gain", "d", "ln_f.weight", "d"},
                   {"head.norm.bias", "d", "ln_f.bias", "d"},
                   {"head.table", "v d", "lm_head.weight", "v d"}},
          .prefix = "transformer.",
          .other_names = {},
          .copies = {{"lm_head.weight", "wte.weight"}},
          .unused = {"h.#.attn.bias", "h.#.attn.masked_bias"}};  // the causal mask
}

/// Linear maps lie as [out, in]. The rotary embedding turns elements i and i + k/2 of a head together, as
/// ours does, so that heads stay as they are. (Files as Meta publishes them pair 2i and 2i + 1, under other
/// names.)
WeightFamily llama() {
  return {.name = "llama",
          .sentence = "Llama and models of its form",
          .rows = {{"embedding.table", "v d", "model.embed_tokens.weight", "v d"},
                   {"block.#.attention_norm.gain", "d", "model.layers.#.input_layernorm.weight", "d"},
                   {"block.#.attention.query", "d h k", "model.layers.#.self_attn.q_proj.weight", "(h k) d"},
                   {"block.#.attention.key", "d g k", "model.layers.#.self_attn.k_proj.weight", "(g k) d"},
                   {"block.#.attention.value", "d g k", "model.layers.#.self_attn.v_proj.weight", "(g k) d"},
                   {"block.#.attention.output", "h k d", "model.layers.#.self_attn.o_proj.weight", "d (h k)"},
                   {"block.#.mlp_norm.gain", "d", "model.layers.#.post_attention_layernorm.weight", "d"},
                   {"block.#.mlp.gate", "d f", "model.layers.#.mlp.gate_proj.weight", "f d"},
                   {"block.#.mlp.up", "d f", "model.layers.#.mlp.up_proj.weight", "f d"},
                   {"block.#.mlp.down", "f d", "model.layers.#.mlp.down_proj.weight", "d f"},
                   {"head.norm.gain", "d", "model.norm.weight", "d"},
                   {"head.table", "v d", "lm_head.weight", "v d"}},
          .prefix = "",
          .other_names = {},
          .copies = {{"lm_head.weight", "model.embed_tokens.weight"}},
          .unused = {"model.layers.#.self_attn.rotary_emb.inv_freq"}};
}

/// Linear maps lie as [out, in]. Models here have one segment, whose row is the same for all positions.
WeightFamily bert() {
  return {
      .name = "bert",
      .sentence = "BERT as a masked language model",
      .rows =
          {{"embedding.table", "v d", "bert.embeddings.word_embeddings.weight", "v d"},
           {"embedding.positions", "s d", "bert.embeddings.position_embeddings.weight", "s d"},
           {"embedding.positions", "s d", "bert.embeddings.token_type_embeddings.weight", "2 d", 0, true},
           {"embedding.norm.gain", "d", "bert.embeddings.LayerNorm.weight", "d"},
           {"embedding.norm.bias", "d", "bert.embeddings.LayerNorm.bias", "d"},
           {"block.#.attention.query", "d h k", "bert.encoder.layer.#.attention.self.query.weight",
            "(h k) d"},
           {"block.#.attention.query_bias", "h k", "bert.encoder.layer.#.attention.self.query.bias", "(h k)"},
           {"block.#.attention.key", "d h k", "bert.encoder.layer.#.attention.self.key.weight", "(h k) d"},
           {"block.#.attention.key_bias", "h k", "bert.encoder.layer.#.attention.self.key.bias", "(h k)"},
           {"block.#.attention.value", "d h k", "bert.encoder.layer.#.attention.self.value.weight",
            "(h k) d"},
           {"block.#.attention.value_bias", "h k", "bert.encoder.layer.#.attention.self.value.bias", "(h k)"},
           {"block.#.attention.output", "h k d", "bert.encoder.layer.#.attention.output.dense.weight",
            "d (h k)"},
           {"block.#.attention.output_bias", "d", "bert.encoder.layer.#.attention.output.dense.bias", "d"},
           {"block.#.attention_norm.gain", "d", "bert.encoder.layer.#.attention.output.LayerNorm.weight",
            "d"},
           {"block.#.attention_norm.bias", "d", "bert.encoder.layer.#.attention.output.LayerNorm.bias", "d"},
           {"block.#.mlp.up", "d f", "bert.encoder.layer.#.intermediate.dense.weight", "f d"},
           {"block.#.mlp.up_bias", "f", "bert.encoder.layer.#.intermediate.dense.bias", "f"},
           {"block.#.mlp.down", "f d", "bert.encoder.layer.#.output.dense.weight", "d f"},
           {"block.#.mlp.down_bias", "d", "bert.encoder.layer.#.output.dense.bias", "d"},
           {"block.#.mlp_norm.gain", "d", "bert.encoder.layer.#.output.LayerNorm.weight", "d"},
           {"block.#.mlp_norm.bias", "d", "bert.encoder.layer.#.output.LayerNorm.bias", "d"},
           {"head.dense.weight", "d f", "cls.predictions.transform.dense.weight", "f d"},
           {"head.dense.shift", "d", "cls.predictions.transform.dense.bias", "d"},
           {"head.norm.gain", "d", "cls.predictions.transform.LayerNorm.weight", "d"},
           {"head.norm.bias", "d", "cls.predictions.transform.LayerNorm.bias", "d"},
           {"head.table", "v d", "cls.predictions.decoder.weight", "v d"},
           {"head.word_bias", "v", "cls.predictions.bias", "v"}},
      .prefix = "",
      .other_names = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}},
      .copies = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                 {"cls.predictions.decoder.bias", "cls.predictions.bias"}},
      .unused = {"bert.embeddings.position_ids", "bert.pooler.dense.weight", "bert.pooler.dense.bias",
                 "cls.seq_relationship.weight", "cls.seq_relationship.bias"}};
}

}  // namespace

std::span<const WeightFamily> weight_families() {
  static const std::vector<WeightFamily> families{
      gpt2(), llama(), bert(), {.name = "own", .sentence = "the model itself", .is_own = true}};
  return families;
}

std::optional<std::string> layer_in(std::string_view pattern, std::string_view name) {
  const std::size_t at = pattern.find('#');
  if (at == std::string_view::npos) return pattern == name ? std::optional(std::string()) : std::nullopt;
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + 1);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  const std::string_view layer = name.substr(at, name.size() - before.size() - after.size());
  const bool is_number =
      std::all_of(layer.begin(), layer.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_number ? std::optional(std::string(layer)) : std::nullopt;
}

std::string with_layer(std::string_view pattern, const std::string& layer) {
  std::string name(pattern);
  const std::size_t at = name.find('#');
  return at == std::string::npos ? name : name.replace(at, 1, layer);
}

std::string usual_name(const WeightFamily& family, std::string_view name) {
  if (!family.prefix.empty() && name.starts_with(family.prefix)) name.remove_prefix(family.prefix.size());
  for (const auto& [other, usual] : family.other_names)
    if (name.ends_with(other))
      return std::string(name.substr(0, name.size() - other.size())) + std::string(usual);
  return std::string(name);
}

}  // namespace alpa
