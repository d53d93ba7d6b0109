// How a model scales over numbers of devices.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/commands/shown_page.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Sweep : public Workplace {
 protected:
  std::string sweep(const std::string& options) const {
    return "alpa-plan sweep " + tiny_gpt_ + " --cluster " + cluster_ + " " + options;
  }
  nlohmann::json json_of(const std::string& command) const {
    const CommandResult result = run(command + " --json --log-level error");
    EXPECT_EQ(result.status, 0) << result.output;
    return nlohmann::json::parse(result.output);
  }
  /// Ends with that status after one message that begins so, and writes no page.
  void expect_refused(const std::string& command, int status, const std::string& message) const {
    const CommandResult result = run(command + " --out page.html");
    EXPECT_EQ(result.status, status) << command << "\n" << result.output;
    EXPECT_THAT(result.output, StartsWith("alpa-plan: error: " + message)) << command;
    EXPECT_FALSE(std::filesystem::exists(path("page.html")));
  }
};

TEST_F(Sweep, HasThePlansThatAlpaPlanMakesOneByOne) {
  const nlohmann::json rows = json_of(sweep("--devices 1..4 --effort quick"))["clusters"][0]["rows"];
  ASSERT_EQ(rows.size(), 3u);
  for (const nlohmann::json& row : rows) {
    const std::string devices = std::to_string(row["devices"].get<int>());
    make_plan("plan" + devices, "--effort quick --devices " + devices);
    const nlohmann::json facts =
        nlohmann::json::parse(run("alpa-plan explain plan" + devices + ".h5 --json").output);
    EXPECT_EQ(row["step_s"], facts["step_s"]) << devices;
    EXPECT_EQ(row["micro_batches"], facts["micro_batches"]) << devices;
    EXPECT_THAT(row["split"].get<std::string>(), StartsWith(facts["split"].get<std::string>()));
    EXPECT_EQ(row["samples_per_s"].get<double>(), 8 / facts["step_s"].get<double>());
  }
}

TEST_F(Sweep, TakesMeasuredCostsAndExtrapolatesThemToMoreOrOtherMachines) {
  const CommandResult profiled =
      run("alpa-profile " + tiny_gpt_ +
              " --repetitions 1 --least-sample-ms 0.01 --cold-mib 1 --time-budget 10 --out profile.h5",
          2);
  ASSERT_EQ(profiled.status, 0) << profiled.output;
  const std::string measured = "alpa-plan sweep " + tiny_gpt_ + " --profile profile.h5 --devices ",
                    method = " --method data-parallel";
  const nlohmann::json one_node = json_of(measured + "2" + method);
  EXPECT_THAT(one_node["measured_on"].get<std::string>(), StartsWith("1 node of 2 devices (CPU"));
  expect_refused(measured + "2,4" + method + " --log-level error", 2,
                 "--devices: 4 devices are 2 nodes, and 'profile.h5' was measured on one: nothing is known");

  // As alpa-plan has them, one by one.
  const std::string link = "between_nodes = { latency_us = 50, gb_per_s = 1 }\n";
  write("more.toml", "name = \"more\"\nnodes = 2\ndevices_per_node = 2\n" + link);
  const nlohmann::json rows =
      json_of(measured + "2,4" + method + " --cluster more.toml --cluster " + cluster_)["clusters"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["rows"][0]["costs"], "measured");
  EXPECT_EQ(rows[0]["rows"][0]["step_s"], one_node["clusters"][0]["rows"][0]["step_s"]);
  EXPECT_EQ(rows[0]["rows"][1]["costs"], "extrapolated");
  EXPECT_EQ(rows[1]["rows"][0]["costs"], "extrapolated");
  const std::vector<std::pair<std::string, nlohmann::json>> expected{
      {"", rows[0]["rows"][0]},
      {" --cluster more.toml", rows[0]["rows"][1]},
      {" --cluster " + cluster_, rows[1]["rows"][1]}};
  for (const auto& [cluster, row] : expected) {
    const CommandResult made =
        run("alpa-plan " + tiny_gpt_ + " --profile profile.h5" + cluster + method + " --force --out plan.h5");
    ASSERT_EQ(made.status, 0) << made.output;
    const nlohmann::json facts = json_of("alpa-plan explain plan.h5");
    EXPECT_EQ(facts["step_s"], row["step_s"]) << cluster;
    EXPECT_EQ(facts["costs"], row["costs"]) << cluster;
  }
}

TEST_F(Sweep, TakesAsManyNodesAsTheDevicesNeed) {
  const CommandResult result = run(sweep("--devices 3,4,8 --method data-parallel --price-per-hour 3.6"));
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("alpa-plan: 'local-4', 8 devices: "));  // progress
  const nlohmann::json rows =
      json_of(sweep("--devices 4,8 --method data-parallel --price-per-hour 3.6"))["clusters"][0]["rows"];
  EXPECT_EQ(rows[0]["nodes"], 1);
  EXPECT_EQ(rows[1]["nodes"], 2);
  // 3.6 an hour are 0.001 a second: 1000 steps cost as much as one takes.
  EXPECT_DOUBLE_EQ(rows[1]["price_per_1000_steps"].get<double>(), 2 * rows[1]["step_s"].get<double>());
}

TEST_F(Sweep, SaysWhatDoesNotFitLacks) {
  write("small.toml", R"(name = "small"
device = "CPU"
nodes = 1
devices_per_node = 2
memory_gib = 0.001
f32_tflops = 0.06
memory_gb_per_s = 8
launch_us = 1
within_node = { latency_us = 5, gb_per_s = 3 }
between_nodes = { latency_us = 50, gb_per_s = 1 }
)");
  const std::string command = "alpa-plan sweep " + tiny_gpt_ + " --cluster small.toml --effort quick ";
  const CommandResult some = run(command + "--devices 1..8");
  EXPECT_EQ(some.status, 0) << some.output;
  EXPECT_THAT(some.output, HasSubstr("  does not fit: "));
  const CommandResult none = run(command + "--devices 1 --log-level error");
  EXPECT_EQ(none.status, 4) << none.output;
  EXPECT_THAT(none.output, HasSubstr("alpa-plan: error: no plan fits on any of these numbers of devices\n"));
}

TEST_F(Sweep, ChoosesAmongClusters) {
  const nlohmann::json json =
      json_of(sweep("--price-per-hour 1 --cluster " ALPA_SOURCE_DIR
                    "/configs/clusters/local-2.toml --price-per-hour 0.01 --devices 2,4 --effort quick "
                    "--target-hours 1 --steps 1000000"));
  EXPECT_EQ(json["target_step_s"], 3600.0 / 1000000);
  ASSERT_EQ(json["clusters"].size(), 2u);
  EXPECT_EQ(json["cheapest"]["cluster"], 1);  // a hundredth of the price, on the same machines
}

TEST_F(Sweep, WritesAPageThatABrowserShows) {
  const std::string command =
      sweep("--devices 1..4 --effort quick --price-per-hour 1 --target-step 10 --out sweep.html");
  ASSERT_EQ(run(command).status, 0);
  EXPECT_EQ(asks_network(path("sweep.html")), "");
  const std::string dom = shown_page(path("sweep.html"));
  if (dom.empty()) GTEST_SKIP() << "there is no chromium-headless-shell and no chromium";
  const nlohmann::json json =
      json_of(sweep("--devices 1..4 --effort quick --price-per-hour 1 --target-step 10"));
  const auto rows = cells_of(dom, "scaling");
  ASSERT_EQ(rows.size(), 3u) << dom.substr(0, 3000);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i].front(), std::to_string(json["clusters"][0]["rows"][i]["devices"].get<int>()));
    EXPECT_EQ(rows[i].back(), json["clusters"][0]["rows"][i]["split"]);
  }
  EXPECT_THAT(dom, HasSubstr("aria-label=\"step over devices; "));
  EXPECT_THAT(dom, HasSubstr("aria-label=\"price over the step; "));
  EXPECT_THAT(dom, HasSubstr("Cheapest for the target of "));
}

TEST_F(Sweep, RefusesWhatCannotBe) {
  for (const char* devices :
       {"0..8", "8..4", "a..8", "8..", "..8", "4,2", "4,4", "1,,2", "8..9999999", "-1", "''"})
    expect_refused(sweep("--devices " + std::string(devices)), 2, "--devices: expected ");
  expect_refused(sweep("--devices 2 --price-per-hour 0"), 2, "--price-per-hour: expected a number");
  expect_refused(sweep("--devices 2 --price-per-hour 1 --price-per-hour 2"), 2,
                 "--price-per-hour is given 2 times for 1 cluster");
  expect_refused(sweep("--devices 2 --target-step 1 --target-hours 1 --steps 5"), 2, "--target-step and ");
  expect_refused(sweep("--devices 2 --target-hours 1"), 2, "--target-hours without --steps");
  expect_refused("alpa-plan sweep " + tiny_gpt_ + " --devices 2", 2,
                 "neither --profile nor --cluster is given");
  expect_refused(sweep("--devices 2 --cluster missing.toml"), 3, "cannot read 'missing.toml'");
  expect_refused("alpa-plan sweep missing.toml --cluster " + cluster_ + " --devices 2", 3,
                 "cannot read 'missing.toml'");
}

}  // namespace
}  // namespace alpa
