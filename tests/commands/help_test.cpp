// What --help of each command prints.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

const std::vector<std::string> kCommands{
    "alpa-profile",        "alpa-plan",         "alpa-plan explain",   "alpa-plan compare",
    "alpa-plan simulate",  "alpa-plan check",   "alpa-plan solve",     "alpa-plan report",
    "alpa-plan what-if",   "alpa-plan sweep",   "alpa-plan calibrate", "alpa-train",
    "alpa-train import",   "alpa-train export", "alpa-train convert",  "alpa-train tune",
    "alpa-train evaluate", "alpa-train verify", "alpa-train average"};

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Help : public Workplace {
 protected:
  /// Lines of one section that start in its first column.
  std::vector<std::string> section(const std::string& command, const std::string& title) const {
    const CommandResult result = run(command + " --help");
    EXPECT_EQ(result.status, 0) << result.output;
    std::istringstream text(result.output);
    std::vector<std::string> lines;
    bool is_inside = false;
    for (std::string line; std::getline(text, line);) {
      if (is_inside && line.starts_with("  ") && line[2] != ' ') lines.push_back(line.substr(2));
      if (is_inside && line.empty()) break;
      is_inside |= line == title + ":";
    }
    return lines;
  }

  /// The exit statuses that it lists.
  std::vector<int> statuses(const std::string& command) const {
    std::vector<int> numbers;
    for (const std::string& line : section(command, "exit status")) numbers.push_back(std::stoi(line));
    return numbers;
  }
};

TEST_F(Help, ShowsTwoExamplesOfEachCommand) {
  for (const std::string& command : kCommands)
    EXPECT_THAT(section(command, "examples"), SizeIs(testing::Ge(2))) << command;
}

// With ALPA_REGENERATE set in the environment, `test_commands --gtest_filter=Help.*` writes the file anew.
TEST_F(Help, IsTheReferenceForUsers) {
  const std::filesystem::path file = std::filesystem::path(ALPA_SOURCE_DIR) / "share/options.md";
  const std::string text = content(file);
  std::string expected = text.substr(0, text.find("## "));
  for (const std::string& command : kCommands)
    expected += "## " + command + "\n\n```\n" + run(command + " --help").output + "```\n\n";
  expected.pop_back();
  if (std::getenv("ALPA_REGENERATE")) std::ofstream(file) << expected;
  EXPECT_EQ(content(file), expected) << "ALPA_REGENERATE=1 and this test write it again";
}

TEST_F(Help, ListsTheExitStatusesThatEachCommandMayHave) {
  EXPECT_THAT(statuses("alpa-profile"), ElementsAre(0, 1, 2, 3, 5, 7, 75));
  EXPECT_THAT(statuses("alpa-plan"), ElementsAre(0, 1, 2, 3, 4, 75));
  EXPECT_THAT(statuses("alpa-plan check"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(statuses("alpa-plan compare"), ElementsAre(0, 1, 2));
  EXPECT_THAT(statuses("alpa-plan sweep"), ElementsAre(0, 1, 2, 3, 4, 75));
  EXPECT_THAT(statuses("alpa-plan solve"), ElementsAre(0, 1, 2, 3, 4, 75));
  EXPECT_THAT(statuses("alpa-train"), ElementsAre(0, 1, 2, 3, 5, 6, 7, 75));
  EXPECT_THAT(statuses("alpa-train import"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(statuses("alpa-train evaluate"), ElementsAre(0, 1, 2, 3, 5, 6, 7, 75));
  EXPECT_THAT(statuses("alpa-train verify"), ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace alpa
