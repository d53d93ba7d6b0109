#include "libalpa/program/order/rank_rows.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace alpa {
namespace {

constexpr std::int64_t kMostRows = 200'000;

std::int64_t rows_of_a_rank(const MeshProgram& mesh) {
  std::int64_t rows = 0;
  for (const SegmentRun& run : mesh.schedule) rows += std::ssize(mesh.segment_of(run).instructions);
  return rows;
}

DeviceIndex fullest_rank(const MeshProgram& mesh) {
  const std::vector<int> coordinate = mesh.fullest_coordinate();
  DeviceIndex rank = mesh.mesh.first_device;
  while (coordinate_of(mesh.mesh, rank) != coordinate) rank = DeviceIndex(rank + 1);
  return rank;
}

std::optional<double> end_of_last_global_sum(const RankRows& rank, const Program& program) {
  std::optional<double> end_s;
  for (const TimelineRow& row : rank.rows)
    if (std::holds_alternative<GlobalSum>(instruction_of(program, row).body))
      end_s = std::max(end_s.value_or(0), row.start_s + row.duration_s);
  return end_s;
}

}  // namespace

const Instruction& instruction_of(const Program& program, const TimelineRow& row) {
  return program.meshes[row.mesh].segments[row.segment].instructions[row.instruction];
}

std::vector<DeviceIndex> fullest_ranks(const Program& program) {
  std::vector<DeviceIndex> ranks;
  for (const MeshProgram& mesh : program.meshes) ranks.push_back(fullest_rank(mesh));
  return ranks;
}

std::vector<DeviceIndex> traced_ranks(const Program& program) {
  std::vector<DeviceIndex> ranks;
  std::int64_t rows = 0;
  for (const MeshProgram& mesh : program.meshes)
    for (int d = 0; d < device_count(mesh.mesh.shape); ++d) {
      ranks.push_back(DeviceIndex(mesh.mesh.first_device + d));
      rows += rows_of_a_rank(mesh);
    }
  return rows > kMostRows ? fullest_ranks(program) : ranks;
}

std::vector<RankRows> simulated_ranks(const Program& program, const CostModel& costs,
                                      const std::vector<DeviceIndex>& ranks) {
  const bool have_owners = std::ranges::any_of(program.meshes, &MeshProgram::has_owners);
  const Coordinates fullest = fullest_coordinates(program);
  std::vector<TimelineRow> rows;
  std::vector<RankRows> all;
  for (const DeviceIndex rank : ranks) {
    const auto [mesh, coordinate] = place_of(program, rank);
    if (rows.empty() || have_owners) {
      Coordinates at = fullest;
      at[mesh] = coordinate;
      rows = simulate(program, costs, at).rows;
    }
    RankRows& of_rank = all.emplace_back(RankRows{rank, "", {}});
    std::ranges::copy_if(rows, std::back_inserter(of_rank.rows),
                         [mesh = mesh](const TimelineRow& row) { return row.mesh == mesh; });
  }
  return all;
}

void bring_together(std::vector<RankRows>& ranks, const Program& program) {
  std::vector<std::optional<double>> met;
  double last_s = 0, first_s = 0;
  for (const RankRows& rank : ranks) {
    met.push_back(end_of_last_global_sum(rank, program));
    last_s = std::max(last_s, met.back().value_or(0));
  }
  bool is_first = true;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (TimelineRow& row : ranks[r].rows) {
      if (met[r]) row.start_s += last_s - *met[r];
      if (std::exchange(is_first, false) || row.start_s < first_s) first_s = row.start_s;
    }
  for (RankRows& rank : ranks)
    for (TimelineRow& row : rank.rows) row.start_s -= first_s;
}

}  // namespace alpa
