#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/batching_policy.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/graph/graph.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/plan/plan.h"
#include "libalpa/planner/planner_options.h"
#include "libalpa/program/program.h"
#include "libalpa/runtime/executor.h"
#include "tests/support/tensor_values.h"

namespace alpa {

/// A plan of a model of tests/data, made by one of the planner's methods ("mixed": two stages, split by
/// samples and by tensors; "interleaved" and "v-shaped": two stages on each two devices; "data x tensor, ring
/// x data": stages of two devices along each of these axes, as a pin calls them).
struct TinyCase {
  std::string model;
  std::string method;
  int devices = 1, micro_batches = 1;
  std::string schedule = "1f1b";
  Rematerialize rematerialize = Rematerialize::never;
  Precision precision = Precision::f32;
  int nodes = 1;  ///< that have these devices
  std::string transfers =
      kFastestTransfers;  ///< "broadcast": in chunks, for which these tensors are too small
  std::optional<double> gradient_clip = {};  ///< in place of the model's
  UpdateOrder updates = UpdateOrder::after_norm;
  std::string sync = kFastestSync;
  std::int64_t compression_rank = 0;  ///< of PowerSGD; 0: none
  std::int64_t gradient_delay = 0;    ///< steps
  std::string constraints = "";       ///< a file of them, under which a plan is looked for
  bool sparse = false;                ///< gradients of embeddings
  int servers = 0;                    ///< further nodes
  int staleness = -1;                 ///< of parameters that these servers hold
  std::optional<double> weight_decay = {};
  std::optional<OptimizerKind> optimizer = {};  ///< in place of the model's
  bool wire_bound = false;                      ///< links are so slow that nothing but bytes counts
  std::int64_t batch = 8;
  BatchingPolicy batching = BatchingPolicy::frontier;  ///< of graphs

  std::string name() const;  ///< of letters, digits and '_'
};

TinyCase unclipped(TinyCase c);  ///< gradients of any norm are taken as they are

struct TinyCurve {
  std::vector<double> losses, norms;         ///< of each step
  std::vector<std::vector<double>> metrics;  ///< sums of each step, in the graph's order
  double evaluation = 0;                     ///< loss of the last batch, evaluated after the last step
  std::int64_t skipped_steps = 0;            ///< f16: whose gradients overflowed
  std::int64_t corrected_steps = 0;          ///< whose updates were made again
  std::vector<double> leads;                 ///< of each step, where servers hold the states
  /// Whole, after the last step, terms added up; of run_on_threads() only.
  std::map<std::string, Values> states;
};

/// One such plan, lowered and verified.
class TinyTraining {
 public:
  explicit TinyTraining(const TinyCase&);

  /// Trains from the initial states of seed 1 on drawn tokens, which have something to learn. Every rank of
  /// the plan calls it with its device; all get the same curve. `at_end` sees the rank's executor last.
  TinyCurve run(int steps, Device& device, Communicator& world,
                const std::function<void(Executor&)>& at_end = {},
                const std::function<void(Executor&)>& after_each_step = {}) const;

  /// The same on one CPU per rank, each a thread, or on what other_ranks has in place of any device. Ranks
  /// that hold the same elements of a state are expected to hold the same bits.
  TinyCurve run_on_threads(
      int steps,
      const std::function<std::unique_ptr<Device>()>& device_of_rank = [] { return make_cpu_device(1); },
      const std::function<void(Executor&)>& after_each_step = {}) const;

  void set_overlap(Overlap);                               ///< of what is run
  void finish_every(int steps) { finish_every_ = steps; }  ///< learn all that is not known yet; 0: at the end
  void set_sync(std::vector<GradientSync>);
  void set_on_host(std::vector<ValueIndex>, double host_bytes_per_s = 1e9);
  /// What all layers of its stages save, or the first half of them; of a plan that recomputes none.
  void set_activations_on_host(bool half = false, double host_bytes_per_s = 1e9);

  const Plan& plan() const { return plan_; }
  const Graph& graph() const { return graph_; }
  const Program& program() const { return program_; }
  const TrainingOptions& options() const { return options_; }

 private:
  int finish_every_ = 0;
  BatchingPolicy batching_;
  TrainingOptions options_;
  Plan plan_;
  Graph graph_;
  Program program_, evaluation_;
};

/// That losses and gradient norms of five steps are those of the model on one device, but for the order of
/// f32 sums.
void expect_curve_of_one_device(const TinyTraining&, const std::string& model);

/// That losses have the same bits when run again, on a checked device, which draws the order of lanes, and
/// with all lanes beside each other, which the training is left with.
void expect_same_bits_in_any_order(TinyTraining&);

/// The relative error that roundings to a type leave in what a step computes, by arithmetic. With p
/// significant bits, a number in [1, 2) is off by at most 2^-p, evenly spread: relative to it, a standard
/// deviation of 2^-p / sqrt(6). Roundings are independent, so n in a row make sqrt(n) of one. The longest
/// chain of results of that type counts; each twice, since a split sum is rounded in its parts and as a
/// whole. Three standard deviations are sqrt(3 n) 2^-p.
double rounding_error(const Graph&, DType);

}  // namespace alpa
