// Gradients that devices send each other in bf16 ([training] gradient_wire).
#include <gtest/gtest.h>

#include <cmath>

#include "libalpa/plan/check_plan.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/verify.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

struct Sent {
  int sums = 0;
  std::int64_t bytes = 0;  ///< handled by the group of a sum
};

/// Over devices, of what the graph says is sent in a type of its own, by one device of each mesh in a step.
Sent sent_for_sums(const Program& program, const Graph& with_wire) {
  Sent sent;
  for (const MeshProgram& mesh : program.meshes)
    for (const SegmentRun& run : mesh.schedule)
      for (const Instruction& instruction : mesh.segment_of(run).instructions) {
        const auto* convert = std::get_if<Convert>(&instruction.body);
        if (!convert) continue;
        const Buffer& from = mesh.buffers[convert->from];
        const bool sums = convert->step.kind == ConversionKind::all_reduce ||
                          convert->step.kind == ConversionKind::reduce_scatter;
        if (!sums || (from.value >= 0 && !value_of(with_wire, from.value).wire.sum_type)) continue;
        ++sent.sums;
        sent.bytes +=
            static_cast<std::int64_t>(step_bytes(convert->step, from.tile, mesh.buffers[convert->to].tile));
      }
  return sent;
}

struct WireCase {
  const char* method;
  int devices, micro_batches;
  Overlap overlap;
  const char* sync = "each";
  UpdateOrder updates = UpdateOrder::after_norm;
};

class GradientWire : public testing::TestWithParam<WireCase> {
 protected:
  static TinyCase of(const std::string& model) {
    TinyCase c{model, GetParam().method, GetParam().devices, GetParam().micro_batches};
    c.sync = GetParam().sync;
    c.updates = GetParam().updates;
    return c;
  }
};

// The same plan: a graph in which gradients are sent as bf16 differs in nothing else.
TEST_P(GradientWire, HalvesWhatIsSent) {
  const TinyTraining own(of("gpt"));
  Plan plan = own.plan();
  const Graph graph = TinyTraining(of("bf16_wire")).graph();
  plan.graph_fingerprint = graph_fingerprint(graph);
  check_plan(plan, graph);
  const Program program = lower(graph, plan);
  verify(program);
  const Sent f32 = sent_for_sums(own.program(), graph), bf16 = sent_for_sums(program, graph);
  EXPECT_GT(f32.sums, 0);
  EXPECT_EQ(bf16.sums, f32.sums);
  EXPECT_EQ(2 * bf16.bytes, f32.bytes);
}

// A term is off by 2^-9 of itself at most, and so is each of the n - 1 sums on the way: by n 2^-9 of the sum
// of the terms' sizes. Terms of devices with samples of their own are each about as large as their sum, or
// smaller where the sum is that of n terms that have nothing in common: then each is 1 / sqrt(n) of it, and
// all are sqrt(n).
TEST_P(GradientWire, IsOffByItsRoundingsAlone) {
  TinyTraining training(of("bf16_wire")), exact(of("gpt"));
  training.set_overlap(GetParam().overlap);
  const TinyCurve curve = training.run_on_threads(5), reference = exact.run_on_threads(5);
  EXPECT_EQ(training.run_on_threads(5).losses, curve.losses) << "not the same bits twice";
  EXPECT_EQ(curve.losses[0], reference.losses[0]);
  const double n = GetParam().devices, bound = n * std::sqrt(n) * std::exp2(-9);
  EXPECT_NEAR(curve.norms[0], reference.norms[0], bound * reference.norms[0]);
  EXPECT_NE(curve.norms[0], reference.norms[0]) << "nothing was rounded";
  for (std::size_t step = 1; step < curve.losses.size(); ++step)
    EXPECT_NEAR(curve.losses[step], reference.losses[step], bound * reference.losses[step]);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, GradientWire,
    testing::Values(WireCase{"data-parallel", 4, 2, Overlap::none},
                    WireCase{"data-parallel", 2, 1, Overlap::all},
                    WireCase{"data-parallel", 4, 2, Overlap::all, "one"},
                    WireCase{"data-parallel", 4, 2, Overlap::none, "ddp"},
                    WireCase{"data-parallel", 4, 2, Overlap::all, "one", UpdateOrder::next_forward},
                    WireCase{"zero-1", 4, 2, Overlap::none}, WireCase{"zero-2", 4, 2, Overlap::all},
                    WireCase{"zero-2", 4, 2, Overlap::all, "each", UpdateOrder::next_forward},
                    WireCase{"zero-3", 4, 2, Overlap::all}, WireCase{"mixed", 4, 4, Overlap::all}),
    [](const auto& test) {
      const WireCase& c = test.param;
      std::string name = std::string(c.method) + "_" + std::to_string(c.devices) + "_" + c.sync +
                         "_overlap_" + overlap_name(c.overlap) + "_" + update_order_name(c.updates);
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace alpa
