#include "libalpa/dataset/height_order.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

using testing::ElementsAre;

/// Chains of so many vertices: the height of a sample is one less.
class Chains final : public GraphSource {
 public:
  explicit Chains(std::vector<std::int32_t> lengths) : lengths_(std::move(lengths)) {}

  std::int64_t samples() const override { return std::ssize(lengths_); }
  std::int32_t vertices(std::int64_t sample) const override {
    return lengths_[static_cast<std::size_t>(sample)];
  }
  std::int32_t labelled(std::int64_t) const override { return 0; }
  void read(std::int64_t sample, VertexGraph& into) override {
    into.clear();
    for (std::int32_t i = 0; i < vertices(sample); ++i) {
      const std::int32_t last = i - 1;
      into.add(0, -1, std::span(&last, i > 0 ? 1 : 0));
    }
  }
  std::string description() const override { return "chains"; }

 private:
  std::vector<std::int32_t> lengths_;
};

std::vector<std::int64_t> arranged(std::vector<std::int32_t> lengths, std::vector<std::int64_t> samples,
                                   std::int64_t group) {
  Chains chains(std::move(lengths));
  std::vector<std::int64_t> scratch;
  HeightOrder(chains).arrange(samples, group, scratch);
  return samples;
}

TEST(HeightOrder, PutsSamplesOfAboutOneHeightIntoAGroup) {
  EXPECT_THAT(arranged({9, 2, 7, 3}, {0, 1, 2, 3}, 2), ElementsAre(1, 3, 2, 0));
  // Those of one height by their number, whatever order they come in; one may come twice.
  EXPECT_THAT(arranged({4, 4, 4, 1}, {2, 3, 0, 2}, 4), ElementsAre(3, 0, 2, 2));
}

// Groups 0 to 7 from the lowest: halves have 0 2 4 6 and 1 3 5 7, and so on.
TEST(HeightOrder, GivesEachHalfOfAStepLowAndHighGroups) {
  EXPECT_THAT(arranged({1, 2, 3, 4, 5, 6, 7, 8}, {7, 6, 5, 4, 3, 2, 1, 0}, 1),
              ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  EXPECT_THAT(arranged({1, 2, 3}, {0, 1, 2}, 1), ElementsAre(0, 2, 1));
}

}  // namespace
}  // namespace alpa
