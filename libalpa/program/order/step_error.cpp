#include "libalpa/program/order/step_error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "libalpa/base/overloaded.h"
#include "libalpa/cluster/cost_kind.h"

namespace alpa {
namespace {

double end_of_row(const TimelineRow& row) { return row.start_s + row.duration_s; }

std::string kind_on_axis(CollectiveKind kind, const Program& program, const MeshProgram& mesh, int axis) {
  return cost_kind_of_collective(kind, group_shape(mesh.mesh, axis, program.devices_per_node).nodes > 1);
}

}  // namespace

std::string cost_kind(const Program& program, const MeshProgram& mesh, const Instruction& instruction) {
  return std::visit(
      Overloaded{
          [](const Load&) { return std::string(kCostOfCopies); },
          [&](const Compute& i) { return cost_kind_of_operator(compute_signature(mesh, i)); },
          [&](const Convert& i) {
            if (i.step.kind == ConversionKind::slice) return std::string(kCostOfCopies);
            return kind_on_axis(collective_of(i.step.kind), program, mesh, i.step.axis);
          },
          [&](const Shift& i) { return kind_on_axis(CollectiveKind::shift, program, mesh, i.axis); },
          [&](const OwnerCollective& i) {
            return kind_on_axis(i.reduces ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather,
                                program, mesh, i.axis);
          },
          [&](const Serve&) {
            return cost_kind_of_collective(CollectiveKind::all_reduce, all_devices(program).nodes > 1);
          },
          [](const Send&) { return std::string(kCostOfCopies); },
          [&](const Receive& i) {
            return cost_kind_of_collective(
                CollectiveKind::send,
                leaves_node(program.transfers[i.transfer].route, program.devices_per_node));
          },
          [](const Unpack&) { return std::string(kCostOfCopies); },
          [](const Exchange&) { return cost_kind_of_collective(CollectiveKind::send, true); },
          [&](const GlobalSum&) {
            return cost_kind_of_collective(CollectiveKind::all_reduce, all_devices(program).nodes > 1);
          },
          [](const Zero&) { return std::string(kCostOfCopies); },
          [](const Copy&) { return std::string(kCostOfCopies); },
          [](const Fetch&) { return std::string(kCostOfMoves); },
          [](const Offload&) { return std::string(kCostOfMoves); },
      },
      instruction.body);
}

std::vector<std::size_t> critical_path(const std::vector<TimelineRow>& rows) {
  std::vector<std::size_t> by_end(rows.size());
  std::iota(by_end.begin(), by_end.end(), std::size_t{0});
  std::erase_if(by_end, [&](std::size_t r) { return end_of_row(rows[r]) <= rows[r].start_s; });
  std::ranges::sort(by_end, {}, [&](std::size_t r) { return std::pair(end_of_row(rows[r]), rows[r].mesh); });
  std::vector<std::size_t> path;
  if (by_end.empty()) return path;
  const auto ends_at = [&](std::size_t r) { return end_of_row(rows[r]); };
  for (path.push_back(by_end.back());;) {
    const TimelineRow& now = rows[path.back()];
    // Times are handed on as they are, so a row starts at the very moment at which another one ends.
    auto before = std::ranges::lower_bound(by_end, now.start_s, {}, ends_at);
    if (before == by_end.end() || ends_at(*before) != now.start_s) return path;
    for (auto other = before; other != by_end.end() && ends_at(*other) == now.start_s; ++other)
      if (rows[*other].mesh == now.mesh) before = other;
    path.push_back(*before);
  }
}

double step_error_s(const Program& program, const Timeline& timeline, const CostModel& costs) {
  const CostModel longer = costs.longer_by_spread();
  using Place = std::pair<MeshIndex, int>;
  std::map<Place, std::vector<double>> errors;  // of a segment's instructions
  std::map<std::string, double> by_kind;
  for (const std::size_t r : critical_path(timeline.rows)) {
    const TimelineRow& row = timeline.rows[r];
    const MeshProgram& mesh = program.meshes[row.mesh];
    const Segment& segment = mesh.segments[row.segment];
    const auto [at, is_new] = errors.try_emplace(Place{row.mesh, row.segment});
    if (is_new) {
      at->second = instruction_seconds(program, mesh, segment, longer);
      const std::vector<double> usual = instruction_seconds(program, mesh, segment, costs);
      for (std::size_t i = 0; i < usual.size(); ++i) at->second[i] -= usual[i];
    }
    by_kind[cost_kind(program, mesh, segment.instructions[row.instruction])] += at->second[row.instruction];
  }
  double squares = 0;
  for (const auto& [kind, seconds] : by_kind) squares += seconds * seconds;
  return std::sqrt(squares);
}

double estimated_share(const Program& program, const Timeline& timeline, const CostModel& costs) {
  std::map<std::tuple<MeshIndex, int, int>, double> seconds;  // of an instruction, in all its runs
  for (const TimelineRow& row : timeline.rows)
    seconds[{row.mesh, row.segment, row.instruction}] += row.duration_s;
  double all_s = 0, estimated_s = 0;
  for (const auto& [place, of_instruction_s] : seconds) {
    const auto& [m, segment, instruction] = place;
    const MeshProgram& mesh = program.meshes[m];
    const auto* compute = std::get_if<Compute>(&mesh.segments[segment].instructions[instruction].body);
    if (!compute) continue;
    all_s += of_instruction_s;
    if (!costs.on(mesh.mesh).has_measured(compute_signature(mesh, *compute))) estimated_s += of_instruction_s;
  }
  return all_s > 0 ? estimated_s / all_s : 0;
}

}  // namespace alpa
