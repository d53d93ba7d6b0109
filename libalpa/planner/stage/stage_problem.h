#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/planner/stage/choice_reader.h"
#include "libalpa/planner/stage/mesh_costs.h"
#include "libalpa/planner/stage/stage_edges.h"
#include "libalpa/solver/selection/strategy_selection.h"

namespace alpa {

/// What memory that lasts is worth, in place of a limit to it.
struct MemoryPrice {
  double per_byte_s = 0;  ///< seconds of a step for each byte that is held all the time
  double in_flight = 1;   ///< likewise for each of activations: that many micro-batches hold it
  bool operator==(const MemoryPrice&) const = default;
};

/// The selection problem of a stage, over its nodes, the resting layouts of its states and of values with
/// several users, with equal layers folded into one.
class StageProblem {
 public:
  /// Keeps references to the graph and the prices.
  StageProblem(const PlanningGraph&, const StageRequest&, const MeshCosts&);
  StageProblem(const StageProblem&) = delete;
  StageProblem& operator=(const StageProblem&) = delete;

  const std::string& why_not() const { return stage_.why_not; }  ///< where there is no problem; else ""
  /// Over all variables, then conversions: those whose memory was refined so far, at those ticks.
  const SelectionProblem& selection() const { return problem_; }
  /// [tick of the stage's clock] What a choice for every variable holds: exact but for messages, of which it
  /// is a bound.
  std::vector<std::int64_t> bytes_over_time(const std::vector<int>& choice) const;
  bool fits(const std::vector<int>& choice) const;
  /// Where that choice does not fit, it does not fit into selection() any more.
  void refine(const std::vector<int>& choice);
  /// What fits into selection() then fits.
  void refine_everywhere();
  const StageVariables& variables() const { return stage_; }

  /// The problem with memory paid for, not limited.
  SelectionProblem priced(const MemoryPrice&) const;
  /// [layer of the stage] Likewise, of each layer by itself, what goes to others being free: the least costs
  /// add up to a bound on every stage made of some of them. An update counts so often; 0: micro-batches
  /// alone. Equal layers share what the first of them has.
  std::vector<SelectionProblem> priced_layers(const MemoryPrice&, double update_weight) const;
  std::vector<double> shared_by_copies(const std::vector<double>& of_layers) const {
    return reader_.shared_by_copies(of_layers);
  }
  /// [layer of the stage] Of a choice for every variable.
  std::vector<LayerCosts> layer_costs(const std::vector<int>& choice) const;
  int layer_of(int variable) const { return reader_.layer_of(stage_.variables[variable]); }

  /// What a choice for every variable makes all nodes of the selection problem choose, and the other way.
  std::vector<int> with_conversions(std::vector<int> choice) const;
  std::vector<int> decisions(std::vector<int> choice) const;
  StageSolution solution_of(const std::vector<int>& choice) const;
  const ChoiceReader& reader() const { return reader_; }

 private:
  const StageVariable& variable(int index) const { return stage_.variables[index]; }

  SelectionProblem priced(const MemoryPrice&, bool apart, double update_weight) const;
  std::optional<std::int64_t> most_bytes() const;
  void make_selection();
  int node_of_conversion(std::size_t);
  const ConversionCases& cases_of(std::size_t conversion);
  std::size_t case_of(std::size_t conversion, const std::vector<int>& choice) const;
  bool rests_as_made(const StageConversion&, const std::vector<int>& choice) const;
  /// [tick] `of_variable(i, bytes of each choice)` and `of_conversion(i)`, [piece], held at their times.
  template <class OfVariable, class OfConversion>
  std::vector<std::int64_t> held_over_time(const OfVariable&, const OfConversion&) const;
  void hold_conversions_where(const std::vector<std::int64_t>& bytes);

  StageRequest request_;
  StageScope scope_;
  const MeshCosts& mesh_costs_;
  StageVariables stage_;
  ChoiceReader reader_;
  SelectionProblem problem_;
  std::map<std::size_t, ConversionCases> cases_;  ///< of conversions that were asked for
  std::vector<std::size_t> held_conversions_;  ///< those that are nodes of the problem, after the variables
  std::vector<bool> refined_;                  ///< [tick]
};

/// Chooses a strategy for every node of a stage (Alpa, OSDI'22, section 4): solves its selection problem
/// under the memory limit of the cluster's devices. Starts from the choices of `start` where it is given and
/// the stage has them all; the solution is then no worse, if they fit. May be called by several threads.
StageSolution solve_stage(const PlanningGraph&, const StageRequest&, const MeshCosts&,
                          const SelectionOptions&, const StageSolution* start = nullptr);

}  // namespace alpa
