#include "libalpa/h5/ranks.h"

#include <fmt/core.h>
#include <mpi.h>

#include <ctime>
#include <exception>
#include <limits>
#include <optional>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

void check_mpi(int result) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(ErrorKind::run_time, fmt::format("MPI failed: {}", text));
}

void wait(MPI_Request& request) {
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

Ranks::Ranks(int native_communicator) {
  check_mpi(MPI_Comm_rank(native_communicator, &rank_));
  check_mpi(MPI_Comm_size(native_communicator, &size_));
  if (size_ > 1) check_mpi(MPI_Comm_dup(native_communicator, &communicator_));
}

Ranks::~Ranks() {
  if (size_ > 1) MPI_Comm_free(&communicator_);
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

std::string Ranks::from_first(const std::string& text) const {
  return size_ == 1 ? text : broadcast(text, 0, rank_, communicator_);
}

std::vector<std::vector<std::int64_t>> Ranks::gathered(const std::vector<std::int64_t>& mine) const {
  if (size_ == 1) return {mine};
  const auto ranks = static_cast<std::size_t>(size_);
  MPI_Request request;
  const int count = static_cast<int>(mine.size());
  std::vector<int> counts(ranks), offsets(ranks, 0);
  check_mpi(MPI_Iallgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, communicator_, &request));
  wait(request);
  for (std::size_t r = 1; r < ranks; ++r) offsets[r] = offsets[r - 1] + counts[r - 1];
  std::vector<std::int64_t> all(static_cast<std::size_t>(offsets.back() + counts.back()));
  check_mpi(MPI_Iallgatherv(mine.data(), count, MPI_INT64_T, all.data(), counts.data(), offsets.data(),
                            MPI_INT64_T, communicator_, &request));
  wait(request);
  std::vector<std::vector<std::int64_t>> by_rank;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto first = all.begin() + offsets[r];
    by_rank.emplace_back(first, first + counts[r]);
  }
  return by_rank;
}

void Ranks::exchange(const std::vector<Message>& sent, const std::vector<Message>& received) const {
  constexpr int tag = 0;
  std::vector<MPI_Request> requests;
  for (const Message& m : received)
    check_mpi(MPI_Irecv(m.bytes, static_cast<int>(m.count), MPI_CHAR, m.rank, tag, communicator_,
                        &requests.emplace_back()));
  for (const Message& m : sent)
    check_mpi(MPI_Isend(m.bytes, static_cast<int>(m.count), MPI_CHAR, m.rank, tag, communicator_,
                        &requests.emplace_back()));
  for (MPI_Request& request : requests) wait(request);
}

}  // namespace alpa
