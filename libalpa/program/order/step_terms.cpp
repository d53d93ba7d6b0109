#include "libalpa/program/order/step_terms.h"

#include <algorithm>
#include <numeric>

namespace alpa {
namespace {

StepTerm term_of(const Convert& convert) {
  switch (convert.step.kind) {
    case ConversionKind::slice:
      break;  // a copy: computation
    case ConversionKind::all_gather:
      return StepTerm::all_gather;
    case ConversionKind::all_to_all:
      return StepTerm::all_to_all;
    case ConversionKind::reduce_scatter:
      return StepTerm::reduce_scatter;
    case ConversionKind::all_reduce:
      return StepTerm::all_reduce;
  }
  return StepTerm::forward;
}

StepTerm term_of(const Segment& segment, const Instruction& instruction) {
  if (is_move(instruction)) return StepTerm::transfers;
  const TimeKind kind = time_kind(instruction);
  if (segment.kind == SegmentKind::update || instruction.when != When::every_micro_batch)
    return kind == TimeKind::compute ? StepTerm::update : StepTerm::synchronisation;
  if (kind == TimeKind::compute)
    return segment.kind == SegmentKind::forward ? StepTerm::forward : StepTerm::backward;
  if (kind == TimeKind::transfer) return StepTerm::transfers;
  const auto* convert = std::get_if<Convert>(&instruction.body);
  return convert != nullptr ? term_of(*convert) : StepTerm::shift;
}

}  // namespace

const char* step_term_name(StepTerm term) {
  switch (term) {
    case StepTerm::forward:
      return "forward";
    case StepTerm::backward:
      return "backward";
    case StepTerm::all_reduce:
      return "all-reduce";
    case StepTerm::all_gather:
      return "all-gather";
    case StepTerm::reduce_scatter:
      return "reduce-scatter";
    case StepTerm::all_to_all:
      return "all-to-all";
    case StepTerm::shift:
      return "shift";
    case StepTerm::transfers:
      return "transfers";
    case StepTerm::update:
      return "update";
    case StepTerm::synchronisation:
      return "synchronisation";
    case StepTerm::waiting:
      return "waiting";
  }
  return "";
}

double StepTerms::total_s() const { return std::accumulate(begin(), end(), 0.0); }

std::array<StepTerm, kStepTerms> step_terms() {
  std::array<StepTerm, kStepTerms> terms;
  for (std::size_t t = 0; t < kStepTerms; ++t) terms[t] = static_cast<StepTerm>(t);
  return terms;
}

Indexed<MeshIndex, StepTerms> terms_of_meshes(const Program& program, const Timeline& timeline,
                                              const CostModel& costs) {
  Indexed<MeshIndex, StepTerms> of_meshes;
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    StepTerms terms{};
    const std::vector<int> fullest = mesh.fullest_coordinate();
    for (std::size_t s = 0; s < mesh.segments.size(); ++s) {
      const Segment& segment = mesh.segments[s];
      const std::vector<double> seconds = instruction_seconds(program, mesh, segment, costs);
      for (std::size_t i = 0; i < seconds.size(); ++i) {
        const Instruction& instruction = segment.instructions[i];
        if (!owner_of(mesh, instruction).is_at(fullest)) continue;
        const auto times = std::ranges::count_if(mesh.schedule, [&](const SegmentRun& run) {
          return run.segment == static_cast<int>(s) &&
                 acts(instruction.when, run.micro_batch, program.micro_batches);
        });
        terms[term_of(segment, instruction)] += static_cast<double>(times) * seconds[i];
      }
    }
    terms[StepTerm::waiting] = timeline.meshes[m].idle_s;
    of_meshes.push_back(terms);
  }
  return of_meshes;
}

StepTerms mean_terms(const Program& program, const Indexed<MeshIndex, StepTerms>& of_meshes) {
  StepTerms mean{};
  double devices = 0;
  for (const MeshProgram& mesh : program.meshes) devices += device_count(mesh.mesh.shape);
  for (const MeshIndex m : of_meshes.indices())
    for (std::size_t t = 0; t < kStepTerms; ++t)
      mean.at(t) += of_meshes[m].at(t) * device_count(program.meshes[m].mesh.shape) / devices;
  return mean;
}

}  // namespace alpa
