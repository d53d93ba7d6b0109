#include "libalpa/graph/sharding_rule.h"

#include <fmt/core.h>

#include <cassert>
#include <optional>
#include <unordered_map>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using Names = std::vector<std::vector<std::string>>;  // [dimension][factor]

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at; (at = text.find(separator)) != std::string_view::npos; text.remove_prefix(at + 1))
    parts.push_back(trimmed(text.substr(0, at)));
  parts.push_back(trimmed(text));
  return parts;
}

/// "b s (h d) ..." -> {{b},{s},{h,d},{...}}
Names dimensions_of(std::string_view tensor, std::string_view notation) {
  Names dimensions;
  bool in_product = false;
  std::string word;
  const auto finish_word = [&] {
    if (word.empty()) return;
    if (in_product)
      dimensions.back().push_back(word);
    else
      dimensions.push_back({word});
    word.clear();
  };
  for (const char c : tensor) {
    if (c == ' ' || c == '(' || c == ')') {
      finish_word();
      if (c == '(') dimensions.emplace_back();
      if (c == '(' && in_product) throw Error(ErrorKind::input, fmt::format("nested '(' in '{}'", notation));
      if (c != ' ') in_product = c == '(';
    } else {
      word += c;
    }
  }
  finish_word();
  if (in_product) throw Error(ErrorKind::input, fmt::format("missing ')' in '{}'", notation));
  return dimensions;
}

/// A notation with its names as numbers, for operands of certain ranks: the rule but for the factors' sizes.
class RuleForm {
 public:
  RuleForm(std::string_view notation, std::span<const TensorType> operands) : notation_(notation) {
    const std::vector<std::string_view> clauses = split(notation, '|');
    const std::size_t arrow = clauses[0].find("->");
    if (arrow == std::string_view::npos) refuse("has no '->'");
    std::vector<Names> of_operands, of_results;
    for (std::string_view part : split(trimmed(clauses[0].substr(0, arrow)), ','))
      of_operands.push_back(dimensions_of(part, notation));
    for (std::string_view part : split(trimmed(clauses[0].substr(arrow + 2)), ','))
      of_results.push_back(dimensions_of(part, notation));
    if (of_operands.size() != operands.size())
      refuse(fmt::format("wants {} operands, got {}", of_operands.size(), operands.size()));
    expand_ellipsis(of_operands, of_results, operands);
    for (std::size_t i = 0; i < of_operands.size(); ++i) check_rank(of_operands[i], i, operands[i]);
    for (const Names& names : of_operands) rule_.operands.push_back(indices(names));
    for (const Names& names : of_results) rule_.results.push_back(indices(names));
    for (std::size_t i = 1; i < clauses.size(); ++i) mark(clauses[i]);
  }

  ShardingRule bound(std::span<const TensorType> operands,
                     const std::map<std::string, std::int64_t>& sizes) const {
    ShardingRule rule = rule_;
    std::vector<bool> is_known(rule.factors.size(), false);
    for (std::size_t f = 0; f < rule.factors.size(); ++f)
      if (const auto at = sizes.find(rule.factors[f].name); at != sizes.end()) {
        rule.factors[f].size = at->second;
        is_known[f] = true;
      }
    // Dimensions of one factor first; a product then leaves at most one factor to work out.
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t i = 0; i < rule.operands.size(); ++i)
        for (std::size_t d = 0; d < rule.operands[i].size(); ++d)
          if ((rule.operands[i][d].size() > 1) == (pass == 1))
            bind(rule, is_known, rule.operands[i][d], operands[i].shape[d]);
    for (std::size_t f = 0; f < rule.factors.size(); ++f)
      if (!is_known[f]) refuse(fmt::format("does not say how large '{}' is", rule.factors[f].name));
    return rule;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::input, fmt::format("'{}' {}", notation_, why));
  }

  void expand_ellipsis(std::vector<Names>& of_operands, std::vector<Names>& of_results,
                       std::span<const TensorType> types) const {
    std::optional<std::size_t> hidden;
    for (std::size_t i = 0; i < of_operands.size() && !hidden; ++i)
      for (const auto& dimension : of_operands[i])
        if (dimension[0] == "...") {
          const std::size_t named = of_operands[i].size() - 1, rank = types[i].shape.size();
          if (rank < named)
            refuse(fmt::format("wants at least {} dimensions in operand {}, got {}", named, i, rank));
          hidden = rank - named;
        }
    const auto expand = [&](Names& names) {
      Names expanded;
      for (auto& dimension : names) {
        if (dimension[0] != "...") {
          expanded.push_back(dimension);
          continue;
        }
        for (std::size_t d = 0; d < hidden.value_or(0); ++d) expanded.push_back({fmt::format("_{}", d)});
      }
      names = std::move(expanded);
    };
    for (Names& names : of_operands) expand(names);
    for (Names& names : of_results) expand(names);
  }

  void check_rank(const Names& names, std::size_t operand, const TensorType& type) const {
    if (names.size() != type.shape.size())
      refuse(
          fmt::format("wants {} dimensions in operand {}, got {}", names.size(), operand, type_text(type)));
  }

  void bind(ShardingRule& rule, std::vector<bool>& is_known, const DimensionFactors& factors,
            std::int64_t extent) const {
    std::int64_t known = 1;
    int open = -1;
    for (const int f : factors) {
      if (is_known[f])
        known *= rule.factors[f].size;
      else if (open >= 0)
        refuse(fmt::format("does not say how {} splits into '{}' and '{}'", extent, rule.factors[open].name,
                           rule.factors[f].name));
      else
        open = f;
    }
    if (known == 0 || extent % known != 0 || (open < 0 && known != extent))
      refuse(fmt::format("has '{}' of size {} meet an extent of {}", rule.factors[factors[0]].name, known,
                         extent));
    if (open < 0) return;
    rule.factors[open].size = extent / known;
    is_known[open] = true;
  }

  int index_of(const std::string& name) {
    for (std::size_t f = 0; f < rule_.factors.size(); ++f)
      if (rule_.factors[f].name == name) return static_cast<int>(f);
    rule_.factors.push_back({.name = name});
    return static_cast<int>(rule_.factors.size()) - 1;
  }

  std::vector<DimensionFactors> indices(const Names& names) {
    std::vector<DimensionFactors> dimensions;
    for (const auto& dimension : names) {
      dimensions.emplace_back();
      for (const std::string& name : dimension) dimensions.back().push_back(index_of(name));
    }
    return dimensions;
  }

  void mark(std::string_view clause) {
    const std::vector<std::string_view> words = split(clause, ' ');
    const bool whole = words[0] == "whole", maximum = words[0] == "max";
    const auto factor = [&](std::size_t word) { return index_of(std::string(words[word])); };
    if (words[0] == "ring" && words.size() == 3) {
      rule_.factors[factor(1)].ring = factor(2);
      return;
    }
    if (!whole && !maximum) refuse(fmt::format("has an unknown mark '{}'", clause));
    for (std::size_t w = 1; w < words.size(); ++w) {
      if (words[w].empty()) continue;
      Factor& marked = rule_.factors[factor(w)];
      (whole ? marked.whole : marked.maximum) = true;
    }
  }

  const std::string notation_;
  ShardingRule rule_;
};

/// Each is read once in a thread: planning asks for few notations, for many sizes.
const RuleForm& form_of(std::string_view notation, std::span<const TensorType> operands) {
  thread_local std::unordered_map<std::string, RuleForm> known;
  std::string key(notation);
  for (const TensorType& type : operands) key += static_cast<char>(1 + type.shape.size());
  const auto at = known.find(key);
  return at != known.end() ? at->second : known.try_emplace(std::move(key), notation, operands).first->second;
}

bool mentions(const std::vector<DimensionFactors>& dimensions, int factor) {
  for (const DimensionFactors& dimension : dimensions)
    for (const int f : dimension)
      if (f == factor) return true;
  return false;
}

}  // namespace

bool ShardingRule::reduces(int result, int factor) const {
  if (mentions(results[result], factor)) return false;
  for (const auto& operand : operands)
    if (mentions(operand, factor)) return true;
  return false;
}

ShardingRule parse_rule(std::string_view notation, std::span<const TensorType> operands,
                        const std::map<std::string, std::int64_t>& sizes) {
  return form_of(notation, operands).bound(operands, sizes);
}

Shape result_shape(const ShardingRule& rule, int index) {
  Shape shape;
  for (const DimensionFactors& dimension : rule.results[index]) {
    shape.push_back(1);
    for (const int factor : dimension) shape.back() *= rule.factors[factor].size;
  }
  return shape;
}

}  // namespace alpa
