#include "libalpa/h5/rows.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Rows : public ::testing::Test {
 protected:
  template <class Integer>
  void write(const std::vector<Integer>& values) {
    H5Writer file(path_, "somebody-else", "7.0");
    file.column("/tokens", std::span<const Integer>(values), "1");
    file.column("/loss", std::vector<double>{0.5}, "1");
    file.array("/pairs", std::vector<std::int32_t>{1, 2, 3, 4}, {2, 2}, "1");
    file.publish();
  }

  std::vector<std::int32_t> read(std::int64_t first, std::size_t count) const {
    std::vector<std::int32_t> values(count);
    H5Rows(path_, "/tokens", "").read(first, static_cast<std::int64_t>(count), values.data());
    return values;
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "tokens.h5";
};

TEST_F(Rows, ReadsPiecesOfAFileOfAnyFormat) {
  std::vector<std::int32_t> values(300'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 7);
  write(values);
  EXPECT_EQ(H5Rows(path_, "/tokens", "").extent(), Shape{300'000});
  EXPECT_THAT(read(0, 3), ElementsAre(0, 7, 14));
  EXPECT_THAT(read(299'998, 2), ElementsAre(2'099'986, 2'099'993));
  EXPECT_THAT(read(300'000, 0), ElementsAre());
}

TEST_F(Rows, LetsNoWiderValueWrapAround) {
  write(std::vector<std::int64_t>{5, std::int64_t{1} << 32, -(std::int64_t{1} << 40)});
  EXPECT_THAT(read(0, 3), ElementsAre(5, INT32_MAX, INT32_MIN));
}

TEST_F(Rows, ReadsRowsOfAnyShapeAsTheTypeWanted) {
  write(std::vector<std::int32_t>{1});
  const H5Rows pairs(path_, "/pairs", "");
  EXPECT_TRUE(pairs.is_integer());
  EXPECT_EQ(pairs.extent(), (Shape{2, 2}));
  std::vector<float> numbers(2);
  pairs.read(1, 1, numbers.data());
  EXPECT_THAT(numbers, ElementsAre(3, 4));
  const H5Rows loss(path_, "/loss", "");
  EXPECT_FALSE(loss.is_integer());
  loss.read(0, 1, numbers.data());
  EXPECT_EQ(numbers[0], 0.5f);
}

TEST_F(Rows, ReportsWhatIsMissingAndWhatWouldBeRight) {
  write(std::vector<std::int32_t>{1});
  EXPECT_THAT([&] { H5Rows(path_, "/token", "store it"); },
              ThrowsMessage<Error>(HasSubstr("missing (there is '/tokens')")));
  try {
    H5Rows(path_, "/words", "store the values as '/words'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(), HasSubstr("store the values as '/words'"));
  }
}

}  // namespace
}  // namespace alpa
