#include "libalpa/calibration/calibrate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/calibration/corrections.h"
#include "libalpa/calibration/step_times.h"
#include "libalpa/cluster/cost_kind.h"
#include "libalpa/program/order/step_error.h"

namespace alpa {
namespace {

/// What part of the sorted values is at most that large: 0.5 for the median, the upper one of two.
double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[std::min(static_cast<std::size_t>(part * static_cast<double>(values.size())),
                         values.size() - 1)];
}

/// The sum of some scalars over all devices, a kind of its own here: it ends when the last device is there,
/// and says nothing of larger sums.
constexpr const char* kSumOfAll = "sums over all devices";
/// Gathers whose bytes are those of the data, likewise: what they take beside what was expected is no
/// property of the network.
constexpr const char* kRowsOfIds = "gathers of rows of ids that differ";

/// What one instruction costs, apart from what it packs and unpacks: of a send that is all, as its message is
/// priced where it is received.
struct InstructionCost {
  std::string kind;
  double own_s = 0, copies_s = 0;
  std::string signature;  ///< of the operator; "": it calls none
};

double packing_seconds(const MeshProgram& mesh, const Instruction& instruction, const CostModel& costs) {
  if (const auto* send = std::get_if<Send>(&instruction.body))
    return costs.copy_seconds(static_cast<double>(byte_count(mesh.buffers[send->packed].tile)));
  const auto* convert = std::get_if<Convert>(&instruction.body);
  if (!convert || convert->step.kind == ConversionKind::slice) return 0;
  return packing_seconds(convert->step, mesh.buffers[convert->from].tile, mesh.buffers[convert->to].tile,
                         costs);
}

std::string kind_of(const Program& program, const MeshProgram& mesh, const Instruction& instruction) {
  if (std::holds_alternative<GlobalSum>(instruction.body)) return kSumOfAll;
  if (const auto* convert = std::get_if<Convert>(&instruction.body); convert && convert->step.sent_share)
    return kRowsOfIds;
  const auto* send = std::get_if<Send>(&instruction.body);
  return cost_kind(program, mesh, send ? Instruction{Receive{send->transfer, {}}} : instruction);
}

/// [mesh][segment][instruction]
using ProgramCosts = Indexed<MeshIndex, std::vector<std::vector<InstructionCost>>>;

ProgramCosts program_costs(const Program& program, const CostModel& costs) {
  ProgramCosts all;
  for (const MeshProgram& mesh : program.meshes) {
    std::vector<std::vector<InstructionCost>> of_mesh;
    for (const Segment& segment : mesh.segments) {
      std::vector<InstructionCost>& of_segment = of_mesh.emplace_back();
      const std::vector<double> seconds = instruction_seconds(program, mesh, segment, costs);
      for (std::size_t i = 0; i < seconds.size(); ++i) {
        const Instruction& instruction = segment.instructions[i];
        const double copies_s = packing_seconds(mesh, instruction, costs);
        const auto* compute = std::get_if<Compute>(&instruction.body);
        of_segment.push_back({kind_of(program, mesh, instruction), seconds[i] - copies_s, copies_s,
                              compute ? compute_signature(mesh, *compute) : ""});
      }
    }
    all.push_back(std::move(of_mesh));
  }
  return all;
}

/// Seconds by which computations are predicted to take longer as their mesh communicates meanwhile. What the
/// run shows of that is no error of what a profile says of them.
using TimesBeside = std::map<std::tuple<MeshIndex, int, int, int>, double>;
TimesBeside::key_type place_of(const TimelineRow& row) {
  return {row.mesh, row.segment, row.micro_batch, row.instruction};
}

TimesBeside times_beside(const Program& program, const CostModel& costs, const ProgramCosts& alone) {
  TimesBeside longer;
  if (costs.cluster().overlap_slowdown == 1) return longer;
  for (const TimelineRow& row : simulate(program, costs, true).rows) {
    if (program.meshes[row.mesh].lanes[row.lane].kind != LaneKind::compute) continue;
    const InstructionCost& cost = alone[row.mesh][row.segment][row.instruction];
    longer[place_of(row)] = row.duration_s - (cost.own_s + cost.copies_s);
  }
  return longer;
}

void check_same_machines(const Cluster& run, const Cluster& measured) {
  if (machines_text(run) != machines_text(measured))
    throw Error(
        ErrorKind::input,
        fmt::format("the run was on {}, the profile is of {}", machines_text(run), machines_text(measured)),
        "a run of a plan that was made with this profile, without --cluster and --servers");
}

/// Where the time of the run went, beside what was predicted.
class RunComparison {
 public:
  RunComparison(const Program& program, const MeasuredSteps& measured, const CostModel& costs)
      : meshes_(static_cast<double>(program.meshes.size())),
        rows_(measured.steps.front().rows),
        costs_(program_costs(program, costs)),
        beside_(times_beside(program, costs, costs_)) {
    std::vector<double> traced_s;
    for (const MeasuredStep& step : measured.steps) {
      times_.push_back(step_times(step, program));
      traced_s.push_back(step.step_s);
      step_s_.push_back(step.next_step_s);
    }
    measuring_s_ = std::max(quantile(traced_s, 0.5) - quantile(step_s_, 0.5), 0.0) * meshes_ /
                   static_cast<double>(rows_.size());
    std::map<std::string, std::vector<std::size_t>> rows_of;
    for (std::size_t r = 0; r < rows_.size(); ++r) rows_of[cost_of(rows_[r]).kind].push_back(r);
    // Copies first: collectives are what is left when theirs are taken away.
    if (const auto copies = rows_of.extract(kCostOfCopies); !copies.empty())
      compare(copies.key(), copies.mapped());
    for (const auto& [kind, rows] : rows_of) compare(kind, rows);
  }

  void check_measured(const Profile& profile) const {
    double measured_s = 0, all_s = 0;
    std::string lacked;
    for (const TimelineRow& row : rows_) {
      const InstructionCost& cost = cost_of(row);
      if (cost.signature.empty()) continue;
      all_s += cost.own_s;
      const auto found = profile.operators.find(cost.signature);
      if (found != profile.operators.end() && found->second.status == SampleStatus::measured)
        measured_s += cost.own_s;
      else
        lacked = cost.signature;
    }
    if (measured_s < all_s / 2)
      throw Error(
          ErrorKind::input,
          fmt::format("the profile lacks most of what the run computed, '{}' for one: it was measured "
                      "for another model, or for micro-batches of other sizes",
                      lacked),
          "the profile that the run's plan was made with; what it lacks is measured with alpa-plan --missing "
          "and alpa-profile --missing");
  }

  Calibration result() const {
    Calibration result;
    for (const auto& [name, kind] : kinds_) result.kinds.push_back(kind);
    std::ranges::stable_sort(result.kinds, std::greater(), &KindComparison::measured_s);
    result.meshes = static_cast<int>(meshes_);
    result.steps = static_cast<int>(step_s_.size());
    result.measured_s = quantile(step_s_, 0.5);
    result.lower_quartile_s = quantile(step_s_, 0.25);
    result.upper_quartile_s = quantile(step_s_, 0.75);
    result.host_s =
        median_over_steps([&](const StepTimes& times) { return times.gaps_s / meshes_ + times.outside_s; });
    return result;
  }

  /// Calls of operators in a step, on a mesh.
  double calls() const {
    return static_cast<double>(std::ranges::count_if(
               rows_, [&](const TimelineRow& row) { return !cost_of(row).signature.empty(); })) /
           meshes_;
  }

  std::map<std::string, double> factors() const {
    std::map<std::string, double> factors;
    for (const auto& [name, kind] : kinds_) factors[name] = kind.factor;
    return factors;
  }

 private:
  const InstructionCost& cost_of(const TimelineRow& row) const {
    return costs_[row.mesh][row.segment][row.instruction];
  }

  template <class Seconds>
  double median_over_steps(Seconds seconds) const {
    std::vector<double> all;
    for (const StepTimes& times : times_) all.push_back(seconds(times));
    return quantile(std::move(all), 0.5);
  }

  void compare(const std::string& name, const std::vector<std::size_t>& rows) {
    const double copies_factor = factor_of(kCostOfCopies);
    KindComparison& kind = kinds_[name];
    kind.kind = name;
    kind.timed = static_cast<int>(rows.size() * times_.size());
    for (const std::size_t r : rows) {
      const auto longer = beside_.find(place_of(rows_[r]));
      kind.predicted_s += cost_of(rows_[r]).own_s + (longer == beside_.end() ? 0 : longer->second);
    }
    kind.measured_s = median_over_steps([&](const StepTimes& times) {
      double sum_s = 0;
      for (const std::size_t r : rows)
        sum_s += std::max(times.row_s[r] - measuring_s_ - copies_factor * cost_of(rows_[r]).copies_s, 0.0);
      return sum_s;
    });
    if (kind.predicted_s > 0 && kind.measured_s > 0)
      kind.factor = std::pow(kind.measured_s / kind.predicted_s,
                             std::min(1.0, 1.0 * kind.timed / KindComparison::enough));
  }

  double factor_of(const std::string& kind) const {
    const auto found = kinds_.find(kind);
    return found == kinds_.end() ? 1 : found->second.factor;
  }

  double meshes_;
  const std::vector<TimelineRow>& rows_;
  ProgramCosts costs_;
  TimesBeside beside_;
  std::vector<StepTimes> times_;  ///< [step]
  std::vector<double> step_s_;    ///< of those that were not traced
  double measuring_s_ = 0;        ///< what it takes to measure a row
  std::map<std::string, KindComparison> kinds_;
};

}  // namespace

Calibration calibrate(const Plan& plan, const Program& program, const MeasuredSteps& measured,
                      const Profile& profile, const std::string& run) {
  check_same_machines(plan.cluster, profile.cluster);
  const CostModel costs(profile);
  const RunComparison comparison(program, measured, costs);
  comparison.check_measured(profile);
  Calibration result = comparison.result();
  result.profile = profile;
  correct_kinds(result.profile, comparison.factors());
  for (KindComparison& kind : result.kinds) {
    if (kind.kind != kSumOfAll || kind.predicted_s <= 0) continue;
    const double sums = 1.0 * kind.timed / result.steps, took_s = kind.factor * kind.predicted_s / sums,
                 price_s = correct_smallest_sum(result.profile, all_devices(program), took_s);
    kind.factor *= price_s / took_s;
    result.lateness_s = sums / result.meshes * (took_s - price_s);
  }
  if (comparison.calls() > 0) result.call_gap_s = (result.host_s + result.lateness_s) / comparison.calls();
  lengthen_calls(result.profile, result.call_gap_s);
  for (const KindComparison& kind : result.kinds)
    result.profile.corrections.push_back({run, kind.kind, kind.factor, 0});
  result.profile.corrections.push_back({run, "calls of operators", 1, result.call_gap_s});
  result.predicted_s = simulate(program, costs).step_s;
  result.corrected_s = simulate(program, CostModel(result.profile)).step_s;
  return result;
}

std::string calibration_table(const Calibration& c) {
  const auto share = [&](double seconds) {
    return fmt::format("{:.1f} %", c.measured_s > 0 ? 100 * seconds / c.measured_s : 0);
  };
  std::string text = fmt::format("{:<32} {:>7} {:>10} {:>10} {:>7}\n", "kind, in a step", "share",
                                 "predicted", "measured", "factor");
  double rest_s = c.measured_s - c.host_s;
  constexpr double worth_a_line = 0.001;  // of the step
  int left_out = 0;
  for (const KindComparison& kind : c.kinds) {
    const double measured_s = kind.measured_s / c.meshes;
    rest_s -= measured_s;
    if (measured_s < worth_a_line * c.measured_s && ++left_out) continue;
    text += fmt::format("{:<32} {:>7} {:>10} {:>10} {:>7.3f}", kind.kind, share(measured_s),
                        seconds_text(kind.predicted_s / c.meshes), seconds_text(measured_s), kind.factor);
    text += kind.timed < KindComparison::enough
                ? fmt::format("  trusted in part: {}\n", count_text(kind.timed, "timed run"))
                : "\n";
  }
  if (left_out > 0)
    text +=
        fmt::format("and {} of less than {:.1f} % each\n", count_text(left_out, "kind"), 100 * worth_a_line);
  const auto unpredicted = [&](const char* what, double seconds) {
    return fmt::format("{:<32} {:>7} {:>10} {:>10}\n", what, share(seconds), "-", seconds_text(seconds));
  };
  text += unpredicted("host and launches", c.host_s);
  if (c.meshes > 1) text += unpredicted("waiting for other stages", std::max(rest_s, 0.0));
  text += fmt::format("calls of operators: {} longer each, for the host{}\n", seconds_text(c.call_gap_s),
                      c.lateness_s > 0 ? " and for devices that are late at the sums" : "");
  return text + fmt::format("step: predicted {} -> {}, measured {} (quartiles {} and {} of {})\n",
                            seconds_text(c.predicted_s), seconds_text(c.corrected_s),
                            seconds_text(c.measured_s), seconds_text(c.lower_quartile_s),
                            seconds_text(c.upper_quartile_s), count_text(c.steps, "step"));
}

}  // namespace alpa
