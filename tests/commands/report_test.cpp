// The page of plans, as a browser without a network shows it.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/commands/shown_page.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class ReportCommand : public Workplace {
 protected:
  std::string page() const {
    std::ifstream in(path("plan.html"));
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(ReportCommand, HasTablesThatABrowserShows) {
  make_mixed_plan("plan");
  make_plan("other", "--method zero-2");
  ASSERT_EQ(run("alpa-plan report plan.h5 other.h5 --out plan.html").status, 0);
  const std::string dom = shown_page(path("plan.html"));
  if (dom.empty()) GTEST_SKIP() << "there is no chromium-headless-shell and no chromium";
  const nlohmann::json facts = nlohmann::json::parse(run("alpa-plan explain plan.h5 --json").output);
  const auto stages = cells_of(dom, "stages");
  ASSERT_EQ(stages.size(), 2u) << dom.substr(0, 3000);
  for (std::size_t s = 0; s < 2; ++s) EXPECT_EQ(stages[s].at(3), facts["stages"][s]["split"]);
  const auto candidates = cells_of(dom, "candidates");
  ASSERT_EQ(candidates.size(), facts["candidates"].size());
  for (std::size_t c = 0; c < candidates.size(); ++c)
    EXPECT_EQ(candidates[c].at(0), facts["candidates"][c]["method"]);
  EXPECT_EQ(cells_of(dom, "shardings").size(), facts["stages"][0]["parameters"].size() +
                                                   facts["stages"][0]["optimizer_otherwise"].size() +
                                                   facts["stages"][0]["gradients_otherwise"].size() +
                                                   facts["stages"][0]["activations_split"].size());
  EXPECT_EQ(cells_of(dom, "memory").size(), 2u);
  const nlohmann::json asked = nlohmann::json::parse(run("alpa-plan what-if plan.h5 --json").output)["steps"];
  const auto what_if = cells_of(dom, "what-if");
  ASSERT_EQ(what_if.size(), asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(what_if[i].at(0), asked[i]["with"]);
  const auto comparison = cells_of(dom, "comparison");
  ASSERT_FALSE(comparison.empty());
  EXPECT_EQ(comparison[1], (std::vector<std::string>{"split", "PP2", "DP4 · ZeRO-2"}));
  EXPECT_THAT(dom, HasSubstr("timeline of the simulated step"));
}

TEST_F(ReportCommand, HasTheConstraintsOfAPlanAndTheirPrices) {
  write("limits.toml", "most_zero = 0\nmost_tensor_parallel = 2\n");
  make_plan("plan", "--constraints limits.toml --effort quick --micro-batches 4");
  make_plan("free", "--effort quick --micro-batches 4");
  ASSERT_EQ(run("alpa-plan report plan.h5 free.h5 --out plan.html").status, 0);
  const std::string dom = shown_page(path("plan.html"));
  if (dom.empty()) GTEST_SKIP() << "there is no chromium-headless-shell and no chromium";
  const nlohmann::json facts = nlohmann::json::parse(run("alpa-plan explain plan.h5 --json").output);
  const std::string text = run("alpa-plan explain plan.h5 --full").output;
  const auto shown = cells_of(dom, "constraints");
  ASSERT_EQ(shown.size(), 3u) << dom.substr(0, 3000);
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(shown[c].at(0), facts["constraints"][c]["constraint"]);
    EXPECT_EQ(shown[c].at(1), facts["constraints"][c]["where"]);
    const std::size_t line = text.find("  " + shown[c].at(0) + " ");
    ASSERT_NE(line, std::string::npos) << text;
    EXPECT_THAT(text.substr(line, text.find('\n', line) - line), EndsWith("  " + shown[c].at(3)));
  }
  EXPECT_EQ(shown[2].at(0), "all of them");
  const std::string table = "<table class=\"constraints\">";
  EXPECT_EQ(dom.find(table), dom.rfind(table));  // the other plan has none
}

TEST_F(ReportCommand, OfA64GpuPlanIsSmallAndAsksNoNetwork) {
  const std::string configs = ALPA_SOURCE_DIR "/configs/";
  ASSERT_EQ(
      run("alpa-plan " + configs + "models/gpt-39b.toml --cluster " + configs +
          "clusters/p3.16xlarge-8.toml --method megatron --effort quick --micro-batches 1024 --out plan.h5")
          .status,
      0);
  ASSERT_EQ(run("alpa-plan report plan.h5 --out plan.html").status, 0);
  const std::string text = page();
  EXPECT_GT(text.size(), 100'000u);
  EXPECT_LT(text.size(), 2'000'000u);
  EXPECT_EQ(asks_network(path("plan.html")), "");
}

TEST_F(ReportCommand, LeavesNothingHalfWritten) {
  EXPECT_EQ(run("alpa-plan report missing.h5 --out plan.html").status, 3);
  EXPECT_FALSE(std::filesystem::exists(path("plan.html")));
  EXPECT_EQ(run("alpa-plan report --out plan.html").status, 2);
}

}  // namespace
}  // namespace alpa
