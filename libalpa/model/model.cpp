#include "libalpa/model/model.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/graph/autodiff.h"
#include "libalpa/model/check_names.h"
#include "libalpa/model/expansion.h"
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

ModelDefinition definition(TomlDocument document, const std::vector<std::filesystem::path>& block_folders) {
  return in_step(fmt::format("reading model '{}'", document.file_name()), [&] {
    ModelText text = read_model_text(std::move(document), block_folders);
    check(text);
    finish(text.documents);
    training_step_graph(text.model, text.model.training.batch);  // finds weights that do not reach the loss
    text.model.expanded_toml = model_toml(text.model);
    return std::move(text.model);
  });
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

std::optional<ModelDefinition> padded_for(const ModelDefinition& model, int devices) {
  constexpr int kMost = 128;  // rows that are added at most
  if (model.training.pad_to != 0 || model.training.optimizer == OptimizerKind::adafactor) return {};
  int multiple = std::min(devices, kMost);
  while (devices % multiple != 0) --multiple;
  if (multiple == 1) return {};
  ModelDefinition padded = model;
  padded.training.pad_to = multiple;
  padded.expanded_toml = model_toml(padded);
  const Graph graph = forward_graph(padded, model.training.batch, true);
  if (std::ranges::none_of(graph.states, [](const State& state) { return state.padding > 0; })) return {};
  return padded;
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
  return training_graph(forward_graph(model, samples, true), op_catalog(), model.training);
}

}  // namespace alpa
