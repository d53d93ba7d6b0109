#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/names.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/graph_formats.h"
#include "libalpa/dataset/text_lines.h"
#include "libalpa/h5/file.h"

namespace alpa {
namespace {

constexpr const char* tree_form = "give a tree on each line, as (3 (2 It) (4 (2 's) (3 good)))";

/// Ids of words, in the order in which they come first, or those of a vocabulary.
class WordIds {
 public:
  explicit WordIds(std::vector<std::string> words) : words_(std::move(words)), is_complete_(!words_.empty()) {
    if (words_.empty()) words_.emplace_back(unknown_word);
    for (std::size_t id = 0; id < words_.size(); ++id)
      ids_.emplace(words_[id], static_cast<std::int32_t>(id));
    counts_.resize(words_.size(), 0);
  }

  std::int32_t id_of(std::string_view word) {
    auto found = ids_.find(std::string(word));
    if (found == ids_.end()) {
      if (is_complete_) return 0;
      found = ids_.emplace(word, static_cast<std::int32_t>(words_.size())).first;
      words_.emplace_back(word);
      counts_.push_back(0);
    }
    ++counts_[found->second];
    return found->second;
  }

  /// [id] the place of each word once they are sorted by how often they were asked for; that of unknown words
  /// stays. A vocabulary keeps its order.
  std::vector<std::int32_t> places() const {
    std::vector<std::int32_t> ids(words_.size()), places(words_.size());
    std::iota(ids.begin(), ids.end(), 0);
    if (!is_complete_)
      std::stable_sort(ids.begin() + 1, ids.end(),
                       [&](std::int32_t a, std::int32_t b) { return counts_[a] > counts_[b]; });
    for (std::size_t place = 0; place < ids.size(); ++place)
      places[ids[place]] = static_cast<std::int32_t>(place);
    return places;
  }

  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;  ///< [id]
  bool is_complete_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<std::int64_t> counts_;  ///< [id]
};

/// Takes lines apart.
class TreeParser {
 public:
  explicit TreeParser(WordIds& words) : words_(words) {}

  /// Replaces `tree` by that of a line; false for a line of spaces alone.
  bool parse(std::string_view line, const TextLines& lines, VertexGraph& tree) {
    text_ = line;
    at_ = 0;
    lines_ = &lines;
    tree.clear();
    open_.clear();
    closed_.clear();
    skip_spaces();
    if (at_ == text_.size()) return false;
    if (text_[at_] != '(') throw fault("a tree begins with '('");
    do {
      step(tree);
      skip_spaces();
    } while (!open_.empty() && at_ < text_.size());
    if (!open_.empty()) throw fault(fmt::format("the line ends before {} ')'", open_.size()));
    if (at_ < text_.size()) throw fault("something follows the tree");
    return true;
  }

  std::int32_t highest_label() const { return highest_label_; }

 private:
  /// A vertex whose ')' has not come yet.
  struct Open {
    std::int32_t label;
    std::int32_t token = -1;
    std::size_t first_child;  ///< of closed_
  };

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  Error fault(const std::string& what) const {
    return lines_->error(fmt::format("column {}: {}", at_ + 1, what), tree_form);
  }

  /// The next of '(' with a label, ')' and a word.
  void step(VertexGraph& tree) {
    if (text_[at_] == '(') return open();
    if (text_[at_] == ')') return close(tree);
    Open& vertex = open_.back();
    if (vertex.token >= 0) throw fault("a second word at one vertex");
    if (closed_.size() > vertex.first_child) throw fault("a word beside the children of a vertex");
    const std::size_t end = std::min(text_.find_first_of(" ()", at_), text_.size());
    const std::string_view word = text_.substr(at_, end - at_);
    if (!is_name(word))
      throw fault(
          fmt::format("expected a word of 1 to {} bytes of UTF-8 without control characters", kLongestName));
    vertex.token = words_.id_of(word);
    at_ = end;
  }

  void open() {
    if (!open_.empty() && open_.back().token >= 0) throw fault("a child beside the word of a vertex");
    ++at_;
    std::int32_t label = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, failed] = std::from_chars(begin, text_.data() + text_.size(), label);
    const bool ends = end == text_.data() + text_.size() || *end == ' ' || *end == '(' || *end == ')';
    if (failed != std::errc() || !ends || label < 0 || label >= kMostIds - 1)
      throw fault("expected a label, an integer from 0 on");
    at_ += static_cast<std::size_t>(end - begin);
    highest_label_ = std::max(highest_label_, label);
    open_.push_back({label, -1, closed_.size()});
  }

  void close(VertexGraph& tree) {
    const Open vertex = open_.back();
    const auto children = std::span(closed_).subspan(vertex.first_child);
    if (vertex.token < 0 && children.empty()) throw fault("a vertex with neither word nor children");
    const std::int32_t number = tree.add(vertex.token, vertex.label, children);
    closed_.resize(vertex.first_child);
    closed_.push_back(number);
    open_.pop_back();
    ++at_;
  }

  WordIds& words_;
  std::string_view text_;
  std::size_t at_ = 0;
  const TextLines* lines_ = nullptr;
  std::vector<Open> open_;
  std::vector<std::int32_t> closed_;  ///< vertices whose parent's ')' has not come yet
  std::int32_t highest_label_ = 0;
};

/// Trees as they lie in the scratch file: of each its tokens (as they were first given), labels, ends of
/// children, and children, which are all vertices but the last.
class TreebankGraphs final : public GraphSource {
 public:
  TreebankGraphs(std::vector<std::int64_t> offsets, std::vector<std::int32_t> places, InputFile trees)
      : offsets_(std::move(offsets)), places_(std::move(places)), file_(std::move(trees)) {}

  std::int64_t samples() const override { return std::ssize(offsets_) - 1; }
  std::int32_t vertices(std::int64_t sample) const override {
    return static_cast<std::int32_t>(offsets_[sample + 1] - offsets_[sample]);
  }
  std::int32_t labelled(std::int64_t sample) const override { return vertices(sample); }

  void read(std::int64_t sample, VertexGraph& into) override {
    const auto count = static_cast<std::size_t>(vertices(sample));
    std::int64_t at = byte_of(sample);
    const auto take = [&](std::vector<std::int32_t>& values, std::size_t size) {
      values.resize(size);
      file_.read(at, values.data(), size * sizeof values[0]);
      at += static_cast<std::int64_t>(size * sizeof values[0]);
    };
    take(into.tokens, count);
    take(into.labels, count);
    take(into.child_ends, count);
    take(into.children, count - 1);
    for (std::int32_t& token : into.tokens)
      if (token >= 0) token = places_[token];
  }

  std::string description() const override { return fmt::format("treebank '{}'", file_.path().string()); }

  static void append(const VertexGraph& tree, std::string& bytes) {
    for (const auto* values : {&tree.tokens, &tree.labels, &tree.child_ends, &tree.children})
      bytes.append(reinterpret_cast<const char*>(values->data()), values->size() * sizeof(std::int32_t));
  }

 private:
  /// Four numbers of each vertex of the trees before, less one of each tree.
  std::int64_t byte_of(std::int64_t sample) const {
    return (4 * offsets_[sample] - sample) * static_cast<std::int64_t>(sizeof(std::int32_t));
  }

  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> places_;  ///< [token as in the scratch file] in the vocabulary
  InputFile file_;
};

}  // namespace

TreebankSamples open_treebank(const std::filesystem::path& path, std::vector<std::string> words,
                              const std::filesystem::path& scratch_folder, Log& log) {
  TextLines lines(path, tree_form);
  WordIds ids(std::move(words));
  TreeParser parser(ids);
  ScratchFile scratch(scratch_folder);
  ByteProgress progress(fmt::format("reading '{}'", path.string()), lines.file_bytes(), log);
  std::vector<std::int64_t> offsets{0};
  VertexGraph tree;
  std::string bytes;
  std::int64_t reported = 0;
  while (const auto line = lines.next()) {
    if (!parser.parse(*line, lines, tree)) continue;
    offsets.push_back(offsets.back() + tree.vertices());
    TreebankGraphs::append(tree, bytes);
    if (bytes.size() < 1 << 20) continue;
    scratch.append(std::exchange(bytes, {}));
    progress.add(lines.bytes_taken() - std::exchange(reported, lines.bytes_taken()));
  }
  scratch.append(bytes);
  const std::vector<std::int32_t> places = ids.places();
  GraphFacts facts;
  facts.vocabulary = std::ssize(places);
  facts.classes = std::int64_t{parser.highest_label()} + 1;
  facts.words.resize(places.size());
  for (std::size_t id = 0; id < places.size(); ++id) facts.words[places[id]] = ids.words()[id];
  return {std::make_unique<TreebankGraphs>(std::move(offsets), places, scratch.finished(path)),
          std::move(facts)};
}

std::vector<std::string> words_of(const std::filesystem::path& converted) {
  std::vector<std::string> words = H5Reader(converted, "alpa-data", "1.0").strings("/words", {-1});
  if (words.empty() || words[0] != unknown_word)
    throw Error(ErrorKind::input,
                fmt::format("'{}': '/words' does not begin with '{}'", converted.string(), unknown_word),
                "a file that alpa-train convert --from ptb-trees made");
  return words;
}

}  // namespace alpa
