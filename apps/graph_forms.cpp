#include "apps/graph_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/typical_rounds.h"
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

std::vector<ModelDefinition> forms_for_data(const ModelDefinition& model, const std::string& data) {
  if (model.graphs.empty())
    throw Error(ErrorKind::usage,
                fmt::format("--data is given, and '{}' is no model over graphs", model.name),
                "leave it out: plans of other models do not depend on the data");
  const std::int64_t group = model.training.group_samples;
  const Graph graph = forward_graph(model, group, false);
  const Shape& structure = value_of(graph, graph.inputs[2].value).type.shape;
  const std::int64_t children = structure[2] - 1, room = group * structure[1];
  const std::unique_ptr<GraphSource> source =
      open_graphs(data, {graph.inputs[0].below, graph.inputs[1].below, children});
  std::vector<BatchingPolicy> policies{BatchingPolicy::frontier, BatchingPolicy::agenda};
  if (const auto& stated = model.graphs[0].batching) policies = {*stated};
  std::vector<ModelDefinition> forms;
  for (const BatchingPolicy policy : policies) {
    ModelDefinition& form = forms.emplace_back(model);
    form.graphs[0].batching = policy;
    form.graphs[0].rounds = typical_rounds(*source, group, children, policy);
    const std::int64_t rows = rows_of(form.graphs[0].rounds);
    if (rows > room)
      throw Error(ErrorKind::input,
                  fmt::format("{}: {} samples have {} vertices on average, and '{}' has room for {}",
                              source->description(), group, rows, model.name, room),
                  fmt::format("[graphs] vertices = {} or more", (rows + group - 1) / group));
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
    text += fmt::format("{}{} {} in {} rounds", text.empty() ? "" : ", ", batching_name(*graphs.batching),
                        seconds_text(seconds.back()), graphs.rounds.size());
  }
  const auto best = static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin());
  log.info(fmt::format("a group of {} samples: {}", forms[best].training.group_samples, text));
  return std::move(forms[best]);
}

}  // namespace alpa
