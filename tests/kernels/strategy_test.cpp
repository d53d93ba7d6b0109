#include "libalpa/sharding/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "libalpa/ops/catalog.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

bool along(std::uint32_t axes, std::size_t axis) { return axes >> axis & 1; }

/// The device's number among those that differ along these axes only.
std::size_t rank_along(std::uint32_t axes, const MeshShape& mesh, const std::vector<int>& coordinate) {
  std::size_t rank = 0;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if (along(axes, axis))
      rank = rank * static_cast<std::size_t>(mesh[axis]) + static_cast<std::size_t>(coordinate[axis]);
  return rank;
}

std::size_t ranks_along(std::uint32_t axes, const MeshShape& mesh) {
  std::size_t ranks = 1;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if (along(axes, axis)) ranks *= static_cast<std::size_t>(mesh[axis]);
  return ranks;
}

/// Random terms of a tensor, in f32, that sum to it: one for each rank along the partial axes.
std::vector<Values> terms_of(const Values& whole, std::size_t count) {
  std::vector<Values> terms;
  Values rest = whole;
  for (std::size_t t = 0; t + 1 < count; ++t) {
    terms.push_back(
        rounded(uniform_values(static_cast<std::int64_t>(whole.size()), -1, 1, 900 + t), DType::f32));
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= terms.back()[i];
  }
  terms.push_back(rounded(rest, DType::f32));
  return terms;
}

/// A result put together from the tiles that the devices of a mesh come to hold.
class Whole {
 public:
  Whole(Shape shape, ShardingSpec spec, MeshShape mesh)
      : shape_(std::move(shape)), spec_(std::move(spec)), mesh_(std::move(mesh)) {
    terms_.resize(ranks_along(partial(), mesh_));
  }

  /// Elements that another device holds too must be the same there, bit for bit: equal work on equal tiles.
  void add(const std::vector<int>& coordinate, const Values& tile) {
    Values& term = terms_[rank_along(partial(), mesh_, coordinate)];
    term.resize(static_cast<std::size_t>(element_count(shape_)), kAbsent);
    int unequal = 0;
    for_box(shape_, tile_origin(shape_, spec_, mesh_, coordinate), tile_shape(shape_, spec_, mesh_),
            [&](std::size_t to, std::size_t from) {
              unequal += term[to] != kAbsent && term[to] != tile[from];
              term[to] = tile[from];
            });
    EXPECT_EQ(unequal, 0) << "elements differ between copies of " << spec_text(spec_);
  }

  /// Terms summed along the axes of partial sums, the largest taken along those of partial maxima.
  Values reduced() const {
    Values whole = terms_.at(0);
    for (std::size_t t = 1; t < terms_.size(); ++t)
      for (std::size_t i = 0; i < whole.size(); ++i)
        whole[i] = spec_.partial_max ? std::max(whole[i], terms_[t][i]) : whole[i] + terms_[t][i];
    EXPECT_EQ(std::count(whole.begin(), whole.end(), kAbsent), 0) << "nobody holds these elements";
    return whole;
  }

 private:
  static constexpr double kAbsent = 1e300;

  std::uint32_t partial() const { return spec_.partial_sum | spec_.partial_max; }

  Shape shape_;
  ShardingSpec spec_;
  MeshShape mesh_;
  std::vector<Values> terms_;  ///< [rank along the partial axes]
};

/// The operands of a call as the devices of a mesh hold them under a layout.
class CutOperands {
 public:
  CutOperands(const PreparedCase& p, const NodeLayout& layout, const MeshShape& mesh)
      : p_(p), layout_(layout), mesh_(mesh) {
    for (std::size_t i = 0; i < p.values.size(); ++i) {
      const std::uint32_t partial = layout.operands[i].partial_sum;
      terms_.push_back(terms_of(p.values[i], ranks_along(partial, mesh)));
    }
  }

  std::vector<Values> tiles(const std::vector<int>& coordinate) const {
    std::vector<Values> tiles;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      const Shape& whole = p_.operands[i].shape;
      tiles.push_back(slice(terms_[i][rank_along(layout_.operands[i].partial_sum, mesh_, coordinate)], whole,
                            tile_origin(whole, layout_.operands[i], mesh_, coordinate),
                            layout_.local_operands[i].shape));
    }
    return tiles;
  }

 private:
  const PreparedCase& p_;
  const NodeLayout& layout_;
  const MeshShape& mesh_;
  std::vector<std::vector<Values>> terms_;  ///< [operand][rank along its partial axes]
};

bool goes_round(const std::vector<int>& which, std::size_t tensor) {
  return std::find(which.begin(), which.end(), static_cast<int>(tensor)) != which.end();
}

/// The devices of a mesh at work under a strategy, round by round where blocks go round.
class DevicesAtWork {
 public:
  DevicesAtWork(Device& device, const PreparedCase& p, const Strategy& strategy, const MeshShape& mesh)
      : device_(device), p_(p), mesh_(mesh), layout_(layout_of(*p.op, p.call(), strategy, mesh)) {}

  std::vector<Values> results() {
    const CutOperands operands(p_, layout_, mesh_);
    for (const RingRound& round : layout_.ring.rounds()) {
      const std::vector<std::vector<Values>> before = held_;
      held_.clear();
      for (int rank = 0; rank < device_count(mesh_); ++rank) {
        const std::vector<int> coordinate = coordinate_of({DeviceIndex(0), mesh_}, DeviceIndex(rank));
        KernelRun run = run_of(round, coordinate);
        run.accumulate = !before.empty();
        for (std::size_t r = 0; r < p_.results.size() && run.accumulate; ++r)
          run.results_before.push_back(before_of(before, round, coordinate, r));
        std::vector<Values> tiles = operands.tiles(coordinate);
        const std::vector<Values> visiting = operands.tiles(upstream(coordinate, round.hops));
        for (const int i : layout_.ring.operands) tiles[i] = visiting[i];
        held_.push_back(run_kernel(device_, run, tiles));
      }
    }
    std::vector<Values> results;
    for (std::size_t r = 0; r < p_.results.size(); ++r) {
      Whole whole(p_.results[r].shape, layout_.results[r], mesh_);
      for (int rank = 0; rank < device_count(mesh_); ++rank)
        whole.add(coordinate_of({DeviceIndex(0), mesh_}, DeviceIndex(rank)), held_[rank][r]);
      results.push_back(whole.reduced());
    }
    return results;
  }

 private:
  /// The device from which blocks come that have been passed on so often.
  std::vector<int> upstream(std::vector<int> coordinate, int passed) const {
    if (!layout_.ring.exists()) return coordinate;
    const auto axis = static_cast<std::size_t>(layout_.ring.axis);
    coordinate[axis] = (coordinate[axis] + mesh_[axis] - passed) % mesh_[axis];
    return coordinate;
  }

  /// What a result holds before a round. Those that go round come from the device before.
  Values before_of(const std::vector<std::vector<Values>>& before, const RingRound& round,
                   const std::vector<int>& coordinate, std::size_t result) const {
    const std::vector<int> from = goes_round(layout_.ring.results, result) && round.results_arrive
                                      ? upstream(coordinate, 1)
                                      : coordinate;
    return before[rank_along(~0u, mesh_, from)][result];
  }

  KernelRun run_of(const RingRound& round, const std::vector<int>& coordinate) const {
    KernelRun run = p_.run();
    run.operands = layout_.local_operands;
    run.results = layout_.local_results;
    run.attributes = layout_.attributes_in(round);
    const auto place = [&](const std::vector<TensorType>& types, const std::vector<ShardingSpec>& specs,
                           const std::vector<int>& passed, std::vector<Shape>& origins,
                           std::vector<Shape>& wholes) {
      for (std::size_t i = 0; i < types.size(); ++i) {
        const std::vector<int> home = goes_round(passed, i) ? upstream(coordinate, round.hops) : coordinate;
        origins.push_back(tile_origin(types[i].shape, specs[i], mesh_, home));
        wholes.push_back(types[i].shape);
      }
    };
    place(p_.operands, layout_.operands, layout_.ring.operands, run.operand_origins, run.operand_wholes);
    place(p_.results, layout_.results, layout_.ring.results, run.result_origins, run.result_wholes);
    return run;
  }

  Device& device_;
  const PreparedCase& p_;
  const MeshShape& mesh_;
  NodeLayout layout_;
  std::vector<std::vector<Values>> held_;  ///< [device][result]
};

/// The case with every factor that may be split, and is not 1, made a multiple of four: cases are odd, which
/// leaves few strategies.
OpCase divisible(OpCase c) {
  const PreparedCase p = prepare(c, DType::f32);
  ShardingRule rule = rule_of(*p.op, p.call());
  for (Factor& factor : rule.factors) {
    if (factor.whole || factor.size == 1) continue;
    factor.size = std::lcm(factor.size, std::int64_t{4});
    if (c.attributes.has("size_" + factor.name)) c.attributes.set("size_" + factor.name, factor.size);
    if (factor.name == "v" && c.ids > 0) c.ids = static_cast<int>(factor.size);
  }
  std::istringstream words(c.operands);
  std::string operands, word;
  for (const std::vector<DimensionFactors>& dimensions : rule.operands) {
    words >> word;
    operands += std::string(operands.empty() ? "" : " ") + word[0] + "[";
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
      std::int64_t extent = 1;
      for (const int f : dimensions[d]) extent *= rule.factors[f].size;
      operands += (d ? "x" : "") + std::to_string(extent);
    }
    operands += "]";
  }
  c.operands = operands;
  return c;
}

/// Small enough to be computed some dozen times and by the loop nest.
bool is_quick(const PreparedCase& p) {
  return flops_of(*p.op, p.call()) + static_cast<double>(bytes_moved_by(*p.op, p.call())) < 5e6;
}

class EveryStrategy : public ::testing::TestWithParam<std::string> {};

/// The tolerance is that of the whole: the terms of a tensor are of its elements' order, and adding up to
/// four of them rounds a few times more. The global norm has no strategy but that of all axes idle.
TEST_P(EveryStrategy, ComputesTheWholeOnTheTilesOfAMesh) {
  const auto device = make_cpu_device(1);
  std::set<int> choices;
  bool can_be_split = false;
  for (const OpCase& odd : cases_of(op_catalog().find(GetParam())))
    for (const OpCase& c : {odd, divisible(odd)}) {
      const PreparedCase p = prepare(c, DType::f32);
      if (!is_quick(p)) continue;
      const ShardingRule rule = rule_of(*p.op, p.call());
      for (int f = 0; f < std::ssize(rule.factors); ++f)
        can_be_split = can_be_split || (can_split(rule, f) && !p.op->reduces_globally);
      const std::vector<Values> expected = meaning(p, p.expected());
      for (const MeshShape& mesh : {MeshShape{2}, MeshShape{4}, MeshShape{2, 2}})
        for (const Strategy& strategy : strategies(*p.op, p.call(), mesh)) {
          SCOPED_TRACE(case_text(c) + ", on " + mesh_text(mesh) + ": " +
                       strategy_text(*p.op, p.call(), strategy));
          expect_all_near(meaning(p, DevicesAtWork(*device, p, strategy, mesh).results()), expected, p);
          choices.insert(strategy.begin(), strategy.end());
        }
    }
  const OpDef& op = op_catalog().find(GetParam());
  EXPECT_EQ(choices.contains(kPassPartialAxis), op.linear_operands > 0);
  EXPECT_EQ(*choices.rbegin() >= 0, can_be_split) << "no factor was split";
}

INSTANTIATE_TEST_SUITE_P(Op, EveryStrategy, ::testing::ValuesIn(op_names()), kOpName);

}  // namespace
}  // namespace alpa
