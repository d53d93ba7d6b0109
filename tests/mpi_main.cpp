#include <gtest/gtest.h>
#include <mpi.h>

// Runs the same tests on every rank. Rank 0 reports; the others are heard when they fail.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    struct OnlyFailures : testing::EmptyTestEventListener {
      explicit OnlyFailures(int r) : rank(r) {}
      void OnTestPartResult(const testing::TestPartResult& result) override {
        if (result.failed())
          std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank, result.file_name(), result.line_number(),
                       result.message());
      }
      int rank;
    };
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new OnlyFailures(rank));
  }
  int mine = RUN_ALL_TESTS(), any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
