#include "libalpa/model/model.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/graph/autodiff.h"
#include "libalpa/graph/fusion.h"
#include "libalpa/graph/mark_vertex_rows.h"
#include "libalpa/model/check_names.h"
#include "libalpa/model/expansion.h"
#include "libalpa/model/numbers.h"
#include "libalpa/model/reader.h"
#include "libalpa/model/writer.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

/// Throws the faults of all documents as one Error.
void finish(std::deque<TomlDocument>& documents) {
  std::string text;
  for (TomlDocument& document : documents) {
    try {
      document.finish();
    } catch (const Error& error) {
      text += (text.empty() ? "" : "\n") + error.happened();
    }
  }
  if (!text.empty()) throw Error(ErrorKind::input, text);
}

std::size_t fault_count(const std::deque<TomlDocument>& documents) {
  std::size_t count = 0;
  for (const TomlDocument& document : documents) count += document.fault_count();
  return count;
}

/// Notes in the documents what is wrong with names, numbers and shapes. Each kind is looked for where the
/// kinds before it left something to look at.
void check(ModelText& text) {
  ModelFaults faults;
  check_names(text.model, text.unsound, faults);
  model_numbers(text.model, faults);
  if (faults.none()) paper_flops(text.model, faults);
  if (faults.none() && fault_count(text.documents) == 0)
    expanded_graph(text.model, text.model.training.batch, true, faults);
  for (const ModelFaults::Fault& fault : faults.all())
    text.documents[fault.place.source].fault(fault.place.at, fault.text);
}

Graph step_graph(const ModelDefinition& model, std::int64_t samples) {
  const OpCatalog ops = op_catalog();
  const Graph forward = with_fused_operators(forward_graph(model, samples, true), ops);
  Graph graph = with_fused_operators(training_graph(forward, ops, model.training), ops);
  if (model.graphs.empty()) return graph;
  return with_vertex_rows(std::move(graph), model.training.group_samples, model.graphs[0].rounds);
}

ModelDefinition definition(TomlDocument document, const std::vector<std::filesystem::path>& block_folders) {
  return in_step(fmt::format("reading model '{}'", document.file_name()), [&] {
    ModelText text = read_model_text(std::move(document), block_folders);
    check(text);
    finish(text.documents);
    step_graph(text.model, text.model.training.batch);  // finds weights that do not reach the loss
    text.model.expanded_toml = model_toml(text.model);
    return std::move(text.model);
  });
}

std::optional<ModelDefinition> padded_to(ModelDefinition model, std::int64_t TrainingOptions::*option,
                                         int multiple) {
  if (multiple == 1 || model.training.optimizer == OptimizerKind::adafactor) return {};
  model.training.*option = multiple;
  model.expanded_toml = model_toml(model);
  return model;
}

Graph whole_graph(const ModelDefinition& model) { return forward_graph(model, model.training.batch, true); }

/// By how much of itself a weight of the same model is larger with padding, at most.
double most_growth(const Graph& without, const Graph& with) {
  const auto elements = [](const Graph& graph, StateIndex s) {
    return static_cast<double>(element_count(value_of(graph, graph.states[s].value).type.shape));
  };
  double most = 0;
  for (const StateIndex s : with.states.indices())
    most = std::max(most, elements(with, s) / elements(without, s) - 1);
  return most;
}

}  // namespace

ModelDefinition read_model(const std::filesystem::path& file,
                           const std::vector<std::filesystem::path>& block_folders) {
  return definition(read_toml(file), block_folders);
}

ModelDefinition parse_model(std::string_view text, const std::string& file_name,
                            const std::vector<std::filesystem::path>& block_folders) {
  return definition(TomlDocument::parse(text, file_name), block_folders);
}

std::optional<ModelDefinition> with_padded_vocabulary(const ModelDefinition& model, int devices) {
  constexpr int kMost = 128;  // rows that are added at most
  if (model.training.pad_to != 0) return {};
  int multiple = std::min(devices, kMost);
  while (devices % multiple != 0) --multiple;
  std::optional<ModelDefinition> padded = padded_to(model, &TrainingOptions::pad_to, multiple);
  return padded && most_growth(whole_graph(model), whole_graph(*padded)) > 0 ? padded : std::nullopt;
}

std::optional<ModelDefinition> with_padded_heads(const ModelDefinition& model, int devices) {
  constexpr double kMost = 1.0 / 8;
  constexpr int kLargest = 32;  // devices that share the heads of a layer
  if (model.training.pad_heads_to != 0) return {};
  const Graph without = whole_graph(model);
  for (int multiple = kLargest; multiple > 1; multiple /= 2) {
    if (devices % multiple != 0) continue;
    std::optional<ModelDefinition> padded = padded_to(model, &TrainingOptions::pad_heads_to, multiple);
    if (!padded) return {};
    const double growth = most_growth(without, whole_graph(*padded));
    if (growth <= kMost) return growth > 0 ? padded : std::nullopt;
  }
  return {};
}

std::optional<double> paper_flops(const ModelDefinition& model) {
  ModelFaults none;  // they were looked for when it was read
  return paper_flops(model, none);
}

Graph forward_graph(const ModelDefinition& model, std::int64_t samples, bool training) {
  ModelFaults faults;
  Graph graph = expanded_graph(model, samples, training, faults);
  faults.throw_if_any(model.sources);
  return graph;
}

Graph training_step_graph(const ModelDefinition& model, std::int64_t samples) {
  if (!model.graphs.empty() && model.graphs[0].vertices.empty())
    throw Error(
        ErrorKind::input,
        fmt::format("'vertices' is missing in [graphs] of '{}': for how many of each sample, on average, "
                    "there is room",
                    model.name),
        "a number, or --data for as many as the largest samples that can come together take");
  return step_graph(model, samples);
}

}  // namespace alpa
