#include "libalpa/comm/reduce.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "libalpa/base/bfloat16.h"

namespace alpa {
namespace {

float sum_of(const std::vector<float>& values) {
  std::vector<const void*> parts;
  for (const float& value : values) parts.push_back(&value);
  float result = 0;
  reduce_in_order(parts, &result, 1, DType::f32, Reduction::sum);
  return result;
}

TEST(ReduceInOrder, AddsFromTheFirstPartToTheLast) {
  EXPECT_EQ(sum_of({1e8f, -1e8f, 1}), 1);
  EXPECT_EQ(sum_of({1, 1e8f, -1e8f}), 0);  // 1 is lost in 1e8
}

TEST(ReduceInOrder, Bf16KeepsWhatRoundingEachSumWouldLose) {
  // 256 + 1 rounds to 256 in bf16's 8 bits; 256 + 1 + 1 is a bf16.
  const Bfloat16 big = to_bfloat16(256), one = to_bfloat16(1);
  const std::vector<const void*> parts{&big, &one, &one};
  Bfloat16 result{};
  reduce_in_order(parts, &result, 1, DType::bf16, Reduction::sum);
  EXPECT_EQ(to_float(result), 258);
}

TEST(ReduceInOrder, AMaximumWithANotANumberIsOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), one = 1;
  for (const std::vector<const void*>& parts : {std::vector<const void*>{&nan, &one}, {&one, &nan}}) {
    float result = 0;
    reduce_in_order(parts, &result, 1, DType::f32, Reduction::max);
    EXPECT_TRUE(std::isnan(result));
  }
}

TEST(ReduceInOrder, EveryInstructionSetGivesTheSameBits) {
  constexpr std::int64_t kCount = 5003;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32})
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      // All patterns of bits but those of large exponents, so subnormals among them and no NaNs.
      std::vector<std::vector<std::uint32_t>> values(3, std::vector<std::uint32_t>(kCount));
      for (std::uint32_t part = 0; part < 3; ++part)
        for (std::uint32_t i = 0; i < kCount; ++i)
          values[part][i] = (i * 3 + part + 1) * 2654435761u & 0xBFFFBFFFu;
      const std::vector<const void*> parts{values[0].data(), values[1].data(), values[2].data()};
      const auto result = [&](InstructionSet set) {
        std::vector<std::uint32_t> into(kCount);
        reduce_in_order(parts, into.data(), kCount, dtype, reduction, set);
        return into;
      };
      const auto baseline = result(InstructionSet::baseline);
      for (const auto set : {InstructionSet::avx2, InstructionSet::avx512})
        EXPECT_TRUE(set > best_instruction_set() || result(set) == baseline);
    }
}

TEST(ReduceInOrder, TheResultMayTakeThePlaceOfAPart) {
  std::vector<std::int32_t> a(5000, 1), b(5000, 2);
  const std::vector<const void*> parts{a.data(), b.data()};
  reduce_in_order(parts, b.data(), 5000, DType::i32, Reduction::sum);
  EXPECT_EQ(b, std::vector<std::int32_t>(5000, 3));
}

}  // namespace
}  // namespace alpa
