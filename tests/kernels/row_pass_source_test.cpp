#include "libalpa/kernels/row_pass_source.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RowPlace operand(int index, std::int64_t offset = 0) { return {RowPlace::In::operand, index, 0, offset, 8}; }
RowPlace result(int index) { return {RowPlace::In::result, index, 0, 0, 4}; }
RowPlace lane(std::int64_t which) { return {RowPlace::In::lane, 0, which, 0, 0}; }

// y = sigmoid(x + b) * x: what lies in memory is read once, and a lane is a variable.
TEST(RowPassSource, ReadsWhatLiesInMemoryOnceAndWritesResults) {
  const RowPass pass{4,
                     {{RowFunction::add, operand(0), operand(1, 4), lane(0)},
                      {RowFunction::sigmoid, lane(0), {}, lane(1)},
                      {RowFunction::mul, lane(1), operand(0), result(0)}}};
  const RowPassSource source = row_pass_source(pass);
  EXPECT_THAT(source.places, ElementsAre(operand(0), operand(1, 4), result(0)));
  EXPECT_THAT(source.text, HasSubstr("at[3]; long long rows; };"));
  EXPECT_THAT(source.text, HasSubstr("i < a.rows * 4;"));
  EXPECT_THAT(source.text, HasSubstr("    const float v0 = a.at[0].data[row * a.at[0].stride + column];\n"
                                     "    const float v1 = a.at[1].data[row * a.at[1].stride + column];\n"
                                     "    const float v2 = v0 + v1;\n"
                                     "    const float v3 = 1.0f / (1.0f + expf(-v2));\n"
                                     "    const float v4 = v3 * v0;\n"
                                     "    a.at[2].data[row * a.at[2].stride + column] = v4;\n"));
}

TEST(RowPassSource, TakesWhatThePassHasWrittenWithoutReadingItAgain) {
  const RowPass pass{4,
                     {{RowFunction::scale, operand(0), {}, result(0), -0.5f},
                      {RowFunction::copy, result(0), {}, result(1)}}};
  const std::string text = row_pass_source(pass).text;
  EXPECT_THAT(text, HasSubstr("const float v1 = -5.000000000e-01f * v0;"));
  EXPECT_THAT(text, HasSubstr("const float v2 = v1;"));
}

}  // namespace
}  // namespace alpa
