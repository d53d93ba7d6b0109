#include "libalpa/tokenizer/tokenizer_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/tokenizer/pattern_syntax.h"
#include "libalpa/tokenizer/utf8.h"

namespace alpa {
namespace {

using nlohmann::json;

constexpr int deepest_json = 32;
constexpr std::int64_t most_ids = 1 << 20;
constexpr std::size_t longest_shown = 40;

/// The pattern of GPT-2, which ByteLevel stands for.
constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string in_quotes(std::string_view text) {
  const bool fits = text.size() <= longest_shown;
  return fmt::format("'{}{}'", printable(text.substr(0, longest_shown), ""), fits ? "" : "...");
}

/// How deep arrays and objects lie in each other at most.
int json_depth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

/// The characters that stand for bytes in tokens: printable ones of Latin-1 for themselves, others from
/// U+0100.
std::array<char32_t, 256> characters_of_bytes() {
  std::array<char32_t, 256> characters{};
  char32_t other = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool stands_for_itself =
        (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    characters[byte] = stands_for_itself ? byte : other++;
  }
  return characters;
}

/// Reads one file; what is asked of it in turn fills the result.
class TokenizerJson {
 public:
  explicit TokenizerJson(const TokenizerFile& file) : name_(file.name) {
    const std::array<char32_t, 256> characters = characters_of_bytes();
    for (int byte = 0; byte < 256; ++byte) bytes_of_characters_[characters[byte]] = static_cast<char>(byte);
    if (const int depth = json_depth(file.content); depth > deepest_json)
      refuse("", fmt::format("lies {} deep, and {} is the most", depth, deepest_json));
    try {
      root_ = json::parse(file.content);
    } catch (const json::exception& error) {
      refuse("", fmt::format("is not JSON: {}", quoted_reason(error.what())));
    }
  }

  ByteLevelBpe read() {
    read_model();
    read_added_tokens();
    read_normalizer(root_.value("normalizer", json()), "normalizer");
    read_cuts(root_.value("pre_tokenizer", json()), "pre_tokenizer");
    if (!byte_level_)
      unsupported("pre_tokenizer", "has no ByteLevel", "only BPE of bytes is, as that of GPT-2 and Llama 3");
    return std::move(bpe_);
  }

 private:
  [[noreturn]] void refuse(const std::string& field, const std::string& what) const {
    throw Error(ErrorKind::input,
                fmt::format("tokenizer '{}': {}{}", name_, field.empty() ? "it " : field + " ", what),
                "fetch the file again: a tokenizer.json, as Hugging Face's tokenizers write it");
  }

  [[noreturn]] void unsupported(const std::string& field, const std::string& what,
                                const std::string& supported) const {
    throw Error(ErrorKind::input,
                fmt::format("tokenizer '{}': {} {}, which is not supported", name_, field, what), supported);
  }

  /// What the parser says, without its own name and number.
  static std::string quoted_reason(std::string_view what) {
    const std::size_t at = what.find("] ");
    return printable(what.substr(at == std::string_view::npos ? 0 : at + 2).substr(0, 160), "");
  }

  const json& member(const json& object, const char* name, const std::string& field) const {
    if (!object.is_object()) refuse(field, "is no object");
    const auto found = object.find(name);
    if (found == object.end()) refuse(field.empty() ? name : field + "." + name, "is missing");
    return *found;
  }

  bool truth(const json& object, const char* name, const std::string& field, bool otherwise) const {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return otherwise;
    if (!found->is_boolean()) refuse(fmt::format("{}.{}", field, name), "is neither true nor false");
    return found->get<bool>();
  }

  std::string type_of(const json& object, const std::string& field) const {
    const json& type = member(object, "type", field);
    if (!type.is_string()) refuse(field + ".type", "is not a string");
    return type.get<std::string>();
  }

  const std::string& text_of(const json& value, const std::string& field) const {
    if (!value.is_string()) refuse(field, "is not a string");
    return value.get_ref<const std::string&>();
  }

  /// The bytes that the characters of a token stand for; nullopt where some stand for none.
  std::optional<std::string> token_bytes(std::string_view token) const {
    std::string bytes;
    while (!token.empty()) {
      const std::size_t size = std::max<std::size_t>(utf8_character(token), 1);
      const auto found = bytes_of_characters_.find(code_point(token.substr(0, size)));
      if (found == bytes_of_characters_.end()) return std::nullopt;
      bytes.push_back(found->second);
      token.remove_prefix(size);
    }
    return bytes;
  }

  std::int32_t id_of(const json& value, const std::string& field) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= static_cast<std::uint64_t>(most_ids))
      refuse(field, fmt::format("is no id, which are integers from 0 to {}", most_ids - 1));
    return value.get<std::int32_t>();
  }

  std::optional<std::string>& place_of(std::int32_t id) {
    if (static_cast<std::size_t>(id) >= bpe_.tokens.size())
      bpe_.tokens.resize(static_cast<std::size_t>(id) + 1);
    return bpe_.tokens[static_cast<std::size_t>(id)];
  }

  void read_model() {
    const json& model = member(root_, "model", "");
    if (!model.is_object()) refuse("model", "is no object");
    if (const json type = model.value("type", json("BPE")); type != "BPE")
      unsupported("model.type", "is " + in_quotes(type.dump()), "BPE is");
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix", "dropout"}) {
      const json value = model.value(name, json());
      const bool is_none = value.is_null() || value == "" || value == 0.0;
      if (!is_none) unsupported(fmt::format("model.{}", name), "is set", "BPE without it is");
    }
    if (truth(model, "byte_fallback", "model", false))
      unsupported("model.byte_fallback", "is true",
                  "BPE of bytes is; or the model of SentencePiece that it was made of");
    bpe_.whole_words_are_tokens = truth(model, "ignore_merges", "model", false);
    read_vocabulary(member(model, "vocab", "model"));
    read_merges(member(model, "merges", "model"));
  }

  void read_vocabulary(const json& vocabulary) {
    if (!vocabulary.is_object()) refuse("model.vocab", "is no object");
    for (const auto& [token, value] : vocabulary.items()) {
      const std::int32_t id = id_of(value, fmt::format("model.vocab[{}]", in_quotes(token)));
      std::optional<std::string>& place = place_of(id);
      if (place) refuse("model.vocab", fmt::format("has the id {} twice, for {} too", id, in_quotes(token)));
      place = token_bytes(token).value_or(token);
      ids_.emplace(token, id);
    }
    const std::array<char32_t, 256> characters = characters_of_bytes();
    for (int byte = 0; byte < 256; ++byte) {
      std::string character;
      append_utf8(characters[byte], character);
      const auto found = ids_.find(character);
      if (found == ids_.end())
        refuse("model.vocab", fmt::format("has no token for the byte {}, '{}'", byte, character));
      bpe_.bytes.push_back(found->second);
    }
  }

  void read_merges(const json& merges) {
    if (!merges.is_array()) refuse("model.merges", "is no array");
    bpe_.pairs.reserve(merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const auto field = [i] { return fmt::format("model.merges[{}]", i); };
      const auto [left, right] = sides_of(merges[i], field);
      const auto id = [&](const std::string& token) {
        const auto found = ids_.find(token);
        if (found == ids_.end())
          refuse(field(), fmt::format("needs {}, which is no token of model.vocab", in_quotes(token)));
        return found->second;
      };
      bpe_.pairs.push_back({id(left), id(right), id(left + right)});
    }
  }

  /// Of a merge: "a b" or ["a", "b"].
  template <class Field>
  std::pair<std::string, std::string> sides_of(const json& merge, const Field& field) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      refuse(field(), "is no pair of tokens");
    return {text.substr(0, space), text.substr(space + 1)};
  }

  void read_added_tokens() {
    const json added = root_.value("added_tokens", json::array());
    if (!added.is_array()) refuse("added_tokens", "is no array");
    std::map<std::string, std::int32_t> known;
    for (std::size_t i = 0; i < added.size(); ++i) {
      const std::string field = fmt::format("added_tokens[{}]", i);
      const std::int32_t id = id_of(member(added[i], "id", field), field + ".id");
      const std::string& text = text_of(member(added[i], "content", field), field + ".content");
      if (text.empty()) refuse(field + ".content", "is empty");
      if (truth(added[i], "single_word", field, false))
        unsupported(field + ".single_word", "is true", "false is");
      if (!known.emplace(text, id).second) refuse(field, fmt::format("is {} again", in_quotes(text)));
      const auto model_id = ids_.find(text);
      std::optional<std::string>& place = place_of(id);
      if (model_id == ids_.end() ? place.has_value() : model_id->second != id)
        refuse(field, fmt::format("gives {} the id {}, which model.vocab does not", in_quotes(text), id));
      place = text;
      bpe_.added.push_back({id, text, truth(added[i], "special", field, false),
                            truth(added[i], "lstrip", field, false),
                            truth(added[i], "rstrip", field, false)});
    }
  }

  void read_normalizer(const json& normalizer, const std::string& field) {
    if (normalizer.is_null()) return;
    const std::string type = type_of(normalizer, field);
    if (type == "NFC") {
      bpe_.composes = true;
    } else if (type == "Sequence") {
      const json& all = member(normalizer, "normalizers", field);
      for (std::size_t i = 0; all.is_array() && i < all.size(); ++i)
        read_normalizer(all[i], fmt::format("{}.normalizers[{}]", field, i));
    } else {
      unsupported(field, "is " + in_quotes(type), "none and NFC are");
    }
  }

  void read_cuts(const json& cut, const std::string& field) {
    if (cut.is_null()) refuse(field, "is missing");
    if (byte_level_) unsupported(field, "follows ByteLevel", "ByteLevel as the last is");
    const std::string type = type_of(cut, field);
    if (type == "Sequence") {
      const json& all = member(cut, "pretokenizers", field);
      if (!all.is_array()) refuse(field + ".pretokenizers", "is no array");
      for (std::size_t i = 0; i < all.size(); ++i)
        read_cuts(all[i], fmt::format("{}.pretokenizers[{}]", field, i));
    } else if (type == "ByteLevel") {
      byte_level_ = true;
      if (truth(cut, "add_prefix_space", field, true)) bpe_.space_before = bpe_.splits.size();
      if (truth(cut, "use_regex", field, true)) bpe_.splits.push_back({pcre2_pattern(gpt2_pattern)});
    } else if (type == "Digits") {
      bpe_.splits.push_back({truth(cut, "individual_digits", field, false) ? R"(\p{N})" : R"(\p{N}+)"});
    } else if (type == "Split") {
      read_split(cut, field);
    } else {
      unsupported(field, "is " + in_quotes(type), "ByteLevel, Split, Digits and a Sequence of these are");
    }
  }

  void read_split(const json& cut, const std::string& field) {
    const json& pattern = member(cut, "pattern", field);
    const bool is_expression = pattern.is_object() && pattern.contains("Regex");
    const char* const kind = is_expression ? "Regex" : "String";
    const std::string& text = text_of(member(pattern, kind, field + ".pattern"), field + ".pattern." + kind);
    SplitStep step{in_step(fmt::format("reading {}.pattern of tokenizer '{}'", field, name_),
                           [&] { return is_expression ? pcre2_pattern(text) : literal_pattern(text); })};
    const std::string& behavior = text_of(member(cut, "behavior", field), field + ".behavior");
    const bool inverted = truth(cut, "invert", field, false);
    if (behavior == "Removed")
      (inverted ? step.keeps_the_others : step.keeps_matches) = false;
    else if (behavior != "Isolated")
      unsupported(field + ".behavior", "is " + in_quotes(behavior), "Isolated and Removed are");
    bpe_.splits.push_back(std::move(step));
  }

  std::string name_;
  json root_;
  std::unordered_map<char32_t, char> bytes_of_characters_;
  std::unordered_map<std::string, std::int32_t> ids_;  // of model.vocab
  bool byte_level_ = false;
  ByteLevelBpe bpe_;
};

}  // namespace

ByteLevelBpe read_tokenizer_json(const TokenizerFile& file) { return TokenizerJson(file).read(); }

}  // namespace alpa
