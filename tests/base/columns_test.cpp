#include "libalpa/base/columns.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace alpa {
namespace {

struct Row {
  std::string name;
  double seconds = 0;
};

const std::vector<Column<Row>> kColumns{
    {"name", [](const Row& r) { return Cell(r.name); }},
    {"step_s", [](const Row& r) { return r.seconds < 0 ? Cell() : Cell(r.seconds); }, "time"}};

TEST(Columns, AreTitlesAndALineForEachRow) {
  EXPECT_EQ(csv_table<Row>(kColumns, {{"a", 0.1}, {"b", -1}}), "name,step_s\na,0.1\nb,\n");
}

TEST(Columns, AreTheMembersOfTheirGroupInJson) {
  EXPECT_EQ(json_of<Row>(kColumns, {"a", 0.25}).text(), R"({"name":"a"})");
  EXPECT_EQ(json_of<Row>(kColumns, {"a", 0.25}, "time").text(), R"({"step_s":0.25})");
  EXPECT_EQ(json_of<Row>(kColumns, {"a", -1}, "time").text(), R"({"step_s":null})");
}

// RFC 4180, 2.5 to 2.7.
TEST(Csv, QuotesWhatWouldEndACellOrALine) {
  const std::vector<Cell> cells{"plain text", "a,b", "say \"so\"", "two\nlines", "cr\r"};
  EXPECT_EQ(csv_line(cells), "plain text,\"a,b\",\"say \"\"so\"\"\",\"two\nlines\",\"cr\r\"\n");
}

TEST(Csv, HasNumbersThatReadBackAndNothingForWhatIsNotKnown) {
  const double third = 1.0 / 3;
  const std::string line = csv_line({third, std::int64_t{1} << 62, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(line, "0.3333333333333333,4611686018427387904,\n");
  EXPECT_EQ(std::stod(line), third);
  EXPECT_EQ(csv_line({std::vector<std::int64_t>{2, 4}, std::vector<std::string>{"a", "b,c"}, Cell()}),
            "2;4,\"a;b,c\",\n");
}

TEST(Csv, OfSeveralNumbersIsAnArrayInJson) {
  JsonObject json;
  set_cell(json, "mesh", std::vector<std::int64_t>{2, 4});
  EXPECT_EQ(json.text(), R"({"mesh":[2,4]})");
}

}  // namespace
}  // namespace alpa
