#include "libalpa/base/fingerprint.h"

#include <gmock/gmock.h>

#include <cstring>
#include <stdexcept>

namespace alpa {
namespace {

TEST(Fingerprint, ReadsBackFromItsText) {
  const Fingerprint value{0x0123456789abcdef, 0x00000000000000ff};
  EXPECT_EQ(fingerprint_text(value), "0123456789abcdef00000000000000ff");
  EXPECT_EQ(fingerprint_of_text(fingerprint_text(value)), value);
  for (const char* text : {"", "0123456789abcdef00000000000000f", "0123456789abcdef00000000000000fg",
                           "0123456789abcdef00000000000000ff0"})
    EXPECT_THROW(fingerprint_of_text(text), std::invalid_argument) << text;
}

TEST(RunningFingerprint, IsThatOfAllBytesTogether) {
  RunningFingerprint running;
  const std::vector<double> values{0.1, -0.0, 1e300};
  running.add(7);
  running.add(values);
  std::string bytes(sizeof(int) + sizeof(std::size_t) + 3 * sizeof(double), '\0');
  const int seven = 7;
  const std::size_t count = values.size();
  std::memcpy(bytes.data(), &seven, sizeof seven);
  std::memcpy(bytes.data() + sizeof seven, &count, sizeof count);
  std::memcpy(bytes.data() + sizeof seven + sizeof count, values.data(), 3 * sizeof(double));
  EXPECT_EQ(fingerprint_text(running.value()), fingerprint(bytes));
}

}  // namespace
}  // namespace alpa
