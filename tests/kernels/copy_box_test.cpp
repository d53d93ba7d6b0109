#include <gtest/gtest.h>

#include "libalpa/kernels/kernel.h"
#include "libalpa/kernels/make_kernel.h"
#include "tests/kernels/backends.h"
#include "tests/support/tensor_values.h"

namespace alpa {
namespace {

struct CopyCase {
  Shape from, from_origin, to, to_origin, extent;
};

/// Copies a box of 1, 2, 3, ... into a tensor of -1.
Values copied(Device& device, const CopyCase& c, DType dtype, DType to_type) {
  Values source(static_cast<std::size_t>(element_count(c.from))),
      target(static_cast<std::size_t>(element_count(c.to)), -1.0);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<double>(i + 1);
  const auto stream = device.make_stream();
  std::vector<std::byte> from = packed(source, dtype), to = packed(target, to_type);
  const auto from_memory = device.allocate(static_cast<std::int64_t>(from.size()));
  const auto to_memory = device.allocate(static_cast<std::int64_t>(to.size()));
  stream->copy_to_device(from_memory->data(), from.data(), static_cast<std::int64_t>(from.size()));
  stream->copy_to_device(to_memory->data(), to.data(), static_cast<std::int64_t>(to.size()));
  const Tile from_tile{from_memory->data(), {}, {}}, to_tile{to_memory->data(), {}, {}};
  make_box_copy(device, {c.from, c.from_origin}, {c.to, c.to_origin}, c.extent, dtype, to_type)
      ->run(*stream, {&from_tile, 1}, {&to_tile, 1}, nullptr, false, {});
  stream->copy_to_host(to.data(), to_memory->data(), static_cast<std::int64_t>(to.size()));
  stream->synchronize();
  return unpacked(to, to_type);
}

class CopyBox : public ::testing::TestWithParam<Backend> {
 protected:
  std::unique_ptr<Device> device_ = GetParam().make();
};

TEST_P(CopyBox, CopiesTheBoxAndNothingElse) {
  for (const CopyCase& c : {CopyCase{{4, 6}, {1, 2}, {3, 5}, {0, 1}, {3, 4}},
                            {{3, 4, 5}, {1, 0, 0}, {2, 4, 5}, {0, 0, 0}, {2, 4, 5}},
                            {{3, 4, 5}, {0, 1, 2}, {6, 2, 3}, {3, 0, 0}, {3, 2, 3}},
                            {{7}, {2}, {9}, {4}, {5}},
                            {{}, {}, {}, {}, {}},
                            {{2, 0}, {0, 0}, {2, 3}, {0, 0}, {2, 0}},
                            {{200, 300}, {3, 5}, {190, 290}, {1, 0}, {150, 290}}})
    for (const DType dtype : {DType::f32, DType::i32}) {
      Values source(static_cast<std::size_t>(element_count(c.from)));
      for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<double>(i + 1);
      Values expected(static_cast<std::size_t>(element_count(c.to)), -1.0);
      const Values box = slice(source, c.from, c.from_origin, c.extent);
      for_box(c.to, c.to_origin, c.extent,
              [&](std::size_t to, std::size_t from) { expected[to] = box[from]; });
      EXPECT_EQ(copied(*device_, c, dtype, dtype), expected)
          << shape_text(c.from) << " to " << shape_text(c.to);
    }
}

TEST_P(CopyBox, KnowsTheSizeOfBf16) {
  EXPECT_EQ(copied(*device_, {{2, 3}, {0, 1}, {2, 2}, {0, 0}, {2, 2}}, DType::bf16, DType::bf16),
            (Values{2, 3, 5, 6}));
}

// 257 and 259 lie halfway between bf16 values, which are 2 apart there: ties go to even.
TEST_P(CopyBox, RoundsF32ToTheNearestBf16) {
  Values expected(300, -1.0);
  for (int i = 0; i < 256; ++i) expected[static_cast<std::size_t>(i) + 10] = i + 1;
  expected[266] = 256;
  expected[267] = 258;
  expected[268] = 260;
  EXPECT_EQ(copied(*device_, {{300}, {0}, {300}, {10}, {259}}, DType::f32, DType::bf16), expected);
}

TEST_P(CopyBox, WidensBf16) {
  EXPECT_EQ(copied(*device_, {{3, 4}, {1, 1}, {2, 3}, {0, 0}, {2, 3}}, DType::bf16, DType::f32),
            (Values{6, 7, 8, 10, 11, 12}));
}

INSTANTIATE_TEST_SUITE_P(On, CopyBox, ::testing::ValuesIn(kernel_backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace alpa
