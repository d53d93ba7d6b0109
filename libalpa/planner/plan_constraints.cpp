#include "libalpa/planner/plan_constraints.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "libalpa/base/overloaded.h"
#include "libalpa/base/units.h"

namespace alpa {

std::string constraint_text(const PlanConstraint& constraint) {
  return std::visit(
      Overloaded{[](const MostTensorParallel& d) {
                   return fmt::format("tensor parallelism over at most {}", count_text(d.devices, "device"));
                 },
                 [](const MostZero& d) { return fmt::format("ZeRO at most {}", d.level); },
                 [](const StageCount& d) {
                   return (d.least == d.most ? "" : "at most ") + count_text(d.most, "pipeline stage");
                 },
                 [](const MicroBatchCounts& d) {
                   return fmt::format("{} micro-batches", fmt::join(d.allowed, " or "));
                 },
                 [](const Recomputation& d) {
                   if (!d.of_all) return std::string("nothing recomputed");
                   return std::string("all layers recomputed") +
                          (*d.of_all == RecomputeForm::selective ? " selectively" : "");
                 },
                 [](const ScheduleOf& d) { return "schedule " + d.name; },
                 [](const TensorSplit& d) {
                   return d.dimension == kWholeTensor
                              ? fmt::format("'{}' whole", d.pattern)
                              : fmt::format("'{}' split in dimension {}", d.pattern, d.dimension);
                 },
                 [](const StageBoundary& d) {
                   return fmt::format("a stage {} with layer '{}'", d.is_after ? "ends" : "begins", d.layer);
                 },
                 [](const LayersTogether& d) {
                   return fmt::format("layers '{}' to '{}' on one stage", d.first, d.last);
                 },
                 [](const DevicesApart& d) {
                   return fmt::format("devices {} and {} never in one group", d.one, d.other);
                 },
                 [](const GradientWay& d) {
                   return fmt::format("gradients of '{}' by {}", d.pattern, sync_way_name(d.way));
                 },
                 [](const OptionWord& d) { return d.option + " " + d.word; }},
      constraint.demand);
}

PlanConstraints PlanConstraints::without(std::size_t dropped) const {
  PlanConstraints others = *this;
  others.all.erase(others.all.begin() + static_cast<std::ptrdiff_t>(dropped));
  return others;
}

}  // namespace alpa
