#include "libalpa/comm/together.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/support/three_ranks.h"

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Together, TheLowestFailingRanksErrorIsThatOfAll) {
  on_three_ranks([](int rank, Communicator& all, Stream& stream) {
    EXPECT_NO_THROW(together(all, stream, [] {}));
    try {
      together(all, stream, [&] {
        if (rank > 0) throw Error(ErrorKind::input, "no file " + std::to_string(rank), "look elsewhere");
      });
      ADD_FAILURE() << "rank " << rank << " goes on";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_STREQ(error.what(), "rank 1: no file 1\n  try: look elsewhere");
    }
  });
}

TEST(Together, WhoHasLostARankAgreesWithNobody) {
  EXPECT_THROW(on_three_ranks([](int rank, Communicator& all, Stream& stream) {
                 if (rank == 0) together(all, stream, [] { throw Error(ErrorKind::peer, "rank 1 is gone"); });
               }),
               Error);
}

TEST(Together, TextsAndNumbersOfOtherRanksArriveWhole) {
  on_three_ranks([](int rank, Communicator& all, Stream& stream) {
    EXPECT_EQ(text_of_rank(all, stream, "rank " + std::to_string(rank), 2), "rank 2");
    EXPECT_EQ(text_of_rank(all, stream, "", 1), "");
    const auto of_all =
        gathered(all, stream, std::vector<std::int64_t>(static_cast<std::size_t>(rank), rank));
    EXPECT_THAT(of_all[0], IsEmpty());
    EXPECT_THAT(of_all[1], ElementsAre(1));
    EXPECT_THAT(of_all[2], ElementsAre(2, 2));
  });
}

}  // namespace
}  // namespace alpa
