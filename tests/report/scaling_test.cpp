#include "libalpa/report/scaling.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ScalingRow fitting(int devices, double step_s, const std::string& split = "DP") {
  return {.devices = devices, .step_s = step_s, .split = split, .memory_bytes = 3 << 20, .gap = 0.1};
}

ClusterScaling cluster(const std::string& name, double price, const std::vector<ScalingRow>& rows) {
  Cluster of;
  of.name = name;
  of.device = "GPU";
  of.devices_per_node = 8;
  of.memory_bytes = 1 << 30;
  return {of, price, rows};
}

/// One cluster slow and cheap, one fast and dear: 36 s are a hundredth of an hour.
Scaling two_clusters(double slow_price, double fast_price, double target_step_s) {
  const ScalingRow lacking{.devices = 4, .lacks = "no plan fits: 3 GiB are needed: 1.00 GiB short"};
  return {
      .model = "model",
      .batch = 64,
      .tokens = 640,
      .target_step_s = target_step_s,
      .steps = 0,
      .clusters = {cluster("slow", slow_price, {lacking, fitting(8, 36), fitting(16, 24), fitting(32, 18)}),
                   cluster("fast", fast_price, {fitting(4, 36), fitting(8, 9)})}};
}

TEST(Scaling, PaysWholeNodes) {
  const ClusterScaling c = cluster("c", 2, {fitting(4, 36), fitting(8, 36), fitting(12, 36)});
  EXPECT_DOUBLE_EQ(c.price_per_1000_steps(c.rows[0]), 2 * 10);  // 1000 x 36 s are 10 hours
  EXPECT_DOUBLE_EQ(c.price_per_1000_steps(c.rows[1]), 2 * 10);
  EXPECT_DOUBLE_EQ(c.price_per_1000_steps(c.rows[2]), 2 * 2 * 10);
}

TEST(Scaling, IsAsEfficientAsDevicesAreUsedBesideTheFirstRowThatFits) {
  const ClusterScaling c = two_clusters(0, 0, 0).clusters[0];
  EXPECT_DOUBLE_EQ(c.efficiency(c.rows[1]), 1);
  EXPECT_DOUBLE_EQ(c.efficiency(c.rows[2]), 0.75);  // 1.5 times as fast on twice as many
  EXPECT_DOUBLE_EQ(c.efficiency(c.rows[3]), 0.5);
}

TEST(Scaling, ChoosesWhatCostsLeastOfWhatReachesTheTarget) {
  const auto chosen = [](const Scaling& scaling) {
    const auto choice = cheapest(scaling);
    return choice ? choice->cluster->cluster.name + " " + std::to_string(choice->row->devices) : "none";
  };
  EXPECT_EQ(chosen(two_clusters(1, 2, 30)), "fast 8");    // 2 x 1 node x 9 s against 1 x 2 nodes x 24 s
  EXPECT_EQ(chosen(two_clusters(1, 10, 30)), "slow 16");  // 10 x 9 s against 2 x 24 s
  EXPECT_EQ(chosen(two_clusters(1, 10, 15)), "fast 8");   // the only one
  EXPECT_EQ(chosen(two_clusters(1, 10, 36)), "slow 8");   // as long as the target is within it
  EXPECT_EQ(chosen(two_clusters(1, 10, 1)), "none");
  EXPECT_EQ(chosen(two_clusters(1, 10, 0)), "none");
}

TEST(Scaling, WithoutPricesChoosesTheFewestDevices) {
  const Scaling scaling = two_clusters(0, 0, 36);
  const auto choice = cheapest(scaling);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->row->devices, 4);
}

TEST(ScalingText, HasALineForEachNumberOfDevicesAndSaysWhatIsLacking) {
  const std::string text = scaling_text(two_clusters(1, 2, 30));
  EXPECT_THAT(text, HasSubstr("model, 64 samples a step (640 tokens)\n"));
  EXPECT_THAT(text,
              HasSubstr("\n      4        -         -           -             -                  -          "
                        "          -  does not fit: 1.00 GiB short\n"));
  EXPECT_THAT(text, HasSubstr("\n     16  24.00 s     26.67      75.0 %        10.0 %           3.00 MiB "
                              "               13.33  DP\n"));
  EXPECT_THAT(text, HasSubstr("  <- cheapest for the target\n"));
  EXPECT_THAT(text,
              HasSubstr("\ncheapest for the target of 30.00 s a step: 8 devices of 'fast', DP, 9.00 s a "
                        "step, 5.00 for 1000 steps\n"));
}

TEST(ScalingText, SaysWhatTheWholeTrainingTakes) {
  Scaling scaling = two_clusters(1, 2, 30);
  scaling.steps = 2000;
  EXPECT_THAT(scaling_text(scaling), HasSubstr(", 9.00 s a step; 5h00m in all for 10.00\n"));
}

TEST(ScalingText, LeavesOutWhatIsNotKnown) {
  Scaling scaling = two_clusters(0, 0, 0);
  scaling.tokens = 0;
  EXPECT_THAT(scaling_text(scaling),
              AllOf(Not(HasSubstr("price")), Not(HasSubstr("target")), HasSubstr("  samples/s  ")));
  scaling.target_step_s = 1;
  EXPECT_THAT(scaling_text(scaling), HasSubstr("\nnone reaches the target of 1.00 s a step\n"));
}

TEST(ScalingText, SaysWhereTheCostsOfEachRowAreFromBesideAProfile) {
  Scaling scaling = two_clusters(0, 0, 0);
  EXPECT_THAT(scaling_text(scaling), Not(HasSubstr("costs")));
  scaling.measured_on = "1 node of 8 devices (GPU)";
  std::vector<ScalingRow>& rows = scaling.clusters[0].rows;
  rows[1].costs = "measured";
  rows[2].costs = "extrapolated";
  rows[2].estimated_operators = 12;
  EXPECT_THAT(scaling_text(scaling),
              AllOf(HasSubstr("\ncosts were measured on 1 node of 8 devices (GPU), and are extrapolated to "
                              "more or others\n"),
                    HasSubstr("  memory per device                                 costs  plan\n"),
                    HasSubstr("  3.00 MiB                              measured  DP\n"),
                    HasSubstr("  3.00 MiB  extrapolated, 12 operators estimated  DP\n")));
  const nlohmann::json json = nlohmann::json::parse(scaling_json(scaling).text());
  EXPECT_EQ(json["measured_on"], scaling.measured_on);
  EXPECT_EQ(json["clusters"][0]["rows"][1]["costs"], "measured");
  EXPECT_EQ(json["clusters"][0]["rows"][2]["estimated_operators"], 12);
}

TEST(ScalingJson, HasTheSameFiguresByName) {
  const Scaling scaling = two_clusters(1, 2, 30);
  const nlohmann::json json = nlohmann::json::parse(scaling_json(scaling).text());
  const nlohmann::json &lacking = json["clusters"][0]["rows"][0], &row = json["clusters"][0]["rows"][2];
  EXPECT_EQ(lacking["fits"], false);
  EXPECT_EQ(lacking["lacks"], scaling.clusters[0].rows[0].lacks);
  EXPECT_EQ(row["nodes"], 2);
  EXPECT_EQ(row["samples_per_s"], 64.0 / 24);
  EXPECT_EQ(row["tokens_per_s"], 640.0 / 24);
  EXPECT_EQ(row["price_per_1000_steps"],
            scaling.clusters[0].price_per_1000_steps(scaling.clusters[0].rows[2]));
  EXPECT_EQ(json["cheapest"], nlohmann::json({{"cluster", 1}, {"devices", 8}}));
}

TEST(ScalingPage, PutsTheDataIntoTheSkeleton) {
  EXPECT_THAT(scaling_page("<data>{{data}}</data>", two_clusters(0, 0, 0)),
              testing::StartsWith("<data>{\"format\":\"alpa-plan-sweep\","));
}

}  // namespace
}  // namespace alpa
