#include "libalpa/base/words.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr Word<int> kNumbers[] = {{"one", 1, "the first"}, {"two", 2, "the second"}};
constexpr std::span<const Word<int>> kWords(kNumbers);

TEST(Words, HaveValuesAndValuesWords) {
  for (const Word<int>& word : kNumbers) {
    EXPECT_EQ(value_named(std::string(word.name), kWords, "number"), word.value);
    EXPECT_EQ(name_of(word.value, kWords), word.name);
  }
}

TEST(Words, OfNoValueAreRefusedWithThoseThereAre) {
  try {
    value_named("three", kWords, "number");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.happened(), "unknown number 'three'");
    EXPECT_EQ(error.hint(), "one of one, two");
  }
}

}  // namespace
}  // namespace alpa
