#include "libalpa/base/names.h"

#include <gtest/gtest.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

TEST(Names, AreOfOneLineThatATerminalShowsAsItIs) {
  for (const char* name : {"gpt-1.3b", "NVIDIA V100 16 GB", "grösser", "模型"})
    EXPECT_TRUE(is_name(name)) << name;
  for (const char* name : {"", "a\x1b[2J", "a\nb", "a\tb", "a\x7f", "a\xc2\x9b", "a\xff", "a\xc3"})
    EXPECT_FALSE(is_name(name)) << name;
  EXPECT_TRUE(is_name(std::string(kLongestName, 'a')));
  EXPECT_FALSE(is_name(std::string(kLongestName + 1, 'a')));
}

TEST(Printable, TextHasNoCommandsForATerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m"),
            "a\\xc2\\x9b31m");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("grösser: 模型"), "grösser: 模型");
}

TEST(Printable, TextKeepsItsLinesUnlessItIsToBeOne) {
  EXPECT_EQ(printable("a\n\tb\r"), "a\n\tb\\x0d");
  EXPECT_EQ(printable("a\nb", ""), "a\\x0ab");
}

TEST(Printable, IsWhatErrorsSay) {
  Error error(ErrorKind::input, "no file '\x1b[31mred'", "\x07");
  error.while_doing("reading '\x9b'");
  EXPECT_STREQ(error.what(), "no file '\\x1b[31mred'\n  try: \\x07\n  while reading '\\x9b'");
}

}  // namespace
}  // namespace alpa
