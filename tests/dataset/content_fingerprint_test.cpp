#include "libalpa/dataset/content_fingerprint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "libalpa/dataset/open_tokens.h"
#include "libalpa/h5/file.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

class ContentFingerprint : public ::testing::Test {
 protected:
  std::string of_text(const std::string& text) const {
    std::ofstream(folder_.path() / "text.txt") << text;
    return content_fingerprint(*open_tokens((folder_.path() / "text.txt").string()));
  }
  static std::string of(const std::string& data) { return content_fingerprint(*open_tokens(data)); }
  static std::string of_arrays(const std::string& data) {
    return content_fingerprint(
        *open_arrays(data, {{"image", {DType::f32, {4, 4}}}, {"label", {DType::i32, {}}, 10}}));
  }

  TemporaryFolder folder_;
};

TEST_F(ContentFingerprint, IsThatOfTheTokensWhateverFileTheyAreIn) {
  const std::filesystem::path path = folder_.path() / "tokens.h5";
  const std::string text = "in the beginning";
  H5Writer file(path, "tokens", "1.0");
  const std::vector<std::int32_t> tokens(text.begin(), text.end());
  file.column("/tokens", tokens, "1");
  file.publish();
  EXPECT_EQ(of_text(text), of(path.string()));
}

TEST_F(ContentFingerprint, DistinguishesEveryByteOfShortData) {
  const std::string text(100'000, 'a');
  for (const std::size_t at : {0, 4095, 4096, 50'000, 99'999}) {
    std::string other = text;
    other[at] = 'b';
    EXPECT_NE(of_text(text), of_text(other)) << at;
  }
  EXPECT_NE(of_text(text), of_text(text + 'a'));
}

TEST_F(ContentFingerprint, DistinguishesLongDataThatWasMadeOtherwise) {
  EXPECT_EQ(of("synthetic:64:30000000"), of("synthetic:64:30000000"));
  EXPECT_NE(of("synthetic:64:30000000"), of("synthetic:65:30000000"));
  EXPECT_NE(of("synthetic:64:30000000"), of("synthetic:64:30000001"));
}

TEST_F(ContentFingerprint, IsThatOfTheRowsOfAllInputs) {
  EXPECT_EQ(of_arrays("synthetic:1000"), of_arrays("synthetic:1000"));
  EXPECT_NE(of_arrays("synthetic:1000"), of_arrays("synthetic:1001"));
}

}  // namespace
}  // namespace alpa
