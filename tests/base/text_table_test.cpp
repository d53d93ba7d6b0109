#include "libalpa/base/text_table.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(TextTable, MakesColumnsAsWideAsTheirWidestCell) {
  EXPECT_EQ(text_table({{"stage", "split"}, {"0", "DP2"}, {"10 - 12", ""}}),
            "stage    split\n"
            "0        DP2\n"
            "10 - 12\n");
}

TEST(TextTable, AlignsNumbersToTheRight) {
  EXPECT_EQ(text_table({{"what", "step"}, {"a", "1.25 s"}, {"bcdef", "12 s"}}, {1}),
            "what     step\n"
            "a      1.25 s\n"
            "bcdef    12 s\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  EXPECT_EQ(text_table({{"DP4 · TP2", "x"}, {"DP4 . TP2", "y"}}),
            "DP4 · TP2  x\n"
            "DP4 . TP2  y\n");
}

TEST(TextTable, TakesRowsOfDifferentLength) { EXPECT_EQ(text_table({{"a"}, {}, {"b", "c"}}), "a\n\nb  c\n"); }

}  // namespace
}  // namespace alpa
