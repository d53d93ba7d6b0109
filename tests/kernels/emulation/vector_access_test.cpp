#include "libalpa/kernels/cuda/vector_access.cuh"

#include <gmock/gmock.h>

#include <vector>

namespace alpa {
namespace {

/// y[i] = 2 x[i] by a grid whose x begins `x_first` elements behind a multiple of 16 bytes, and whose y
/// begins `y_first` elements behind one. Returns how many elements were taken at a time, for each.
template <class T>
std::vector<int> double_all(std::int64_t count, int x_first, int y_first) {
  constexpr int together = kVector<T, float>;
  alignas(16) T x_values[64];
  alignas(16) float y_values[64] = {};
  const T* x = x_values + x_first;
  float* y = y_values + y_first;
  for (int i = 0; i < 64; ++i) x_values[i] = narrowed<T>(static_cast<float>(i));
  std::vector<int> at_a_time(static_cast<std::size_t>(count));
  emulation::run_grid(dim3(1), dim3(32), [&] {
    for_vectors<together>(share_of_grid(), count, before_vectors<together>(x, y),
                          [&](std::int64_t i, auto n) {
                            store(y + i, each([](float value) { return 2 * value; }, load<n>(x + i)));
                            for (int k = 0; k < n; ++k) at_a_time[static_cast<std::size_t>(i + k)] += n;
                          });
  });
  for (int i = 0; i < 64; ++i) {
    const bool is_result = i >= y_first && i < y_first + count;
    EXPECT_EQ(y_values[i], is_result ? static_cast<float>(2 * (i - y_first + x_first)) : 0.0f);
  }
  return at_a_time;
}

TEST(VectorAccess, TakesSingleElementsBeforeAndBehindTheVectors) {
  EXPECT_EQ(double_all<float>(11, 0, 0), (std::vector{4, 4, 4, 4, 4, 4, 4, 4, 1, 1, 1}));
  EXPECT_EQ(double_all<Bfloat16>(11, 3, 3), (std::vector{1, 4, 4, 4, 4, 4, 4, 4, 4, 1, 1}));
  EXPECT_EQ(double_all<Bfloat16>(3, 2, 6), (std::vector{1, 1, 1}));
}

TEST(VectorAccess, TakesSingleElementsWhereVectorsOfTheTensorsDoNotCoincide) {
  EXPECT_THAT(double_all<float>(40, 0, 1), ::testing::Each(1));
  EXPECT_THAT(double_all<Float16>(40, 2, 3), ::testing::Each(1));
}

}  // namespace
}  // namespace alpa
