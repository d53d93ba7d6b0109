#include "libalpa/h5/tensor_shares.h"

#include <gmock/gmock.h>

#include <numeric>

#include "libalpa/h5/tensor_file.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

/// A tensor that each of `ranks` ranks holds all of.
HeldTensor replicated(const Shape& shape, int ranks) {
  HeldTensor tensor{{DType::f32, shape}, {}};
  for (int rank = 0; rank < ranks; ++rank) tensor.held.push_back({rank, 0, {Shape(shape.size(), 0), shape}});
  return tensor;
}

std::int64_t total(const std::vector<std::int64_t>& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
}

void expect_within_a_tenth(const std::vector<std::int64_t>& shares) {
  const double even = static_cast<double>(total(shares)) / static_cast<double>(shares.size());
  EXPECT_THAT(shares, Each(testing::AllOf(testing::Ge(0.9 * even), testing::Le(1.1 * even))));
}

/// The bytes of a file of these tensors, which are all zero.
std::int64_t file_bytes(const std::vector<TensorType>& tensors) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "tensors.h5";
  TensorWriter file(path, "alpa-checkpoint", "1.0");
  file.provenance(provenance_here("alpa-train plan.h5", "alpa-train 0.1.0", "4711"));
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Shape& shape = tensors[t].shape;
    const auto zeros = [](std::int64_t, std::span<std::byte> into) { std::ranges::fill(into, std::byte{}); };
    file.tensor("decoder.block." + std::to_string(t) + ".attention.query", tensors[t],
                {{{Shape(shape.size(), 0), shape}, shape, zeros}});
  }
  file.publish();
  return static_cast<std::int64_t>(std::filesystem::file_size(path));
}

TEST(MostFileBytes, AreNoLessThanAFileTakes) {
  const std::vector<TensorType> kinds[] = {
      {},
      std::vector<TensorType>(2000, {DType::f32, {}}),
      std::vector<TensorType>(300, {DType::bf16, {1500}}),
      {{DType::f32, {3001, 1024}}, {DType::bf16, {5000, 1001}}},  // chunks that reach past the end
      {{DType::i32, {40, 1'000'000}}}};
  for (const std::vector<TensorType>& tensors : kinds) {
    const std::int64_t most = most_file_bytes(tensors), taken = file_bytes(tensors);
    EXPECT_LE(taken, most) << tensors.size();
    EXPECT_GE(taken, 0.95 * most - (256 << 10) - (8 << 10) * tensors.size()) << tensors.size();
  }
}

TEST(TensorShares, OfReplicasOfAGptAreEven) {
  // The states of GPT-2 small, with two moments of AdamW each.
  std::vector<HeldTensor> tensors;
  for (int copy = 0; copy < 3; ++copy) {
    tensors.push_back(replicated({50257, 768}, 4));
    tensors.push_back(replicated({1024, 768}, 4));
    for (int layer = 0; layer < 12; ++layer)
      for (const Shape& shape : {Shape{768, 2304},
                                 {2304},
                                 {768, 768},
                                 {768},
                                 {768, 3072},
                                 {3072},
                                 {3072, 768},
                                 {768},
                                 {768},
                                 {768},
                                 {768},
                                 {768}})
        tensors.push_back(replicated(shape, 4));
  }
  expect_within_a_tenth(tensor_shares(tensors, 4));
}

TEST(TensorShares, OfReplicasOfManySmallTensorsAreEven) {
  std::vector<HeldTensor> tensors;
  for (std::int64_t length = 1; length <= 50; ++length) tensors.push_back(replicated({length, 32}, 4));
  expect_within_a_tenth(tensor_shares(tensors, 4));
}

TEST(TensorShares, AreOfWhatRanksHoldAlone) {
  // 3 MiB in one chunk, by one rank; 8 MiB in two chunks, whose halves two ranks hold.
  const std::int64_t chunk = 1 << 20;
  HeldTensor alone{{DType::f32, {3, chunk / 4}}, {}};
  alone.held.push_back({2, 0, {{0, 0}, {3, chunk / 4}}});
  HeldTensor halves{{DType::f32, {2, chunk}}, {}};
  for (int rank : {0, 1}) halves.held.push_back({rank, 0, {{rank, 0}, {1, chunk}}});
  EXPECT_THAT(tensor_shares(std::vector{alone, halves}, 3),
              ElementsAre((4 << 20) + 4, (4 << 20) + 4, (3 << 20) + 4));
}

TEST(TensorShares, OfAScalarAreOfOneRank) {
  EXPECT_THAT(tensor_shares(std::vector{replicated({}, 2), replicated({}, 2)}, 2), ElementsAre(8, 8));
}

}  // namespace
}  // namespace alpa
