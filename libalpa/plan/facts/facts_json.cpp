#include "libalpa/plan/facts/facts_json.h"

#include "libalpa/plan/facts/mesh_columns.h"
#include "libalpa/plan/facts/stage_columns.h"

namespace alpa {
namespace {

template <class Items, class ToJson>
JsonArray array_of(const Items& items, ToJson to_json) {
  JsonArray array;
  for (const auto& item : items) array.add(to_json(item));
  return array;
}

JsonArray numbers(const std::vector<StageIndex>& stages) {
  JsonArray array;
  for (const StageIndex s : stages) array.add(static_cast<int>(s));
  return array;
}

JsonObject axis_json(const AxisUse& use) {
  JsonObject shares;
  for (const auto& [kind, share] : use.shares) shares.set(parallelism_word(kind), share);
  return JsonObject()
      .set("devices", use.devices)
      .set("shares_of_flops", shares)
      .set("splits_sequence_between", use.splits_sequence_between);
}

JsonObject layout_json(const LayoutGroup& group) {
  JsonArray names;
  for (const std::string& name : group.names) names.add(name);
  return JsonObject().set("layout", group.layout).set("count", group.count).set("names", names);
}

JsonArray words(const std::vector<std::string>& all) {
  return array_of(all, [](const std::string& word) { return word; });
}

JsonObject part_json(const Cluster& part) {
  return JsonObject()
      .set("name", part.name)
      .set("device", part.device)
      .set("nodes", part.nodes)
      .set("memory_bytes", part.memory_bytes);
}

JsonObject arrival_json(const ArrivalGroup& a) {
  return JsonObject()
      .set("values", words(a.names))
      .set("type", a.type)
      .set("from_stage", static_cast<int>(a.from_stage))
      .set("from_layout", a.from)
      .set("to_layout", a.to)
      .set("way", a.way)
      .set("each_s", a.each.seconds)
      .set("each_bytes", a.each.bytes)
      .set("each_bytes_between_nodes", a.each.bytes_between_nodes);
}

JsonObject stage_json(const StageFacts& s) {
  JsonObject json = json_of(stage_columns(), s);
  json.set("axes", array_of(s.split.axes, axis_json));
  for (const char* group : {"time", "memory"})
    s.has_figures ? json.set(group, json_of(stage_columns(), s, group)) : json.set_null(group);
  json.set("parameters", array_of(s.tensors.parameters,
                                  [](const ParameterGroup& p) {
                                    return JsonObject()
                                        .set("name", p.name)
                                        .set("count", p.count)
                                        .set("type", p.type)
                                        .set("spec", p.spec)
                                        .set("layout", p.layout);
                                  }))
      .set("optimizer_otherwise", array_of(s.tensors.optimizer, layout_json))
      .set("gradients_otherwise", array_of(s.tensors.gradients, layout_json))
      .set("synchronisation", array_of(s.tensors.synchronisation, layout_json))
      .set("arrivals", array_of(s.arrivals, arrival_json))
      .set("activations_split", array_of(s.tensors.activations, layout_json))
      .set("forward_work", array_of(s.forward_work, [](const WorkGroup& w) {
             return JsonObject().set("op", w.op).set("how", w.how).set("count", w.count);
           }));
  return json;
}

const char* part_word(Binding::Part part) {
  switch (part) {
    case Binding::Part::compute:
      return "compute";
    case Binding::Part::collectives:
      return "collectives";
    case Binding::Part::transfers:
      return "transfers";
    case Binding::Part::waiting:
      return "waiting";
  }
  return "";
}

JsonObject binding_json(const Binding& b) {
  return JsonObject()
      .set("text", binding_name(b))
      .set("part", part_word(b.part))
      .set("stages", numbers(b.busiest))
      .set("work_s", b.busiest_s)
      .set("mean_work_s", b.mean_busy_s)
      .set("crosses_nodes", b.crosses_nodes)
      .set("stages_nearly_full", numbers(b.nearly_full))
      .set("fullest_share", b.fullest)
      .set("stages_that_recompute", numbers(b.recomputes))
      .set("stages_that_offload", numbers(b.offloads));
}

JsonObject bound_json(const Prediction& p) {
  const std::optional<double> gap = p.gap();
  if (!gap) return JsonObject().set_null("lower_bound_s").set_null("estimate_s").set_null("gap");
  return JsonObject()
      .set("lower_bound_s", p.lower_bound_s)
      .set("estimate_s", p.estimate_s)
      .set("gap", *gap)
      .set("covers", p.bound_covers);
}

JsonObject candidate_json(const Candidate& c) {
  JsonObject json;
  json.set("method", c.method);
  c.step_s > 0 ? json.set("step_s", c.step_s) : json.set_null("step_s");
  c.memory_bytes > 0 ? json.set("memory_bytes", c.memory_bytes) : json.set_null("memory_bytes");
  c.schedule.empty() ? json.set_null("schedule") : json.set("schedule", c.schedule);
  return json.set("verdict", c.verdict);
}

JsonObject constraint_json(const ConstraintPrice& c) {
  JsonObject json;
  json.set("constraint", c.text).set("where", c.where);
  return c.step_without_s > 0 ? json.set("step_without_s", c.step_without_s)
                              : json.set_null("step_without_s");
}

}  // namespace

JsonObject facts_json(const PlanFacts& f) {
  JsonObject json;
  json.set("format", "alpa-plan-facts")
      .set("format_version", "1.5")
      .set("model", f.model)
      .set("method", f.method)
      .set("schedule", f.schedule)
      .set("lossy", f.lossy)
      .set("stale", f.stale)
      .set("overlap", f.overlap)
      .set("updates", f.updates)
      .set("gradient_buckets", f.buckets)
      .set("cluster", JsonObject()
                          .set("name", f.cluster.name)
                          .set("device", f.cluster.device)
                          .set("nodes", f.cluster.nodes)
                          .set("devices_per_node", f.cluster.devices_per_node)
                          .set("servers", f.cluster.servers)
                          .set("memory_bytes", f.cluster.memory_bytes)
                          .set("parts", array_of(f.cluster.parts, part_json)))
      .set("devices", f.devices)
      .set("split", f.split)
      .set("micro_batches", f.micro_batches)
      .set("micro_batch_samples", f.micro_batch_samples)
      .set("step_s", f.prediction.step_s)
      .set("time", time_json(f.mean))
      .set("costs", f.costs())
      .set("estimated_operators", f.prediction.estimated_operators)
      .set("cut_short", f.prediction.hit_time_limit)
      .set("bound", bound_json(f.prediction))
      .set("binds", binding_json(f.binding));
  f.extrapolated_from.empty() ? json.set_null("extrapolated_from")
                              : json.set("extrapolated_from", f.extrapolated_from);
  const std::optional<double> estimated = f.prediction.estimated_share;
  estimated ? json.set("estimated_share", *estimated) : json.set_null("estimated_share");
  const double error_s = f.prediction.step_error_s;
  error_s > 0 ? json.set("step_error_s", error_s) : json.set_null("step_error_s");
  const Candidate* next = f.runner_up();
  next ? json.set("runner_up", candidate_json(*next)) : json.set_null("runner_up");
  const double unconstrained_s = f.prediction.unconstrained_s;
  unconstrained_s > 0 ? json.set("unconstrained_step_s", unconstrained_s)
                      : json.set_null("unconstrained_step_s");
  return json.set("stages", array_of(f.stages, stage_json))
      .set("candidates", array_of(f.prediction.candidates, candidate_json))
      .set("constraints", array_of(f.prediction.constraints, constraint_json));
}

}  // namespace alpa
