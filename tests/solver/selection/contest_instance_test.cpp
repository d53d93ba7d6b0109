#include "libalpa/solver/selection/contest_instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::HasSubstr;

const char* const kSmallInstance = R"({"problem": {"name": "small", "nodes": {
  "intervals": [[0, 2], [1, 3]], "costs": [[15], [1000000000000000000, 65]], "usages": [[10], [25, 20]]},
  "edges": {"nodes": [[0, 1]], "costs": [[30, 40]]}, "usage_limit": 50, "note": {"costs": [1, "x"]}}})";

class ContestInstances : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) const {
    const auto path = folder_.path() / "instance.json";
    std::ofstream(path) << text;
    return path;
  }
  // The message with which the text is refused, once `from` in the small instance is `to`.
  std::string refusal(const std::string& from, const std::string& to) const {
    std::string text = kSmallInstance;
    text.replace(text.find(from), from.size(), to);
    try {
      read_contest_instance(file(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return error.what();
    }
    return "accepted";
  }

  TemporaryFolder folder_;
};

TEST_F(ContestInstances, AreReadPlainAndCompressed) {
  const auto packed = folder_.path() / "instance.json.gz";
  gzFile out = gzopen(packed.c_str(), "wb");
  gzputs(out, kSmallInstance);
  gzclose(out);
  for (const auto& path : {file(kSmallInstance), packed}) {
    const ContestInstance instance = read_contest_instance(path);
    ASSERT_EQ(instance.problem.nodes.size(), 2u);
    EXPECT_EQ(instance.problem.nodes[1].cost, (std::vector<double>{infinity, 65}));
    EXPECT_EQ(instance.problem.nodes[1].memory[0].bytes, (std::vector<std::int64_t>{25, 20}));
    EXPECT_EQ(instance.problem.edges[0].cost, (std::vector<double>{30, 40}));
    EXPECT_EQ(instance.problem.memory_limit, 50);
    EXPECT_EQ(decimal_text(contest_cost(instance, {0, 1})), "120");
    EXPECT_EQ(decimal_text(contest_cost(instance, {0, 0})), "1000000000000000045");
  }
}

TEST_F(ContestInstances, HaveCostsThatAddUpIn128Bits) {
  std::string text = kSmallInstance;
  for (const std::string small : {"15", "30"}) text.replace(text.find(small), 2, "9000000000000000001");
  EXPECT_EQ(decimal_text(contest_cost(read_contest_instance(file(text)), {0, 0})), "19000000000000000002");
  EXPECT_EQ(decimal_text(-12), "-12");
}

TEST_F(ContestInstances, WithoutALimitHaveNone) {
  std::string text = kSmallInstance;
  text.replace(text.find("\"usage_limit\""), 13, "\"other\"");
  EXPECT_EQ(read_contest_instance(file(text)).problem.memory_limit, -1);
}

TEST_F(ContestInstances, AreRefusedWithThePlaceOfTheFault) {
  EXPECT_THAT(refusal("[15]", "[15, 1]"), HasSubstr("nodes.usages[0] has 1 entries, nodes.costs[0] has 2"));
  EXPECT_THAT(refusal("[15]", "[]"), HasSubstr("nodes.costs[0] is empty"));
  EXPECT_THAT(refusal("[15]", "[1.5]"), HasSubstr("'problem.nodes.costs[0]' should hold integers, not 1.5"));
  EXPECT_THAT(refusal("[15]", "15"), HasSubstr("list of lists of integers; entry 0 is 15"));
  EXPECT_THAT(refusal("[15]", "[99999999999999999999]"), HasSubstr("should hold integers"));
  EXPECT_THAT(refusal("[0, 2]", "[2, 0]"), HasSubstr("nodes.intervals[0] ends at 0, before it begins at 2"));
  EXPECT_THAT(refusal("[[0, 1]]", "[[0, 2]]"), HasSubstr("edges.nodes[0] names node 2 of 2"));
  EXPECT_THAT(refusal("[[0, 1]]", "[[1, 1]]"), HasSubstr("edges.nodes[0] joins node 1 with itself"));
  EXPECT_THAT(refusal("[30, 40]", "[30]"), HasSubstr("edges.costs[0] has 1 entries, not 2"));
  EXPECT_THAT(refusal("50", "-50"), HasSubstr("usage_limit is -50"));
  EXPECT_THAT(refusal("50", "\"50\""), HasSubstr("'problem.usage_limit' should be an integer"));
  EXPECT_THAT(refusal("[10]", "[-10]"), HasSubstr("nodes.usages[0] has the negative entry -10"));
  EXPECT_THAT(refusal("\"usages\"", "\"uses\""), HasSubstr("'problem.nodes.usages' is missing"));
  EXPECT_THAT(refusal("\"usages\"", "\"costs\""), HasSubstr("'problem.nodes.costs' appears twice"));
  EXPECT_THAT(refusal("}}}", "}}"), HasSubstr("not JSON at byte"));
}

TEST_F(ContestInstances, ThatAreCutOffOrMissingAreRefused) {
  const auto packed = folder_.path() / "cut.json.gz";
  gzFile out = gzopen(packed.c_str(), "wb");
  std::string text = kSmallInstance;
  for (int k = 0; k < 1000; ++k) text += std::to_string(k * 7919) + " ";
  gzputs(out, text.c_str());
  gzclose(out);
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) / 2);
  EXPECT_THROW(read_contest_instance(packed), Error);
  EXPECT_THROW(read_contest_instance(folder_.path() / "none.json"), Error);
  EXPECT_THROW(read_contest_instance(folder_.path()), Error);
}

}  // namespace
}  // namespace alpa
