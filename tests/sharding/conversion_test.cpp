#include "libalpa/sharding/conversion.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/support/index_literals.h"

namespace alpa {
namespace {

Cluster two_by_four() {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.devices_per_node = 4;
  cluster.memory_bytes_per_s = 1e12;
  cluster.f32_flops_per_s = cluster.bf16_flops_per_s = 1e13;
  cluster.within_node = {1e-6, 1e11};
  cluster.between_nodes = {1e-5, 1e10};
  return cluster;
}

std::string chain(const char* from, const char* to, double between_bytes_per_s = 1e11,
                  const MeshShape& mesh = {2, 4}) {
  Cluster cluster = two_by_four();
  cluster.between_nodes.bytes_per_s = between_bytes_per_s;
  const Conversions conversions(cluster, {0_d, mesh});
  const Conversion* found = conversions.between({DType::f32, {1024, 1024}}, parse_spec(from), parse_spec(to));
  if (!found) return "none";
  std::string text;
  for (const ConversionStep& step : *found)
    text +=
        std::string(text.empty() ? "" : ", ") + conversion_name(step.kind) + " " + std::to_string(step.axis);
  return text;
}

TEST(Conversions, AreTheCheapestChains) {
  EXPECT_EQ(chain("RR", "RR"), "");
  EXPECT_EQ(chain("RR", "S0S1"), "slice 1, slice 0");
  EXPECT_EQ(chain("S0S1", "S0R"), "all-gather 1");
  EXPECT_EQ(chain("S0S1", "S01R"), "all-to-all 1");
  EXPECT_EQ(chain("S0R+sum1", "S0R"), "all-reduce 1");
  EXPECT_EQ(chain("S0R+sum1", "S0S1"), "reduce-scatter 1");
  EXPECT_EQ(chain("S0R+max1", "S0R"), "all-reduce 1");
}

TEST(Conversions, MoveLittleOverTheSlowAxis) {
  // The slow axis moves a quarter of the data when the fast one is gathered last.
  EXPECT_EQ(chain("S0S1", "RR", 1e10), "all-gather 0, all-gather 1");
  // All four devices of a node hold the same half, so each fetches a quarter of the rest and shares it on the
  // node.
  EXPECT_EQ(chain("S0R", "RR", 1e10), "slice 1, all-gather 0, all-gather 1");
  // A sum that nobody shares out is first shared out among those who hold it twice.
  EXPECT_EQ(chain("RR+sum1", "RS1", 1e12), "slice 0, reduce-scatter 1, all-gather 0");
  // Where the four devices of a node share an interface that is no faster than their links, that is not worth
  // it.
  EXPECT_EQ(chain("RR+sum1", "RS1", 1e11), "reduce-scatter 1");
}

TEST(Conversions, OnThreeAxesGoAlongEachInItsTurn) {
  const auto three = [](const char* from, const char* to) { return chain(from, to, 1e10, {2, 2, 2}); };
  EXPECT_EQ(three("S01S2", "S0S2"), "all-gather 1");
  EXPECT_EQ(three("S01R+sum2", "S012R"), "reduce-scatter 2");
  EXPECT_EQ(three("S01S2", "S012R"), "all-to-all 2");
  // A sum over all nodes of what each adds up first, and shares out.
  EXPECT_EQ(three("RS2+sum0+sum1", "RS2"), "reduce-scatter 1, all-reduce 0, all-gather 1");
  EXPECT_EQ(three("S0R+sum1+sum2", "S0S12"), "reduce-scatter 1, reduce-scatter 2");
}

TEST(Conversions, NeverMakeAPartialValue) { EXPECT_EQ(chain("RR", "RR+sum0"), "none"); }

TEST(Conversions, KeepWhatIsPartialOnAnotherAxis) { EXPECT_EQ(chain("S0R+sum1", "RR+sum1"), "all-gather 0"); }

TEST(Conversions, CostWhatTheFormulaSays) {
  const CostModel costs(two_by_four());
  const Conversions conversions(two_by_four(), {0_d, {4}});
  // all-reduce of 4 MiB over 4 devices of a node: there and back, 3/4 of the bytes each time.
  EXPECT_DOUBLE_EQ(
      conversions.seconds({DType::f32, {1024, 1024}}, parse_spec("RR+sum0"), parse_spec("RR"), costs),
      2 * 1e-6 + 2 * 0.75 * 4194304 / 1e11);
  EXPECT_EQ(conversions.seconds({DType::f32, {1024, 1024}}, parse_spec("RR"), parse_spec("RR+sum0"), costs),
            std::numeric_limits<double>::infinity());
}

TEST(Conversions, ThatAreSumsAloneMayShareTheirCollectives) {
  const Cluster cluster = two_by_four();
  const CostModel costs(cluster);
  const auto seconds = [&](const Shape& shape, const MeshShape& mesh, const char* from, const char* to,
                           double shared_bytes) {
    return Conversions(cluster, {0_d, mesh})
        .seconds({DType::f32, shape}, parse_spec(from), parse_spec(to), costs, shared_bytes);
  };
  // Of 4 MiB beside 12 others a quarter of what is there but once.
  const double there_and_back_s = 2 * 0.75 * 4194304 / 1e11;
  EXPECT_DOUBLE_EQ(seconds({1024, 1024}, {4}, "RR+sum0", "RR", 16 << 20), 2 * 1e-6 / 4 + there_and_back_s);
  // One after the other, over two devices of a node, then over the two nodes, whose devices share an
  // interface; each of them gathers the terms at once.
  const double within_s = 1024 / 1e11, between_s = 4 * 1024 / 1e10;
  for (const int sums : {1, 2, 8})
    EXPECT_DOUBLE_EQ(seconds({16, 16}, {2, 2, 2}, "RR+sum0+sum2", "RR", 1024 * sums),
                     within_s + between_s + (1e-6 + 1e-5) / sums);
  // What is more than sums is a collective of its own.
  for (const char* to : {"RS0", "S0R"})
    EXPECT_EQ(seconds({1024, 1024}, {4}, "RR+sum0", to, 16 << 20),
              seconds({1024, 1024}, {4}, "RR+sum0", to, 0));
}

/// A sum's on the way from one layout to another, its terms sent in bf16.
Conversion in_bf16(const Shape& shape, const MeshShape& mesh, const char* from, const char* to) {
  return *Conversions(two_by_four(), {0_d, mesh})
              .between({DType::f32, shape}, parse_spec(from), parse_spec(to), {DType::bf16});
}

TEST(ConversionsInAWireType, SendSumsInItAndNothingElse) {
  for (const ConversionStep& step : in_bf16({1024, 1024}, {2, 2, 2}, "RR+sum0+sum1", "RR")) {
    const bool sums = step.kind == ConversionKind::reduce_scatter || step.kind == ConversionKind::all_reduce;
    EXPECT_EQ(step.wire_type, sums ? std::optional(DType::bf16) : std::nullopt) << conversion_name(step.kind);
  }
  EXPECT_EQ(in_bf16({8, 8}, {4}, "S0R", "RS0")[0].wire_type, std::nullopt);
}

TEST(ConversionsOfRowsWithIds, LeaveOutRowsWhereThoseOfADeviceStayOneStretch) {
  const WireFormat rows{{}, 4, 0};
  const Conversions conversions(two_by_four(), {0_d, {4}});
  const TensorType whole{DType::f32, {8, 4, 16}};
  const auto step = [&](const char* from, const char* to) {
    return conversions.between(whole, parse_spec(from), parse_spec(to), rows)->front();
  };
  const double uniform = 4 * (1 - std::pow(0.75, 8)) / 8;  // of 8 ids of a device, as many of 4 differ
  EXPECT_EQ(step("S0RR", "RRR").sent_share, uniform);
  EXPECT_EQ(step("RS0R", "RRR").sent_share, std::nullopt);  // packed, all of it
  EXPECT_EQ(step("RRS0", "RRR").sent_share, std::nullopt);  // parts of rows
  const double bytes = 8 * 4 * 16 * 4;
  EXPECT_EQ(step_bytes(step("S0RR", "RRR"), {DType::f32, {2, 4, 16}}, whole), uniform * bytes);
}

TEST(ConversionsInAWireType, OfTheirOwnTypeAreAsThoseWithout) {
  const Conversions conversions(two_by_four(), {0_d, {4}});
  const TensorType whole{DType::bf16, {64, 64}};
  EXPECT_EQ(*conversions.between(whole, parse_spec("RR+sum0"), parse_spec("RR"), {DType::bf16}),
            *conversions.between(whole, parse_spec("RR+sum0"), parse_spec("RR")));
}

TEST(ConversionsInAWireType, SendHalfOfTheBytesAndRoundThemFirst) {
  const Cluster cluster = two_by_four();
  const CostModel costs(cluster);
  const DeviceMesh mesh{0_d, {4}};
  const TensorType tile{DType::f32, {1024, 1024}}, quarter{DType::f32, {256, 1024}};
  const double elements = 1024 * 1024, launches_s = 2 * cluster.launch_s;
  const auto rounded_s = [&](double count) { return 2 * 3 * count / cluster.memory_bytes_per_s; };  // 4 to 2
  const ConversionStep sum = in_bf16(tile.shape, {4}, "RR+sum0", "RR")[0];
  EXPECT_EQ(step_bytes(sum, tile, tile), 2 * elements);
  EXPECT_EQ(packed_bytes(sum, tile), 2 * elements);
  EXPECT_EQ(unpacked_bytes(sum, tile), 0) << "where it was packed";
  EXPECT_DOUBLE_EQ(step_seconds(sum, tile, tile, mesh, costs),
                   2 * 1e-6 + 2 * 0.75 * 2 * elements / 1e11 + launches_s + 2 * rounded_s(elements));
  const ConversionStep scatter = in_bf16(tile.shape, {4}, "RR+sum0", "S0R")[0];
  EXPECT_EQ(packed_bytes(scatter, tile), 2 * elements);
  EXPECT_EQ(unpacked_bytes(scatter, quarter), elements / 2);
  EXPECT_DOUBLE_EQ(
      step_seconds(scatter, tile, quarter, mesh, costs),
      1e-6 + 0.75 * 2 * elements / 1e11 + launches_s + rounded_s(elements) + rounded_s(elements / 4));
}

TEST(ConversionsInAWireType, HoldWhatIsPackedBesideWhatTheySumOver) {
  const Conversion steps = in_bf16({64, 64}, {4}, "RR+sum0", "RR");
  const auto bytes = [&](ConversionEnd end) {
    return conversion_bytes(steps, {DType::f32, {64, 64}}, parse_spec("RR+sum0"), {4}, end);
  };
  EXPECT_EQ(bytes(ConversionEnd::over_source).first, 2 * 64 * 64);
  EXPECT_EQ(bytes(ConversionEnd::fresh).first, 2 * 64 * 64 + 4 * 64 * 64);
}

}  // namespace
}  // namespace alpa
