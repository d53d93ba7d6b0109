// alpa-plan solve, as users run it.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::HasSubstr;

class SolveCommand : public Workplace {
 protected:
  SolveCommand() {
    write("example.json", R"({"problem": {"name": "example",
      "nodes": {"intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
                "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
                "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]]},
      "edges": {"nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
                "costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]]},
      "usage_limit": 50}})");
  }
  void expect_refusal(const std::string& command, int status, const std::string& message) const {
    const CommandResult result = run(command);
    EXPECT_EQ(result.status, status) << result.output;
    EXPECT_THAT(result.output, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(path("out.json")));
  }
};

TEST_F(SolveCommand, PrintsCostAndBoundAndWritesTheStrategies) {
  const CommandResult result = run("alpa-plan solve example.json --time-limit 5 --out out.json");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("cost 445  bound 445  gap 0.0000 %"));
  EXPECT_THAT(result.output, HasSubstr("(optimal)"));
  std::ifstream file(path("out.json"));
  EXPECT_EQ(nlohmann::json::parse(file), nlohmann::json({0, 0, 2, 1, 0}));
}

TEST_F(SolveCommand, RefusesBadInputAndSaysWhatIsWrong) {
  write("tight.json", R"({"problem": {"nodes": {"intervals": [[0, 1]], "costs": [[1]], "usages": [[2]]},
    "edges": {"nodes": [], "costs": []}, "usage_limit": 1}})");
  write("short.json", R"({"problem": {"nodes": {"intervals": [[0, 1]], "costs": [[1, 2]], "usages": [[2]]},
    "edges": {"nodes": [], "costs": []}}})");
  expect_refusal("alpa-plan solve tight.json --out out.json", 4, "infeasible: memory");
  expect_refusal("alpa-plan solve short.json --out out.json", 3, "nodes.usages[0] has 1 entries");
  expect_refusal("alpa-plan solve none.json --out out.json", 3, "none.json");
  expect_refusal("alpa-plan solve example.json --out none/out.json", 3, "none");
  expect_refusal("alpa-plan solve example.json", 2, "--out");
  expect_refusal("alpa-plan solve example.json --time-limit 0 --out out.json", 2, "--time-limit");
}

}  // namespace
}  // namespace alpa
