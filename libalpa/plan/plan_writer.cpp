#include <fmt/core.h>

#include <map>

#include "libalpa/base/error.h"
#include "libalpa/cluster/cluster_columns.h"
#include "libalpa/h5/file.h"
#include "libalpa/plan/plan_columns.h"
#include "libalpa/plan/plan_file.h"
#include "libalpa/plan/reduced_gradients.h"

namespace alpa {
namespace {

void write_stages(H5Writer& file, const Plan& plan) {
  std::vector<std::int64_t> first_layer, end_layer, mesh, recomputed_layers;
  std::vector<std::string> recompute_form;
  for (const StagePlan& stage : plan.stages) {
    first_layer.push_back(stage.first_layer);
    end_layer.push_back(stage.end_layer);
    mesh.push_back(stage.mesh);
    recomputed_layers.push_back(stage.recomputed_layers);
    recompute_form.emplace_back(kRecomputeForms[static_cast<std::size_t>(stage.recompute_form)]);
  }
  file.column("/stages/first_layer", first_layer, "1");
  file.column("/stages/end_layer", end_layer, "1");
  file.column("/stages/mesh", mesh, "1");
  file.column("/stages/recomputed_layers", recomputed_layers, "1");
  file.column("/stages/recompute_form", recompute_form);
}

void write_meshes(H5Writer& file, const Plan& plan) {
  std::vector<std::int64_t> first_device, devices, shape;
  for (const DeviceMesh& mesh : plan.meshes) {
    first_device.push_back(mesh.first_device);
    devices.push_back(device_count(mesh.shape));
    for (std::size_t axis = 0; axis < kAxisColumns; ++axis)
      shape.push_back(axis < mesh.shape.size() ? mesh.shape[axis] : 0);
  }
  file.column("/meshes/first_device", first_device, "1");
  file.column("/meshes/devices", devices, "1");
  file.array("/meshes/shape", shape, {static_cast<std::int64_t>(plan.meshes.size()), kAxisColumns}, "1");
}

void write_segment_layouts(H5Writer& file, const std::string& group, const std::vector<SegmentLayouts>& all) {
  std::vector<std::string> forward, backward;
  for (const SegmentLayouts& layouts : all) {
    forward.push_back(spec_text(layouts.forward));
    backward.push_back(spec_text(layouts.backward));
  }
  file.column(group + "/forward_layout", forward);
  file.column(group + "/backward_layout", backward);
}

void write_nodes(H5Writer& file, const Plan& plan, const Graph& graph) {
  std::vector<std::string> layouts;
  std::vector<std::int64_t> strategy;
  for (const Strategy& factors : plan.node_strategy)
    for (std::size_t axis = 0; axis < kAxisColumns; ++axis)
      strategy.push_back(axis < factors.size() ? factors[axis] : kNoAxis);
  for (const ShardingSpec& layout : plan.value_layout) layouts.push_back(spec_text(layout));
  write_segment_layouts(file, "/values", plan.segment_layouts.items());
  for (const DerivedColumn& column : derived_columns(plan, graph)) file.column(column.path, column.rows);
  file.scale("/nodes/name");
  file.array("/nodes/strategy", strategy, {static_cast<std::int64_t>(graph.nodes.size()), kAxisColumns}, "1");
  file.attach_scale("/nodes/strategy", 0, "/nodes/name");
  file.column("/values/layout", layouts);
}

/// A row for each sum of gradients; buckets are -1 where it is in none, turns 0, parts 1. Of those that have
/// owners the rows of each, one part after another; those that the update makes of several have these alone.
void write_sync(H5Writer& file, const Plan& plan, const Graph& graph) {
  std::vector<std::int64_t> value, bucket, turn, parts;
  for (const ValueIndex sum : sums_of_gradients(graph)) {
    const GradientSync sync = plan.sync_of(sum);
    value.push_back(sum);
    bucket.push_back(sync.bucket);
    turn.push_back(sync.turn);
    parts.push_back(sync.parts);
  }
  file.column("/sync/value", value, "1");
  file.column("/sync/bucket", bucket, "1");
  file.column("/sync/turn", turn, "1");
  file.column("/sync/parts", parts, "1");
  if (!plan.has_owners()) return;
  std::vector<std::int64_t> of, rows, owner;
  for (const GradientSync& sync : plan.sync)
    for (const OwnedRows& part : sync.owners) {
      of.push_back(sync.sum);
      rows.push_back(part.rows);
      owner.push_back(part.owner);
    }
  file.column("/sync/owners/value", of, "1");
  file.column("/sync/owners/rows", rows, "1");
  file.column("/sync/owners/owner", owner, "1");
}

/// Where there are some.
void write_on_host(H5Writer& file, const Plan& plan) {
  if (plan.on_host.empty()) return;
  file.column("/host/value", std::vector<std::int64_t>(plan.on_host.begin(), plan.on_host.end()), "1");
}

/// Likewise.
void write_constraints(H5Writer& file, const Prediction& prediction) {
  if (prediction.constraints.empty()) return;
  std::vector<std::string> text, where;
  std::vector<double> step_without_s;
  for (const ConstraintPrice& constraint : prediction.constraints) {
    text.push_back(constraint.text);
    where.push_back(constraint.where);
    step_without_s.push_back(constraint.step_without_s);
  }
  file.column("/constraints/text", text);
  file.column("/constraints/where", where);
  file.column("/constraints/step_without", step_without_s, "s");
  file.attribute("/constraints", "unconstrained_s", prediction.unconstrained_s);
}

void write_prediction(H5Writer& file, const Prediction& prediction) {
  file.group("/prediction");
  file.attribute("/prediction", "step_s", prediction.step_s);
  file.attribute("/prediction", "step_error_s", prediction.step_error_s);
  file.attribute("/prediction", "estimate_s", prediction.estimate_s);
  file.attribute("/prediction", "lower_bound_s", prediction.lower_bound_s);
  file.attribute("/prediction", "bound_covers", prediction.bound_covers);
  file.attribute("/prediction", "hit_time_limit", std::int64_t{prediction.hit_time_limit});
  file.attribute("/prediction", "estimated_operators", prediction.estimated_operators);
  if (prediction.estimated_share)
    file.attribute("/prediction", "estimated_share", *prediction.estimated_share);
  std::map<std::string, std::vector<double>> seconds;
  std::map<std::string, std::vector<std::int64_t>> bytes;
  const MeshPrediction names;
  visit_prediction(
      names, [&](const char* name, double) { seconds[name]; },
      [&](const char* name, std::int64_t) { bytes[name]; });
  for (const MeshPrediction& mesh : prediction.meshes)
    visit_prediction(
        mesh, [&](const char* name, double s) { seconds[name].push_back(s); },
        [&](const char* name, std::int64_t b) { bytes[name].push_back(b); });
  for (const auto& [name, column] : seconds) file.column("/prediction/time/" + name, column, "s");
  for (const auto& [name, column] : bytes) file.column("/prediction/memory/" + name, column, "byte");
  std::vector<double> transfer_s;
  std::vector<std::int64_t> sent, sent_between_nodes;
  for (const TransferPrediction& transfer : prediction.transfers) {
    transfer_s.push_back(transfer.seconds);
    sent.push_back(transfer.bytes);
    sent_between_nodes.push_back(transfer.bytes_between_nodes);
  }
  file.column("/prediction/transfers/time", transfer_s, "s");
  file.column("/prediction/transfers/sent", sent, "byte");
  file.column("/prediction/transfers/sent_between_nodes", sent_between_nodes, "byte");
  std::vector<std::int64_t> in_flight;
  for (const MeshPrediction& mesh : prediction.meshes) in_flight.push_back(mesh.in_flight);
  file.column("/prediction/in_flight", in_flight, "1");
  std::vector<std::string> method, verdict, schedule;
  std::map<std::string, std::vector<double>> busiest;
  visit_time(names, [&](const char* name, double) { busiest[name]; });
  std::vector<double> step_s;
  std::vector<std::int64_t> memory;
  for (const Candidate& candidate : prediction.candidates) {
    method.push_back(candidate.method);
    verdict.push_back(candidate.verdict);
    schedule.push_back(candidate.schedule);
    step_s.push_back(candidate.step_s);
    memory.push_back(candidate.memory_bytes);
    visit_time(candidate.busiest, [&](const char* name, double s) { busiest[name].push_back(s); });
  }
  file.column("/candidates/method", method);
  file.column("/candidates/step_s", step_s, "s");
  file.column("/candidates/memory", memory, "byte");
  file.column("/candidates/verdict", verdict);
  file.column("/candidates/schedule", schedule);
  for (const auto& [name, column] : busiest) file.column("/candidates/busiest_mesh/" + name, column, "s");
  write_constraints(file, prediction);
}

}  // namespace

void write_plan(const std::filesystem::path& path, const Plan& plan, const Graph& graph,
                const Provenance& provenance, const std::function<void(H5Writer&)>& add) {
  in_step(fmt::format("writing plan '{}'", path.string()), [&] {
    H5Writer file(path, kPlanFormat, kPlanVersion);
    file.group("/model");
    file.attribute("/model", "name", plan.model_name);
    file.attribute("/model", "graph_fingerprint", plan.graph_fingerprint);
    file.attribute("/model", "micro_batch_samples", plan.micro_batch_samples);
    file.attribute("/model", "micro_batches", plan.micro_batches);
    file.text("/model/toml", plan.model_toml);
    write_cluster(file, plan.cluster);
    file.attribute("/cluster", "profile_fingerprint", plan.profile_fingerprint);
    if (!plan.extrapolated_from.empty())
      file.attribute("/cluster", "extrapolated_from", plan.extrapolated_from);
    write_meshes(file, plan);
    write_stages(file, plan);
    file.attribute("/stages", "schedule", plan.schedule);
    file.attribute("/stages", "overlap", overlap_name(plan.overlap));
    file.attribute("/stages", "updates", update_order_name(plan.updates));
    if (plan.has_states_at_servers())
      file.attribute("/stages", "staleness", static_cast<std::int64_t>(plan.staleness));
    file.attribute("/stages", "method", plan.method);
    file.attribute("/stages", "program_fingerprint", plan.program_fingerprint);
    write_nodes(file, plan, graph);
    std::vector<std::int64_t> value, mesh, chunks;
    std::vector<std::string> layout, strategy;
    std::vector<SegmentLayouts> in_segments;
    for (const PlannedTransfer& transfer : plan.transfers) {
      in_segments.push_back(transfer.in_segments);
      value.push_back(transfer.value);
      mesh.push_back(transfer.to_mesh);
      layout.push_back(spec_text(transfer.layout));
      strategy.emplace_back(transfer_strategy_name(transfer.way.strategy));
      chunks.push_back(transfer.way.chunks);
    }
    file.column("/transfers/value", value, "1");
    file.column("/transfers/to_mesh", mesh, "1");
    file.column("/transfers/layout", layout);
    file.column("/transfers/strategy", strategy);
    file.column("/transfers/chunks", chunks, "1");
    write_segment_layouts(file, "/transfers", in_segments);
    value.clear(), mesh.clear(), in_segments.clear();
    for (const InputLayouts& input : plan.inputs) {
      value.push_back(input.value);
      mesh.push_back(input.mesh);
      in_segments.push_back(input.in_segments);
    }
    file.column("/inputs/value", value, "1");
    file.column("/inputs/mesh", mesh, "1");
    write_segment_layouts(file, "/inputs", in_segments);
    write_sync(file, plan, graph);
    write_on_host(file, plan);
    write_prediction(file, plan.prediction);
    if (add) add(file);
    file.provenance(provenance);
    file.publish();
  });
}

}  // namespace alpa
