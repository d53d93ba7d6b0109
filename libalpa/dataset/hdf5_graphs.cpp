#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"
#include "libalpa/dataset/graph_formats.h"
#include "libalpa/h5/rows.h"

namespace alpa {
namespace {

constexpr const char* of_tokens = "store integers of [vertices] as '/tokens', -1: none";
constexpr const char* of_labels = "store integers of [vertices] as '/labels', -1: none";
constexpr const char* of_parents =
    "store integers of [vertices] as '/parents', numbers within the sample, -1: none; or '/edges'";
constexpr const char* of_edges =
    "store integers of [edges, 2] as '/edges', child and parent by their numbers within the sample";
constexpr const char* of_offsets =
    "store where the vertices of each sample begin as '/offsets', integers of [samples + 1]: from 0, "
    "ascending, to the number of all";
constexpr const char* of_edge_offsets =
    "store where the edges of each sample begin as '/edge_offsets', integers of [samples + 1]: from 0, not "
    "descending, to the number of all";
constexpr const char* take_more = "make the data again, or let the model take more";
constexpr const char* in_order = "number the vertices of a sample so that children come before their parents";

H5Rows open_column(const std::filesystem::path& path, const char* dataset, const char* hint, int rank = 1) {
  H5Rows rows(path, dataset, hint);
  const Shape& extent = rows.extent();
  if (!rows.is_integer() || std::ssize(extent) != rank || (rank == 2 && extent[1] != 2))
    throw rows.error(fmt::format("expected integers of {}, found {} of [{}]",
                                 rank == 1 ? "one dimension" : "[edges, 2]",
                                 rows.is_integer() ? "integers" : "numbers", shape_text(extent)));
  return rows;
}

bool has_edges(const std::filesystem::path& path) {
  const bool edges = has_dataset(path, "/edges");
  if (edges && has_dataset(path, "/parents"))
    throw Error(
        ErrorKind::input,
        fmt::format("'{}' has '/parents' and '/edges', but only one of them may say what the graphs are",
                    path.string()),
        "leave out the other");
  return edges;
}

/// Where the `count` rows of all samples begin, and their end. Samples of `fewest` rows or more.
std::vector<std::int64_t> offsets_of(const H5Rows& stored, std::int64_t count, std::int64_t fewest) {
  const std::int64_t samples = stored.extent()[0] - 1;
  if (samples < 1 || samples > kMostSamples)
    throw stored.error(
        fmt::format("expected 1 to {} samples and the end of the last, found {}", kMostSamples, samples + 1));
  if (fewest > 0 && samples > count / fewest)
    throw stored.error(fmt::format("describes {} samples, but there are {} vertices", samples, count));
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(samples) + 1);
  stored.read(0, samples + 1, offsets.data());
  if (offsets[0] != 0) throw stored.error(fmt::format("begins with {}, expected 0", offsets[0]));
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    const std::int64_t begin = offsets[i - 1], end = offsets[i];
    if (end < begin)
      throw stored.error(
          fmt::format("sample {} begins at {} and ends at {}, expected ascending", i - 1, begin, end));
    if (end > count)
      throw stored.error(fmt::format("sample {} ends at {}, but there are {}", i - 1, end, count));
    if (end - begin < fewest)
      throw stored.error(fmt::format("sample {} has no vertices, expected at least one", i - 1));
  }
  if (offsets.back() != count)
    throw stored.error(fmt::format("ends with {}, but there are {}", offsets.back(), count));
  return offsets;
}

/// Columns are read by ranges of rows as those of ArraySource are, so nothing of them has to be held, and
/// where they lie in the file as they are no HDF5 is called on the thread that reads ahead.
class Hdf5Graphs final : public GraphSource {
 public:
  Hdf5Graphs(const std::filesystem::path& path, const GraphLimits& limits)
      : path_(path),
        limits_(limits),
        has_edges_(has_edges(path)),
        tokens_(open_column(path, "/tokens", of_tokens)),
        labels_(open_column(path, "/labels", of_labels)),
        links_(has_edges_ ? open_column(path, "/edges", of_edges, 2)
                          : open_column(path, "/parents", of_parents)) {
    const std::int64_t vertices = tokens_.extent()[0];
    for (const H5Rows* column : {&labels_, has_edges_ ? &labels_ : &links_})
      if (column->extent()[0] != vertices)
        throw column->error(
            fmt::format("has {} vertices, but '/tokens' has {}", column->extent()[0], vertices));
    offsets_ = offsets_of(open_column(path, "/offsets", of_offsets), vertices, 1);
    if (has_edges_) {
      const H5Rows stored = open_column(path, "/edge_offsets", of_edge_offsets);
      if (stored.extent()[0] != std::ssize(offsets_))
        throw stored.error(
            fmt::format("has {} samples, but '/offsets' has {}", stored.extent()[0] - 1, samples()));
      edge_offsets_ = offsets_of(stored, links_.extent()[0], 0);
    }
    look_through();
  }

  std::int64_t samples() const override { return std::ssize(offsets_) - 1; }

  std::int32_t vertices(std::int64_t sample) const override {
    return static_cast<std::int32_t>(offsets_[sample + 1] - offsets_[sample]);
  }

  std::int32_t labelled(std::int64_t sample) const override { return labelled_[sample]; }

  bool can_read_ahead() const override {
    return tokens_.is_plain() && labels_.is_plain() && links_.is_plain();
  }

  std::int64_t held_bytes() const override {
    const auto bytes = [](const auto& held) {
      return static_cast<std::int64_t>(held.capacity() * sizeof held[0]);
    };
    return tokens_.held_bytes() + labels_.held_bytes() + links_.held_bytes() + bytes(offsets_) +
           bytes(edge_offsets_) + bytes(labelled_) + bytes(token_piece_) + bytes(label_piece_) +
           bytes(link_piece_) + bytes(seen_);
  }

  void read(std::int64_t sample, VertexGraph& into) override {
    fill(sample, sample + 1);
    take(sample, sample, into);
  }

  std::string description() const override {
    return fmt::format("'{}', {} graphs of {} vertices", path_.string(), samples(), offsets_.back());
  }

 private:
  Error fault(const char* dataset, std::int64_t sample, std::int32_t vertex, const std::string& problem,
              const char* hint) const {
    return Error(
        ErrorKind::input,
        fmt::format("'{}': '{}': sample {}, vertex {}: {}", path_.string(), dataset, sample, vertex, problem),
        hint);
  }

  const std::vector<std::int64_t>& link_offsets() const { return has_edges_ ? edge_offsets_ : offsets_; }
  std::int32_t links_of(std::int64_t sample) const {
    return static_cast<std::int32_t>(link_offsets()[sample + 1] - link_offsets()[sample]);
  }

  /// What no sample may have, so that the rest fits numbers of 32 bits, and memory.
  void check_size(std::int64_t sample) const {
    const std::int64_t vertices = offsets_[sample + 1] - offsets_[sample];
    if (vertices > kMostVertices)
      throw Error(ErrorKind::input,
                  fmt::format("'{}': '/offsets': sample {} has {} vertices, but {} is the most",
                              path_.string(), sample, vertices, kMostVertices),
                  "cut it into smaller graphs");
    if (!has_edges_) return;
    const std::int64_t edges = edge_offsets_[sample + 1] - edge_offsets_[sample];
    const std::int64_t most = std::min<std::int64_t>(limits_.children * vertices, 1 << 30);
    if (edges > most)
      throw Error(ErrorKind::input,
                  fmt::format("'{}': '/edge_offsets': sample {} has {} edges, and its {} vertices of at most "
                              "{} children {} at most",
                              path_.string(), sample, edges, vertices, limits_.children, most),
                  take_more);
  }

  /// Reads some samples at a time, as many as do not take more memory than a large one.
  void look_through() {
    constexpr std::int64_t piece = 1 << 16;
    labelled_.resize(offsets_.size() - 1);
    VertexGraph graph;
    for (std::int64_t first = 0, last = 0; first < samples(); first = last) {
      do check_size(last++);
      while (last < samples() && offsets_[last + 1] - offsets_[first] <= piece &&
             link_offsets()[last + 1] - link_offsets()[first] <= piece);
      fill(first, last);
      for (std::int64_t sample = first; sample < last; ++sample) {
        take(sample, first, graph);
        labelled_[sample] = static_cast<std::int32_t>(
            std::ranges::count_if(graph.labels, [](std::int32_t label) { return label >= 0; }));
      }
    }
  }

  /// Brings the rows of samples [first, last) into memory.
  void fill(std::int64_t first, std::int64_t last) {
    const std::int64_t begin = offsets_[first], count = offsets_[last] - begin;
    token_piece_.resize(static_cast<std::size_t>(count));
    label_piece_.resize(static_cast<std::size_t>(count));
    tokens_.read(begin, count, token_piece_.data());
    labels_.read(begin, count, label_piece_.data());
    const std::int64_t first_link = link_offsets()[first], links = link_offsets()[last] - first_link;
    link_piece_.resize(static_cast<std::size_t>(links) * (has_edges_ ? 2 : 1));
    links_.read(first_link, links, link_piece_.data());
  }

  /// The graph of a sample of those in memory, which begin with `first`; all that it says is checked.
  void take(std::int64_t sample, std::int64_t first, VertexGraph& into) {
    const auto values = [&](const std::vector<std::int32_t>& piece) {
      return std::span(piece).subspan(offsets_[sample] - offsets_[first], vertices(sample));
    };
    take_values("/tokens", "token", sample, values(token_piece_), limits_.vocabulary, into.tokens);
    take_values("/labels", "label", sample, values(label_piece_), limits_.classes, into.labels);
    into.child_ends.assign(static_cast<std::size_t>(vertices(sample)), 0);
    for_each_link(sample, first, [&](std::int32_t child, std::int32_t parent) {
      check_link(sample, child, parent);
      if (++into.child_ends[parent] > limits_.children)
        throw fault(links_name(), sample, parent,
                    fmt::format("it has more than {} children, which the model takes", limits_.children),
                    take_more);
    });
    std::int32_t begin = 0;
    for (std::int32_t& end : into.child_ends) begin += std::exchange(end, begin);
    into.children.resize(static_cast<std::size_t>(begin));
    for_each_link(sample, first, [&](std::int32_t child, std::int32_t parent) {
      into.children[into.child_ends[parent]++] = child;
    });
    if (has_edges_) check_edges_differ(sample, into);
  }

  void take_values(const char* dataset, const char* what, std::int64_t sample,
                   std::span<const std::int32_t> values, std::int64_t below,
                   std::vector<std::int32_t>& into) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] < -1 || values[i] >= below)
        throw fault(
            dataset, sample, static_cast<std::int32_t>(i),
            fmt::format("its {} is {}, but the model takes -1 (none) to {}", what, values[i], below - 1),
            take_more);
    into.assign(values.begin(), values.end());
  }

  const char* links_name() const { return has_edges_ ? "/edges" : "/parents"; }

  /// Calls found(child, parent) in the order of the data.
  template <class Found>
  void for_each_link(std::int64_t sample, std::int64_t first, Found&& found) const {
    const std::int64_t begin = link_offsets()[sample] - link_offsets()[first];
    for (std::int32_t i = 0; i < links_of(sample); ++i)
      if (has_edges_)
        found(link_piece_[2 * (begin + i)], link_piece_[2 * (begin + i) + 1]);
      else if (link_piece_[begin + i] != -1)
        found(i, link_piece_[begin + i]);
  }

  void check_link(std::int64_t sample, std::int32_t child, std::int32_t parent) const {
    const std::int32_t last = vertices(sample) - 1;
    if (child < 0 || child > last)
      throw fault(links_name(), sample, parent, fmt::format("its child is {}, expected 0 to {}", child, last),
                  of_edges);
    if (parent < 0 || parent > last)
      throw fault(links_name(), sample, child,
                  fmt::format("its parent is {}, expected 0 to {}{}", parent, last,
                              has_edges_ ? "" : ", or -1 for none"),
                  has_edges_ ? of_edges : of_parents);
    if (child >= parent)
      throw fault(links_name(), sample, child,
                  fmt::format("its parent is {}, expected a vertex that comes after it, which all parents "
                              "do unless they go in a cycle",
                              parent),
                  in_order);
  }

  void check_edges_differ(std::int64_t sample, const VertexGraph& graph) {
    seen_.assign(static_cast<std::size_t>(graph.vertices()), -1);
    for (std::int32_t parent = 0; parent < graph.vertices(); ++parent)
      for (const std::int32_t child : graph.children_of(parent))
        if (std::exchange(seen_[child], parent) == parent)
          throw fault("/edges", sample, parent,
                      fmt::format("two edges make {} its child, expected one", child),
                      "leave out the second");
  }

  std::filesystem::path path_;
  GraphLimits limits_;
  bool has_edges_;
  H5Rows tokens_, labels_, links_;
  std::vector<std::int64_t> offsets_, edge_offsets_;
  std::vector<std::int32_t> labelled_;
  std::vector<std::int32_t> token_piece_, label_piece_, link_piece_;  ///< of the samples at hand
  std::vector<std::int32_t> seen_;  ///< [vertex] the parent that it was last found to be a child of
};

}  // namespace

std::unique_ptr<GraphSource> open_hdf5_graphs(const std::filesystem::path& path, const GraphLimits& limits) {
  return std::make_unique<Hdf5Graphs>(path, limits);
}

}  // namespace alpa
