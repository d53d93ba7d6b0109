// alpa-plan --cache: what was solved is kept in a file, and changes no plan.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "tests/commands/spoiled_files.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class PlanCache : public Workplace {
 protected:
  /// Plans the tiny GPT into PLAN.h5.
  CommandResult plan(const std::string& name, const std::string& options) const {
    const CommandResult result =
        run("alpa-plan " + tiny_gpt_ + " --cluster " + cluster_ + " --out " + name + ".h5 " + options);
    EXPECT_EQ(result.status, 0) << result.output;
    return result;
  }
  void expect_same(const std::string& a, const std::string& b) const {
    EXPECT_EQ(difference(path(a + ".h5"), path(b + ".h5")), "") << a << " " << b;
  }
  void expect_readable() const { EXPECT_EQ(run("h5ls -r cache.h5").status, 0); }
};

TEST_F(PlanCache, ChangesNoByteOfAPlanColdOrWarmWithAnyThreads) {
  plan("without", "--threads 1");
  const CommandResult cold = plan("cold", "--cache cache.h5 --threads 2");
  EXPECT_THAT(cold.output, HasSubstr("'cache.h5': "));
  const CommandResult warm = plan("warm", "--cache cache.h5 --threads 1");
  EXPECT_THAT(warm.output, HasSubstr("; 0 new"));
  plan("warm2", "--cache cache.h5 --threads 2");
  for (const char* with : {"cold", "warm", "warm2"}) expect_same("without", with);
  EXPECT_THAT(run("h5ls -r cache.h5").output,
              AllOf(HasSubstr("/solutions/key"), HasSubstr("/solutions/cost"), HasSubstr("/choices")));
  EXPECT_THAT(run("h5dump -a /solver cache.h5").output, HasSubstr("version "));
}

TEST_F(PlanCache, ServesAnotherNumberOfDevicesAndAConstraint) {
  plan("four", "--cache cache.h5");
  write("limits.toml", "most_stages = 1\n");
  for (const std::string options : {"--devices 2", "--constraints limits.toml"}) {
    const CommandResult warm = plan("with", "--force --cache cache.h5 " + options);
    EXPECT_THAT(warm.output, Not(HasSubstr("'cache.h5': 0 solutions"))) << options;
    plan("without", "--force " + options);
    expect_same("with", "without");
  }
}

TEST_F(PlanCache, ServesASweep) {
  plan("four", "--cache cache.h5 --effort quick");
  const std::string sweep = "alpa-plan sweep " + tiny_gpt_ + " --cluster " + cluster_ +
                            " --devices 2,4 --effort quick --log-level ";
  const CommandResult with = run(sweep + "error --cache cache.h5"), without = run(sweep + "error");
  EXPECT_EQ(with.status, 0);
  EXPECT_EQ(with.output, without.output);
  EXPECT_THAT(run(sweep + "info --cache cache.h5").output, HasSubstr("; 0 new"));
}

TEST_F(PlanCache, IsWrittenWhereNoPlanFitsToo) {
  std::ifstream file(cluster_);
  std::string cluster{std::istreambuf_iterator<char>(file), {}};
  const std::string memory = "memory_gib = 2";
  cluster.replace(cluster.find(memory), memory.size(), "memory_gib = 0.001");
  write("small.toml", cluster);
  const std::string command =
      "alpa-plan " + tiny_gpt_ + " --cluster small.toml --method data-parallel --cache cache.h5 --out p.h5";
  const CommandResult refused = run(command);
  EXPECT_THAT(refused.output, HasSubstr("error: no plan"));
  EXPECT_TRUE(std::filesystem::exists(path("cache.h5"))) << refused.output;
  expect_readable();
}

TEST_F(PlanCache, OfASearchThatWasStoppedHoldsWhatWasSolvedByThen) {
  const std::string models = ALPA_SOURCE_DIR "/configs/models/",
                    clusters = ALPA_SOURCE_DIR "/configs/clusters/";
  RunningRanks search(path(""),
                      "alpa-plan " + models + "gpt-1.3b.toml --cluster " + clusters +
                          "p3.16xlarge-8.toml --threads 1 --cache cache.h5 --out plan.h5",
                      1);
  wait_until("the search is under way",
             [&] { return search.log().find("best so far") != std::string::npos; });
  search.signal(0, SIGINT);
  EXPECT_EQ(search.wait(), 75) << search.log();
  EXPECT_THAT(search.log(), Not(HasSubstr("; 0 new")));
  expect_readable();
  plan("after", "--cache cache.h5");
}

TEST_F(PlanCache, ThatIsDamagedIsRefusedAndStays) {
  plan("cold", "--cache cache.h5");
  cut_in_half(path("cache.h5"));
  const auto bytes = std::filesystem::file_size(path("cache.h5"));
  const CommandResult refused =
      run("alpa-plan " + tiny_gpt_ + " --cluster " + cluster_ + " --cache cache.h5 --out plan.h5");
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_THAT(refused.output,
              AllOf(StartsWith("alpa-plan: error: 'cache.h5' "), HasSubstr("try: another file")));
  EXPECT_EQ(std::filesystem::file_size(path("cache.h5")), bytes);
  EXPECT_FALSE(std::filesystem::exists(path("plan.h5")));
}

TEST_F(PlanCache, ThatIsAPlanIsRefusedAndStays) {
  plan("plan", "");
  plan("copy", "");
  const CommandResult refused =
      run("alpa-plan " + tiny_gpt_ + " --cluster " + cluster_ + " --cache plan.h5 --out new.h5");
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("expected an 'alpa-solutions' file, found an 'alpa-plan' file"));
  expect_same("plan", "copy");
}

TEST_F(PlanCache, OfAnotherSolverIsBegunAnew) {
  plan("cold", "--cache cache.h5");
  set_text_attribute(path("cache.h5"), "/", "solver", "version 0, CBC 1.0");
  const CommandResult other = plan("other", "--cache cache.h5");
  EXPECT_THAT(other.output,
              HasSubstr("'cache.h5' is of another solver (version 0, CBC 1.0): it is started over"));
  EXPECT_THAT(plan("warm", "--cache cache.h5").output, HasSubstr("; 0 new"));
  expect_same("cold", "other");
  expect_same("cold", "warm");
}

TEST_F(PlanCache, IsNoOtherFileOfTheCommand) {
  const CommandResult refused =
      run("alpa-plan " + tiny_gpt_ + " --cluster " + cluster_ + " --cache plan.h5 --out plan.h5");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.output, HasSubstr(" is the same file as "));
}

}  // namespace
}  // namespace alpa
