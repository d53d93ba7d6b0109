#include "libalpa/comm/mpi_session.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;

TEST(MpiSession, RefusesToTrainAloneWhereTheJobHasSeveralTasks) {
  try {
    MpiSession session(4);
    FAIL() << "a session of one rank was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::allocation);
    EXPECT_THAT(error.what(), HasSubstr("the job has 4 tasks, but MPI sees one rank"));
    EXPECT_THAT(error.what(), HasSubstr("srun --mpi=pmi2"));
    EXPECT_THAT(error.what(), HasSubstr("srun --mpi=list"));
  }
}

}  // namespace
}  // namespace alpa
