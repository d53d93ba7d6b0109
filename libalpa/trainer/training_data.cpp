#include "libalpa/trainer/training_data.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/dataset/content_fingerprint.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/graph/mark_vertex_rows.h"
#include "libalpa/trainer/array_batches.h"
#include "libalpa/trainer/token_batches.h"

namespace alpa {
namespace {

/// Rows of the table that token ids index, without padding.
std::int64_t vocabulary_of(const Graph& graph) {
  for (const Input& input : graph.inputs) {
    if (input.kind != InputKind::tokens) continue;
    for (const Node& node : graph.nodes) {
      if (node.operands.size() != 2 || node.operands[1] != input.value) continue;
      for (const State& table : graph.states)
        if (table.value == node.operands[0]) return unpadded_type(graph, table).shape[0];
    }
  }
  throw Error(ErrorKind::input, "the model looks up no tokens", "an embedding of the input 'tokens'");
}

/// The least integer of an input: -1, for none, where all that it goes to are losses that take it so.
std::int64_t least_of(const Graph& graph, const Input& input) {
  for (const Node& node : graph.nodes)
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (node.operands[i] == input.value && !(node.op->takes_no_id && node.op->ids == static_cast<int>(i)))
        return 0;
  return -1;
}

/// That documents end in the data with the id that the model is trained with.
void check_document_end(const TokenSource& tokens, std::int64_t document_end, std::int64_t vocabulary) {
  if (document_end < 0) return;
  if (document_end >= vocabulary)
    throw Error(ErrorKind::input,
                fmt::format("[training] document_end is {}, but the ids that the model takes are 0 to {}",
                            document_end, vocabulary - 1),
                "the id behind each document of the data, or -1 for sequences that are one");
  if (tokens.document_end().value_or(document_end) != document_end)
    throw Error(ErrorKind::input,
                fmt::format("[training] document_end is {}, but documents end with {} in {}", document_end,
                            *tokens.document_end(), tokens.description()),
                fmt::format("document_end = {}, or other data", *tokens.document_end()));
}

TrainingData open_token_data(const std::string& data, const Graph& graph, const TrainingOptions& options,
                             double held_out_fraction) {
  const std::int64_t vocabulary = vocabulary_of(graph);
  TrainingData opened;
  opened.tokens = open_tokens(data);
  opened.reader = std::make_unique<TokenBatches>(
      *opened.tokens, SampleOrder(opened.tokens->size(), options, held_out_fraction), options, vocabulary);
  check_document_end(*opened.tokens, options.document_end, vocabulary);
  check_tokens(*opened.tokens, vocabulary);
  return opened;
}

TrainingData open_graph_data(const std::string& data, const Graph& graph, const TrainingOptions& options,
                             double held_out_fraction, const GraphBatching& batching, std::int64_t steps) {
  const VertexInputs inputs = vertex_inputs(graph);
  const GraphRoom room{
      {inputs.vocabulary, inputs.classes, inputs.children}, options.group_samples, inputs.vertices};
  TrainingData opened;
  opened.graphs = open_graphs(data, room.limits);
  opened.reader = std::make_unique<GraphBatches>(
      *opened.graphs, SampleOrder::of_rows(opened.graphs->samples(), options, held_out_fraction), room,
      batching, options, steps);
  return opened;
}

std::string content_of(const TrainingData& data) {
  return data.tokens   ? content_fingerprint(*data.tokens)
         : data.graphs ? content_fingerprint(*data.graphs)
                       : content_fingerprint(*data.arrays);
}

}  // namespace

TrainingData open_training_data(const std::string& data, const Graph& graph, const TrainingOptions& options,
                                double held_out_fraction, const GraphBatching& batching, std::int64_t steps) {
  if (graph.inputs.front().kind == InputKind::vertices)
    return open_graph_data(data, graph, options, held_out_fraction, batching, steps);
  std::vector<ArrayInput> inputs;
  for (const Input& input : graph.inputs) {
    if (input.kind != InputKind::data) continue;
    const Value& value = value_of(graph, input.value);
    TensorType row = value.type;
    row.shape.erase(row.shape.begin());
    inputs.push_back({value.name, std::move(row), input.below, least_of(graph, input)});
  }
  if (inputs.empty()) return open_token_data(data, graph, options, held_out_fraction);
  TrainingData opened;
  opened.arrays = open_arrays(data, std::move(inputs));
  opened.reader = std::make_unique<ArrayBatches>(
      *opened.arrays, SampleOrder::of_rows(opened.arrays->rows(), options, held_out_fraction));
  return opened;
}

DataIdentity data_identity(const TrainingData& data, const TrainingData* evaluation,
                           const TrainingOptions& options) {
  const SampleOrder& order = data.reader->order();
  return {content_of(data),
          data.reader->length(),
          evaluation ? content_of(*evaluation) : "",
          order.windows(Split::training),
          order.sequence(),
          options.seed,
          fmt::format("{:016x}", order.samples_hash(0, 64))};
}

}  // namespace alpa
