#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "libalpa/base/constraint.h"
#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"
#include "libalpa/dataset/graph_formats.h"
#include "libalpa/dataset/planted_labels.h"
#include "libalpa/dataset/synthetic_trees.h"

namespace alpa {
namespace {

enum class DrawnKind { trees, complete_trees, chains };

constexpr Word<DrawnKind> drawn_kinds[] = {{"synthetic-trees", DrawnKind::trees},
                                           {"complete-trees", DrawnKind::complete_trees},
                                           {"chains", DrawnKind::chains}};

constexpr std::int64_t most_complete_leaves = (kMostVertices + 1) / 2;

/// What a name of data asks for.
struct DrawnSettings {
  DrawnKind kind = DrawnKind::trees;
  std::int64_t leaves = 0;  ///< of complete trees
  std::int64_t samples = SyntheticTrees::usual_samples;
};

const Word<DrawnKind>* drawn_kind_of(std::string_view data) {
  for (const Word<DrawnKind>& word : drawn_kinds)
    if (data.substr(0, data.find(':')) == word.name) return &word;
  return nullptr;
}

/// The next number of "12:34", taken from its front; nullopt where there is none within the bound.
std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (fault != std::errc() || value < least || value > most) return std::nullopt;
  return value;
}

DrawnSettings drawn_settings(const std::string& data) {
  const Word<DrawnKind>& word = *drawn_kind_of(data);
  const bool is_complete = word.value == DrawnKind::complete_trees;
  std::string_view rest = std::string_view(data).substr(word.name.size());
  const auto number = [&](std::int64_t& into, std::int64_t least, std::int64_t most) {
    if (!rest.starts_with(':')) return false;
    rest.remove_prefix(1);
    const auto value = take_number(rest, least, most);
    if (value) into = *value;
    return value.has_value();
  };
  DrawnSettings settings{.kind = word.value};
  bool is_right = !is_complete || number(settings.leaves, 2, most_complete_leaves);
  if (is_right && !rest.empty()) is_right = number(settings.samples, 1, kMostSamples) && rest.empty();
  if (!is_right)
    throw Error(ErrorKind::input, fmt::format("cannot draw graphs from '{}'", data),
                is_complete ? "complete-trees:LEAVES[:SAMPLES], e.g. complete-trees:128:1000"
                            : fmt::format("{0}[:SAMPLES], e.g. {0}:1000", word.name));
  return settings;
}

class DrawnGraphs final : public GraphSource {
 public:
  DrawnGraphs(const DrawnSettings& settings, SyntheticTrees trees)
      : settings_(settings), trees_(std::move(trees)) {}

  std::int64_t samples() const override { return settings_.samples; }

  std::int32_t vertices(std::int64_t sample) const override {
    switch (settings_.kind) {
      case DrawnKind::trees:
        return 2 * trees_.words(sample) - 1;
      case DrawnKind::complete_trees:
        return static_cast<std::int32_t>(2 * settings_.leaves - 1);
      case DrawnKind::chains:
        return trees_.words(sample);
    }
    return 0;
  }

  std::int32_t labelled(std::int64_t sample) const override { return vertices(sample); }

  std::int64_t held_bytes() const override { return trees_.held_bytes(); }

  void read(std::int64_t sample, VertexGraph& into) override {
    switch (settings_.kind) {
      case DrawnKind::trees:
        return trees_.draw_tree(sample, into);
      case DrawnKind::complete_trees:
        return trees_.draw_complete_tree(sample, static_cast<std::int32_t>(settings_.leaves), into);
      case DrawnKind::chains:
        return trees_.draw_chain(sample, into);
    }
  }

  std::string description() const override {
    switch (settings_.kind) {
      case DrawnKind::trees:
        return fmt::format("{} drawn trees of the shape of SST's", samples());
      case DrawnKind::complete_trees:
        return fmt::format("{} complete trees of {} leaves (as Tree-FC's)", samples(), settings_.leaves);
      case DrawnKind::chains:
        return fmt::format("{} drawn chains as long as SST's sentences", samples());
    }
    return {};
  }

 private:
  DrawnSettings settings_;
  SyntheticTrees trees_;
};

}  // namespace

bool names_drawn_graphs(const std::string& data) { return drawn_kind_of(data) != nullptr; }

std::unique_ptr<GraphSource> make_drawn_graphs(const std::string& data, const GraphLimits& limits,
                                               std::uint64_t seed) {
  const DrawnSettings settings = drawn_settings(data);
  const int children = settings.kind == DrawnKind::chains ? 1 : 2;
  if (limits.children < children)
    throw Error(ErrorKind::input,
                fmt::format("vertices of '{}' have up to {} children, but the model takes {}", data, children,
                            limits.children),
                "let the model take more, or give it other data");
  if (limits.classes < kPlantedClasses || limits.vocabulary < 1)
    throw Error(ErrorKind::input,
                fmt::format("'{}' has {} classes, and the model {} (and {} words)", data, kPlantedClasses,
                            limits.classes, limits.vocabulary),
                fmt::format("a model of {} classes or more, and of one word or more", kPlantedClasses));
  return std::make_unique<DrawnGraphs>(
      settings, SyntheticTrees(seed, std::min(limits.vocabulary, SyntheticTrees::usual_words)));
}

}  // namespace alpa
