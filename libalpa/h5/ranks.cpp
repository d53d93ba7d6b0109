#include "libalpa/h5/ranks.h"

#include <fmt/core.h>
#include <mpi.h>

#include <ctime>
#include <exception>
#include <limits>
#include <optional>

namespace alpa {
namespace {

void check_mpi(int result) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(ErrorKind::run_time, fmt::format("MPI failed: {}", text));
}

void wait(MPI_Request request) {
  for (int attempt = 0, done = 0;; ++attempt) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return;
    const timespec pause{0, 20'000};
    if (attempt > 100) nanosleep(&pause, nullptr);
  }
}

std::int64_t reduced(std::int64_t value, MPI_Op op, MPI_Comm communicator) {
  std::int64_t result = 0;
  MPI_Request request;
  check_mpi(MPI_Iallreduce(&value, &result, 1, MPI_INT64_T, op, communicator, &request));
  wait(request);
  return result;
}

std::string broadcast(std::string text, int root, int rank, MPI_Comm communicator) {
  MPI_Request request;
  auto bytes = static_cast<std::int64_t>(text.size());
  check_mpi(MPI_Ibcast(&bytes, 1, MPI_INT64_T, root, communicator, &request));
  wait(request);
  if (rank != root) text.resize(static_cast<std::size_t>(bytes));
  check_mpi(MPI_Ibcast(text.data(), static_cast<int>(bytes), MPI_CHAR, root, communicator, &request));
  wait(request);
  return text;
}

std::optional<Error> error_of(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorKind::run_time, error.what());
  }
}

}  // namespace

Ranks::Ranks(int native_communicator) : communicator_(native_communicator) {
  check_mpi(MPI_Comm_rank(communicator_, &rank_));
  check_mpi(MPI_Comm_size(communicator_, &size_));
}

void Ranks::together(const std::function<void()>& body) const {
  if (size_ == 1) return body();
  const std::optional<Error> mine = error_of(body);
  constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::max();
  const std::int64_t failed = reduced(mine ? rank_ : nobody, MPI_MIN, communicator_);
  if (failed == nobody) return;
  const int root = static_cast<int>(failed);
  const bool speaks = root == rank_;
  const std::string kind =
      broadcast(speaks ? std::to_string(static_cast<int>(mine->kind())) : "", root, rank_, communicator_);
  const std::string happened = broadcast(speaks ? mine->happened() : "", root, rank_, communicator_);
  const std::string hint = broadcast(speaks ? mine->hint() : "", root, rank_, communicator_);
  throw Error(static_cast<ErrorKind>(std::stoi(kind)), fmt::format("rank {}: {}", root, happened), hint);
}

std::int64_t Ranks::most(std::int64_t value) const {
  return size_ == 1 ? value : reduced(value, MPI_MAX, communicator_);
}

std::string Ranks::from_first(const std::string& text) const {
  return size_ == 1 ? text : broadcast(text, 0, rank_, communicator_);
}

H5List Ranks::file_access() const {
  H5List access(checked(H5Pcreate(H5P_FILE_ACCESS), "making a property list"));
  checked(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110), "choosing a format");
  if (size_ == 1) {
    checked(H5Pset_file_locking(access, false, true), "switching off file locks");
    return access;
  }
  checked(H5Pset_fapl_mpio(access, communicator_, MPI_INFO_NULL), "choosing MPI");
  checked(H5Pset_all_coll_metadata_ops(access, true), "choosing collective metadata");
  checked(H5Pset_coll_metadata_write(access, true), "choosing collective metadata");
  return access;
}

H5List Ranks::transfer() const {
  H5List transfer(checked(H5Pcreate(H5P_DATASET_XFER), "making a property list"));
  if (size_ > 1) checked(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE), "choosing collective writes");
  return transfer;
}

}  // namespace alpa
