#include "tests/mpi_main.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>

namespace alpa {
namespace {

MpiSession* session_of_this_program = nullptr;

class OnlyFailures final : public testing::EmptyTestEventListener {
 public:
  explicit OnlyFailures(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
                   result.message());
  }

 private:
  int rank_;
};

}  // namespace

MpiSession& mpi_session() { return *session_of_this_program; }

}  // namespace alpa

// Runs the same tests on every rank. Rank 0 reports; the others are heard when they fail.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  alpa::MpiSession session(0);
  alpa::session_of_this_program = &session;
  if (session.rank() != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new alpa::OnlyFailures(session.rank()));
  }
  int mine = RUN_ALL_TESTS(), any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  session.finish(any);
  return any;
}
