#include "libalpa/schedule/schedule.h"

#include <algorithm>
#include <set>

#include "libalpa/base/words.h"
#include "libalpa/schedule/orders.h"

namespace alpa {
namespace {

constexpr PipelineSchedule kSchedules[] = {
    {"1f1b", "one forward, one backward in turn (PipeDream-flush)", one_f_one_b_order},
    {"gpipe", "all forwards, then all backwards (GPipe, NeurIPS'19)", gpipe_order},
    {"eager-1f1b", "1f1b with earlier forwards, so that transfers have time (MLSys'23)", eager_order},
    {"split-1f1b", "1f1b, gradients of weights when there is time (ZB-H1, ICLR'24)", split_order},
    {"zero-bubble", "split-1f1b, more forwards ahead: no bubble, up to twice the memory (ZB-H2)",
     zero_bubble_order},
    {"interleaved", "1f1b over several stages on each mesh: a bubble as many times shorter (SC'21)", nullptr,
     StagePlacement::looped, interleaved_orders, 1},
    {"zero-bubble-v", "two stages on each mesh, in a V: no bubble, the memory of 1f1b (ZB-V, ICLR'24)",
     nullptr, StagePlacement::v_shaped, zero_bubble_v_orders, 1.0 / 3},
    {"v-half", "likewise, half the memory of 1f1b, half its bubble (NeurIPS'24)", nullptr,
     StagePlacement::v_shaped, v_half_orders, 1},
    {"v-min", "likewise, a third of the memory of 1f1b, two thirds of its bubble (NeurIPS'24)", nullptr,
     StagePlacement::v_shaped, v_min_orders, 4.0 / 3},
};

}  // namespace

std::span<const PipelineSchedule> schedules() { return kSchedules; }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const PipelineSchedule& schedule : kSchedules) names.push_back(schedule.name);
  return names;
}

const PipelineSchedule& find_schedule(const std::string& name) {
  const auto found = std::ranges::find(kSchedules, name, &PipelineSchedule::name);
  if (found != std::end(kSchedules)) return *found;
  refuse_name("schedule", name, schedule_names());
}

std::vector<std::string> schedule_names(int stages_per_mesh) {
  std::vector<std::string> names;
  for (const PipelineSchedule& schedule : kSchedules)
    if (schedule.takes(stages_per_mesh)) names.push_back(schedule.name);
  return names;
}

bool PipelineSchedule::takes(int stages_per_mesh) const {
  if (!shares_meshes()) return stages_per_mesh == 1;
  return placement == StagePlacement::looped ? stages_per_mesh >= 2 : stages_per_mesh == 2;
}

std::vector<std::string> differing_schedules(int stages, int stages_per_mesh, int micro_batches) {
  if (stages == 1) return {kSchedules[0].name};
  std::vector<std::string> names;
  std::vector<std::vector<std::vector<StageRun>>> known;
  for (const std::string& name : schedule_names(stages_per_mesh)) {
    const PipelineSchedule& schedule = find_schedule(name);
    std::vector<std::vector<StageRun>> orders =
        mesh_orders(schedule, meshes_of_stages(schedule, stages, stages_per_mesh), micro_batches);
    if (std::ranges::find(known, orders) != known.end()) continue;
    names.push_back(name);
    known.push_back(std::move(orders));
  }
  return names;
}

std::vector<int> meshes_of_stages(const PipelineSchedule& schedule, int stages, int stages_per_mesh) {
  const int meshes = stages / stages_per_mesh;
  std::vector<int> mesh_of_stage;
  for (int stage = 0; stage < stages; ++stage) {
    const bool goes_back = schedule.placement == StagePlacement::v_shaped && stage / meshes % 2 == 1;
    mesh_of_stage.push_back(goes_back ? meshes - 1 - stage % meshes : stage % meshes);
  }
  return mesh_of_stage;
}

bool runs_on(const PipelineSchedule& schedule, const std::vector<int>& mesh_of_stage) {
  if (!schedule.shares_meshes() || mesh_of_stage.size() == 1) return true;
  const int stages = static_cast<int>(mesh_of_stage.size()),
            meshes = static_cast<int>(std::set(mesh_of_stage.begin(), mesh_of_stage.end()).size());
  if (stages % meshes != 0 || !schedule.takes(stages / meshes)) return false;
  const std::vector<int> places = meshes_of_stages(schedule, stages, stages / meshes);
  for (int stage = 0; stage < stages; ++stage)
    if (mesh_of_stage[stage] != mesh_of_stage[places[stage]]) return false;
  return true;
}

std::vector<int> held_by_stages(const PipelineSchedule& schedule, const std::vector<int>& mesh_of_stage,
                                int micro_batches) {
  std::vector<std::vector<StageRun>> orders(mesh_of_stage.size());
  for (const std::vector<StageRun>& of_mesh : mesh_orders(schedule, mesh_of_stage, micro_batches))
    for (const StageRun& run : of_mesh) orders[run.stage].push_back(run);
  std::vector<int> held;
  for (const std::vector<StageRun>& order : orders) held.push_back(most_in_flight(order));
  return held;
}

int most_in_flight(const std::vector<StageRun>& order) {
  int flying = 0, most = 0;
  for (const StageRun& run : order) {
    if (run.kind == SegmentKind::forward) most = std::max(most, ++flying);
    if (run.kind == SegmentKind::backward || run.kind == SegmentKind::backward_weights) --flying;
  }
  return most;
}

}  // namespace alpa
