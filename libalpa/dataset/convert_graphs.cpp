#include <fmt/core.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/permutation.h"
#include "libalpa/base/philox.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/converted_file.h"
#include "libalpa/dataset/graph_statistics.h"
#include "libalpa/h5/rows_writer.h"

namespace alpa {
namespace {

/// A file of trees, as open_graphs() reads them, with what is known of them.
class GraphsFile {
 public:
  GraphsFile(const std::filesystem::path& path, const GraphStatistics& statistics, const GraphFacts& facts,
             const Provenance& provenance)
      : file_(path, converted_format, converted_version) {
    const std::int64_t vertices = statistics.vertices();
    offsets_ = file_.declare("/offsets", RowsType::i64, {statistics.samples() + 1});
    tokens_ = file_.declare("/tokens", RowsType::i32, {vertices});
    labels_ = file_.declare("/labels", RowsType::i32, {vertices});
    parents_ = file_.declare("/parents", RowsType::i32, {vertices});
    file_.attribute("/tokens", "vocabulary", facts.vocabulary);
    file_.attribute("/labels", "classes", facts.classes);
    if (!facts.words.empty()) file_.strings("/words", facts.words);
    write_statistics(file_, statistics);
    file_.provenance(provenance);
    file_.append(offsets_, 1, &end_);
  }

  void append(const VertexGraph& graph) {
    parents_of_.assign(static_cast<std::size_t>(graph.vertices()), -1);
    for (std::int32_t vertex = 0; vertex < graph.vertices(); ++vertex)
      for (const std::int32_t child : graph.children_of(vertex)) parents_of_[child] = vertex;
    file_.append(tokens_, graph.vertices(), graph.tokens.data());
    file_.append(labels_, graph.vertices(), graph.labels.data());
    file_.append(parents_, graph.vertices(), parents_of_.data());
    end_ += graph.vertices();
    file_.append(offsets_, 1, &end_);
  }

  void publish() { file_.publish(); }

 private:
  H5RowsWriter file_;
  int offsets_ = 0, tokens_ = 0, labels_ = 0, parents_ = 0;
  std::int64_t end_ = 0;
  std::vector<std::int32_t> parents_of_;
};

}  // namespace

void convert_graphs(GraphSource& source, const GraphFacts& facts, const ConvertSettings& settings,
                    const Provenance& provenance, Log& log) {
  const std::int64_t samples = source.samples();
  const std::int64_t held_out = held_out_rows(settings, samples), kept = samples - held_out;
  const std::uint64_t key =
      philox_key(static_cast<std::uint64_t>(settings.seed), hash64("order of converted rows"));
  VertexGraph graph;
  const auto for_each_graph = [&](auto&& take) {
    for (std::int64_t i = 0; i < samples; ++i) {
      source.read(settings.order == RowOrder::shuffled ? permuted(i, samples, key, 0) : i, graph);
      take(i >= kept);
    }
  };
  std::array<GraphCounts, 2> counts;  // [whether held out]
  for_each_graph([&](bool is_held_out) { counts[is_held_out].add(graph); });
  const GraphStatistics of_training = counts[0].statistics(), of_evaluation = counts[1].statistics();

  constexpr std::int64_t vertex_bytes = 3 * sizeof(std::int32_t);
  ByteProgress progress(fmt::format("writing '{}'", settings.out.string()),
                        (of_training.vertices() + of_evaluation.vertices()) * vertex_bytes, log);
  GraphsFile training(settings.out, of_training, facts, provenance);
  std::optional<GraphsFile> evaluation;
  if (held_out > 0) evaluation.emplace(hold_out_file(settings), of_evaluation, facts, provenance);
  for_each_graph([&](bool is_held_out) {
    (is_held_out ? *evaluation : training).append(graph);
    progress.add(graph.vertices() * vertex_bytes);
  });
  training.publish();
  if (evaluation) evaluation->publish();
  log.info(fmt::format("{}: {} of {:.1f} vertices, up to {} high, {} words, {} classes; {}",
                       source.description(), count_text(samples, "tree"), of_training.mean_vertices(),
                       of_training.greatest_height(), facts.vocabulary, facts.classes,
                       where_rows_went(settings, kept, held_out)));
}

}  // namespace alpa
