// What the toolkit's run-time compiler says of passes over rows; it needs no GPU.
#include <gmock/gmock.h>

#include <variant>

#include "libalpa/base/error.h"
#include "libalpa/kernels/cuda/run_time_compiler.h"
#include "libalpa/kernels/row_pass_source.h"
#include "libalpa/ops/catalog.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

constexpr int kHopper = 90;

TEST(RunTimeCompiler, TakesThePassesOfVertexFunctions) {
  if (compiled_code("", kHopper).empty()) GTEST_SKIP() << "libnvrtc is not found";
  int passes = 0;
  for (const OpDef* op : {&ops::rounds, &ops::rounds_grad})
    for (const OpCase& c : cases_of(*op)) {
      if (!c.operands.starts_with("f[2x40x")) continue;
      for (const auto& step : vertex_program(prepare(c, DType::f32).call()).steps)
        if (const auto* const pass = std::get_if<RowPass>(&step)) {
          EXPECT_FALSE(compiled_code(row_pass_source(*pass).text, kHopper).empty());
          ++passes;
        }
    }
  EXPECT_GE(passes, 8);
}

TEST(RunTimeCompiler, SaysWhyItRefusesAText) {
  if (compiled_code("", kHopper).empty()) GTEST_SKIP() << "libnvrtc is not found";
  EXPECT_THAT([] { compiled_code("nonsense", kHopper); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("row_pass.cu(1): error")));
}

}  // namespace
}  // namespace alpa
