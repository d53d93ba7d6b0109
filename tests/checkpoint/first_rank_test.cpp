#include "libalpa/checkpoint/first_rank.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/support/three_ranks.h"

namespace alpa {
namespace {

TEST(OnFirstRank, WorksThereAloneAndReturnsToAll) {
  on_three_ranks([](int rank, Communicator& all, Stream& stream) {
    const auto body = [&] { return "rank " + std::to_string(rank); };
    EXPECT_EQ(text_of_first_rank(all, stream, body), "rank 0");
    EXPECT_EQ(text_of_first_rank(all, stream, [] { return std::string(); }), "");
  });
}

TEST(OnFirstRank, AFailureIsMetByAllAlike) {
  on_three_ranks([](int rank, Communicator& all, Stream& stream) {
    try {
      on_first_rank(all, stream, [&] {
        EXPECT_EQ(rank, 0);
        throw Error(ErrorKind::input, "no such file", "look elsewhere");
      });
      ADD_FAILURE() << "rank " << rank << " goes on";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_STREQ(error.what(), "no such file\n  try: look elsewhere");
    }
  });
}

}  // namespace
}  // namespace alpa
