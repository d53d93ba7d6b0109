#include "libalpa/trainer/training_data.h"

#include "libalpa/base/error.h"

namespace alpa {
namespace {

/// Extent of the dimension that token ids index.
std::int64_t vocabulary_of(const Graph& graph) {
  for (const Input& input : graph.inputs) {
    if (input.kind != InputKind::tokens) continue;
    for (const Node& node : graph.nodes)
      if (node.operands.size() == 2 && node.operands[1] == input.value)
        return value_of(graph, node.operands[0]).type.shape[0];
  }
  throw Error(ErrorKind::input, "the model looks up no tokens", "an embedding of the input 'tokens'");
}

}  // namespace

TrainingData open_training_data(const std::string& data, const Graph& graph, const TrainingOptions& options) {
  const std::int64_t vocabulary = vocabulary_of(graph);
  TrainingData opened;
  opened.source = open_tokens(data);
  opened.reader = std::make_unique<BatchReader>(*opened.source, SampleOrder(opened.source->size(), options),
                                                options, vocabulary);
  check_tokens(*opened.source, data_vocabulary(options.objective, vocabulary));
  return opened;
}

}  // namespace alpa
