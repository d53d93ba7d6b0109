#include "apps/graph_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/graph_statistics.h"
#include "libalpa/dataset/padded_chains.h"
#include "libalpa/dataset/typical_rounds.h"
#include "libalpa/graph/mark_vertex_rows.h"
#include "libalpa/graph/vertex_rows.h"
#include "libalpa/model/writer.h"
#include "libalpa/sharding/node_price.h"

namespace alpa {
namespace {

/// Of one group of samples, there and back.
double seconds_of_rounds(const ModelDefinition& model, const CostModel& costs) {
  const Graph graph = training_step_graph(model, model.training.group_samples);
  double seconds = 0;
  for (const Node& node : graph.nodes)
    if (node.op->runs_rounds)
      seconds += kernel_seconds(*node.op, {operand_types(graph, node), node.attributes}, costs);
  return seconds;
}

}  // namespace

std::vector<ModelDefinition> forms_for_data(const ModelDefinition& model, const std::string& data, Log& log) {
  if (model.graphs.empty())
    throw Error(ErrorKind::usage,
                fmt::format("--data is given, but '{}' is not a model over graphs", model.name),
                "leave it out: plans of other models do not depend on the data");
  const std::int64_t group = model.training.group_samples;
  const VertexInputs inputs = vertex_inputs(forward_graph(model, group, false));
  const std::unique_ptr<GraphSource> source =
      open_graphs(data, {inputs.vocabulary, inputs.classes, inputs.children});
  const GraphBatching& stated = model.graphs[0].batching;
  std::vector<BatchingPolicy> policies{BatchingPolicy::frontier, BatchingPolicy::agenda};
  if (stated.policy) policies = {*stated.policy};
  if (policies[0] == BatchingPolicy::padded) check_chains(*source);
  ModelDefinition roomy = model;
  std::int64_t vertices = inputs.vertices;
  if (model.graphs[0].vertices.empty()) {
    vertices = (largest_group(*source, group, policies[0]) + group - 1) / group;
    roomy.graphs[0].vertices = std::to_string(vertices);
    log.info(
        fmt::format("room for {} vertices of each sample, in groups of {}: what the largest that can come "
                    "together take",
                    vertices, group));
  }
  std::vector<ModelDefinition> forms;
  for (const BatchingPolicy policy : policies) {
    ModelDefinition& form = forms.emplace_back(roomy);
    form.graphs[0].batching.policy = policy;
    form.graphs[0].rounds =
        typical_rounds(*source, {model.training.batch, group, inputs.children}, form.graphs[0].batching);
    const std::int64_t rows = rows_of(form.graphs[0].rounds);
    if (rows > group * vertices)
      throw Error(ErrorKind::input,
                  fmt::format("{}: {} samples have {} vertices on average, and '{}' has room for {}",
                              source->description(), group, rows, model.name, group * vertices),
                  fmt::format("[graphs] vertices = {} or more, or without it to take what the data needs",
                              (rows + group - 1) / group));
    form.expanded_toml = model_toml(form);
  }
  return forms;
}

ModelDefinition fastest_form(std::vector<ModelDefinition> forms, const CostModel& costs, Log& log) {
  std::vector<double> seconds;
  std::string text;
  for (const ModelDefinition& form : forms) {
    const GraphsDefinition& graphs = form.graphs[0];
    seconds.push_back(seconds_of_rounds(form, costs));
    text +=
        fmt::format("{}{} {} in {} rounds", text.empty() ? "" : ", ", batching_name(*graphs.batching.policy),
                    seconds_text(seconds.back()), graphs.rounds.size());
  }
  const auto best = static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin());
  log.info(fmt::format("a group of {} samples: {}", forms[best].training.group_samples, text));
  return std::move(forms[best]);
}

}  // namespace alpa
