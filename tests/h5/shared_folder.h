#pragma once
#include <mpi.h>

#include <filesystem>
#include <optional>

#include "tests/h5/temporary_folder.h"
#include "tests/mpi_main.h"

namespace alpa {

/// Rank 0's temporary folder, known to all. Collective over all ranks.
class SharedFolder {
 public:
  SharedFolder() {
    if (mpi_session().rank() == 0) folder_.emplace();
    char name[256] = {};
    if (folder_) folder_->path().string().copy(name, sizeof name - 1);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = name;
  }
  ~SharedFolder() { MPI_Barrier(MPI_COMM_WORLD); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::optional<TemporaryFolder> folder_;
  std::filesystem::path path_;
};

}  // namespace alpa
