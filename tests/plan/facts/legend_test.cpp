#include "libalpa/plan/facts/legend.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Legend, ExplainsTheTermsThatStandInATextWithAnyNumbers) {
  const std::string text = legend_of("16 devices: DP16 · ZeRO-2, memory 3.20 GiB");
  EXPECT_THAT(text, StartsWith("\nlegend: DP4 = samples are split"));
  EXPECT_THAT(text, AllOf(HasSubstr("ZeRO-1 = "), HasSubstr("GiB = 2^30 bytes"), Not(HasSubstr("TP4")),
                          Not(HasSubstr("MiB"))));
  EXPECT_EQ(legend_of("no terms"), "");
}

TEST(Legend, TakesNoPartOfAWordForATerm) {
  EXPECT_EQ(legend_of("workspace, framework, HTTP4"), "");
  EXPECT_THAT(legend_of("4 micro-batches"), HasSubstr("micro-batch = "));
}

TEST(Legend, IsLinesNoWiderThanAScreen) {
  std::string all;
  for (const LegendEntry& entry : legend())
    all += std::string(entry.found_as.empty() ? entry.term : entry.found_as) + "\n";
  const std::string text = legend_of(all);
  std::string joined = text;
  std::ranges::replace(joined, '\n', ' ');
  for (const LegendEntry& entry : legend())
    EXPECT_THAT(joined, HasSubstr(std::string(entry.term) + " = " + std::string(entry.meaning)));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 110u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// With ALPA_REGENERATE set in the environment, `test_plan --gtest_filter=Legend.*` writes it.
TEST(Legend, IsInTheDocument) {
  const std::filesystem::path file = std::filesystem::path(ALPA_SOURCE_DIR) / "share/doc/planning.md";
  const std::string text = content_of(file), head = "| | |\n";
  const std::string expected = text.substr(0, text.rfind(head)) + legend_table();
  if (std::getenv("ALPA_REGENERATE")) std::ofstream(file) << expected;
  EXPECT_EQ(content_of(file), expected) << "ALPA_REGENERATE=1 and this test write it";
}

}  // namespace
}  // namespace alpa
