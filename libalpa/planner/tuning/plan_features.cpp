#include "libalpa/planner/tuning/plan_features.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

namespace alpa {
namespace {

constexpr ConversionKind kKinds[] = {ConversionKind::all_reduce, ConversionKind::reduce_scatter,
                                     ConversionKind::all_gather, ConversionKind::all_to_all};

struct OfKind {
  double sum_s = 0, greatest_s = 0, count = 0;
};

/// What the devices of a mesh do in a step.
struct CollectiveTotals {
  std::map<ConversionKind, OfKind> of_kind;
  double sent_bytes = 0, greatest_bytes = 0;
};

int times_in_step(const MeshProgram& mesh, int segment, const Instruction& instruction, int micro_batches) {
  int times = 0;
  for (const SegmentRun& run : mesh.schedule)
    if (run.segment == segment && acts(instruction.when, run.micro_batch, micro_batches)) ++times;
  return times;
}

struct Collective {
  ConversionKind kind;
  int axis;
  double bytes;  ///< as of CollectiveSample
};

/// One with owners is as one in which all own as much as the fullest.
std::optional<Collective> collective_of_instruction(const MeshProgram& mesh, const Instruction& instruction) {
  if (const auto* owners = std::get_if<OwnerCollective>(&instruction.body)) {
    const std::vector<std::int64_t> bytes = owned_bytes(mesh, *owners);
    return Collective{owners->reduces ? ConversionKind::reduce_scatter : ConversionKind::all_gather,
                      owners->axis, static_cast<double>(std::ranges::max(bytes) * std::ssize(bytes))};
  }
  const auto* convert = std::get_if<Convert>(&instruction.body);
  if (!convert || convert->step.kind == ConversionKind::slice) return std::nullopt;
  return Collective{
      convert->step.kind, convert->step.axis,
      step_bytes(convert->step, mesh.buffers[convert->from].tile, mesh.buffers[convert->to].tile)};
}

CollectiveTotals totals_of(const Program& program, const MeshProgram& mesh, const CostModel& costs) {
  CollectiveTotals totals;
  for (std::size_t s = 0; s < mesh.segments.size(); ++s) {
    const Segment& segment = mesh.segments[s];
    const std::vector<double> seconds = instruction_seconds(program, mesh, segment, costs);
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      const std::optional<Collective> collective = collective_of_instruction(mesh, segment.instructions[i]);
      if (!collective) continue;
      const int times =
          times_in_step(mesh, static_cast<int>(s), segment.instructions[i], program.micro_batches);
      OfKind& of = totals.of_kind[collective->kind];
      of.sum_s += times * seconds[i];
      of.count += times;
      if (times > 0) of.greatest_s = std::max(of.greatest_s, seconds[i]);
      const GroupShape group = group_shape(mesh.mesh, collective->axis, program.devices_per_node);
      const CollectiveTraffic traffic =
          served_by(mesh, segment.instructions[i])
              ? served_traffic(group, costs.cluster().servers, collective->bytes)
              : collective_traffic(collective_of(collective->kind), group, collective->bytes);
      totals.sent_bytes += times * (traffic.within_node + traffic.between_nodes);
      totals.greatest_bytes = std::max(totals.greatest_bytes, collective->bytes);
    }
  }
  return totals;
}

}  // namespace

std::vector<std::string> plan_feature_names() {
  std::vector<std::string> names;
  for (const ConversionKind kind : kKinds)
    for (const char* what : {"all", "greatest", "count"})
      names.push_back(fmt::format("{}, {}", conversion_name(kind), what));
  for (const char* name :
       {"sent, all meshes", "sent, most of a mesh", "greatest collective", "exposed collectives",
        "hidden collectives", "computation", "idle", "buckets", "sums in buckets", "sums in turns",
        "overlap of transfers", "overlap of all", "updates before the norm", "updates in the next forward"})
    names.emplace_back(name);
  return names;
}

std::vector<double> plan_features(const Plan& plan, const Program& program, const Timeline& timeline,
                                  const CostModel& costs, const FeatureUnits& units) {
  std::vector<CollectiveTotals> of_meshes;
  for (const MeshProgram& mesh : program.meshes) of_meshes.push_back(totals_of(program, mesh, costs));
  std::vector<double> features;
  for (const ConversionKind kind : kKinds) {
    OfKind most;
    for (CollectiveTotals& mesh : of_meshes) {
      const OfKind& of = mesh.of_kind[kind];
      most.sum_s = std::max(most.sum_s, of.sum_s);
      most.greatest_s = std::max(most.greatest_s, of.greatest_s);
      most.count = std::max(most.count, of.count);
    }
    features.insert(features.end(),
                    {most.sum_s / units.seconds, most.greatest_s / units.seconds, most.count / 100});
  }
  double sent = 0, most_sent = 0, greatest = 0;
  for (const CollectiveTotals& mesh : of_meshes) {
    sent += mesh.sent_bytes;
    most_sent = std::max(most_sent, mesh.sent_bytes);
    greatest = std::max(greatest, mesh.greatest_bytes);
  }
  MeshTime time;
  double hidden_s = 0;
  for (const MeshIndex m : timeline.meshes.indices()) {
    const MeshTime& mesh = timeline.meshes[m];
    time.collective_s = std::max(time.collective_s, mesh.collective_s);
    time.compute_s = std::max(time.compute_s, mesh.compute_s);
    time.idle_s = std::max(time.idle_s, mesh.idle_s);
    hidden_s = std::max(hidden_s, timeline.hidden[m].collective_s);
  }
  int buckets = 0, in_buckets = 0, in_turns = 0;
  for (const GradientSync& sync : plan.sync) {
    buckets = std::max(buckets, sync.bucket + 1);
    in_buckets += sync.bucket >= 0 ? 1 : 0;
    in_turns += sync.turn > 0 ? 1 : 0;
  }
  const auto flag = [](bool is) { return is ? 1.0 : 0.0; };
  features.insert(
      features.end(),
      {sent / units.bytes, most_sent / units.bytes, greatest / units.bytes, time.collective_s / units.seconds,
       hidden_s / units.seconds, time.compute_s / units.seconds, time.idle_s / units.seconds, buckets / 100.0,
       in_buckets / 100.0, in_turns / 100.0, flag(plan.overlap == Overlap::transfers),
       flag(plan.overlap == Overlap::all), flag(plan.updates == UpdateOrder::before_norm),
       flag(plan.updates == UpdateOrder::next_forward)});
  return features;
}

}  // namespace alpa
