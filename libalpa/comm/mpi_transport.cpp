#include "libalpa/comm/mpi_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <ctime>
#include <optional>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"

namespace alpa {
namespace {

constexpr int kExchangeTag = 1;
constexpr int kMessageTag = 2;
constexpr std::int64_t kLargestPiece = std::int64_t{1} << 30;

// A short spin catches what is about to arrive; after it the core goes to whoever has work (another rank,
// often).
class Backoff {
 public:
  /// True after a sleep.
  bool pause() {
    if (++polls_ < 100) return false;
    const timespec nap{0, 20'000};
    nanosleep(&nap, nullptr);
    const Clock::time_point now = Clock::now();
    waited_ += std::min<Clock::duration>(now - looked_, kLongestNap);
    looked_ = now;
    return true;
  }

  double waited_s() const { return std::chrono::duration<double>(waited_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongestNap{1};  // after longer ones this process was suspended

  int polls_ = 0;
  Clock::time_point looked_ = Clock::now();
  Clock::duration waited_{};
};

constexpr std::size_t kMostNames = 8;

/// An empty message is one empty piece, so that it still meets its receive.
template <class Body>
void for_each_piece(std::int64_t bytes, Body&& body) {
  std::int64_t first = 0;
  do {
    body(first, static_cast<int>(std::min(kLargestPiece, bytes - first)));
    first += kLargestPiece;
  } while (first < bytes);
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0, error_class = MPI_ERR_OTHER;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &error_class);
  const bool peer_is_gone = error_class == MPIX_ERR_PROC_FAILED || error_class == MPIX_ERR_REVOKED;
  throw Error(peer_is_gone ? ErrorKind::peer : ErrorKind::run_time, fmt::format("{} failed: {}", call, text));
}

MpiTransport::MpiTransport(MPI_Comm adopted, std::shared_ptr<const PeerWatch> watch)
    : comm_(adopted), watch_(std::move(watch)) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

MpiTransport::~MpiTransport() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized && pending_sends_.empty()) MPI_Comm_free(&comm_);
}

void MpiTransport::exchange(std::span<const Incoming> incoming, std::span<const Outgoing> outgoing) {
  requests_.clear();
  for (const Incoming& each : incoming)
    if (each.bytes > 0) post_receive(each, kExchangeTag);
  for (const Outgoing& each : outgoing)
    if (each.bytes > 0) post_send(each, kExchangeTag, requests_);
  for (Request& request : requests_) wait(request.handle, MPI_STATUS_IGNORE);
}

std::int64_t MpiTransport::start_send(const Outgoing& outgoing) {
  drop_finished_sends();
  post_send(outgoing, kMessageTag, pending_sends_, ++messages_);
  return messages_;
}

void MpiTransport::receive(const Incoming& incoming) {
  requests_.clear();
  post_receive(incoming, kMessageTag);
  std::int64_t received = 0;
  for (Request& request : requests_) {
    MPI_Status status;
    wait(request.handle, &status);
    int bytes = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    received += bytes;
  }
  if (received != incoming.bytes)
    throw Error(ErrorKind::run_time, fmt::format("rank {} expects {} bytes from rank {}, which sent {}",
                                                 rank_, incoming.bytes, incoming.rank, received));
}

void MpiTransport::wait_send(std::int64_t message) {
  requests_.clear();
  wait_until([&] {
    drop_finished_sends();
    return std::ranges::find(pending_sends_, message, &Request::message) == pending_sends_.end();
  });
}

void MpiTransport::wait_sends() {
  requests_.clear();
  wait_until([this] { return drop_finished_sends(), pending_sends_.empty(); });
}

void MpiTransport::barrier() {
  // Not MPI's: of these messages it is known which ranks they are waited for from.
  const char mine = 0;
  std::vector<char> theirs(static_cast<std::size_t>(size_));
  std::vector<Incoming> incoming;
  std::vector<Outgoing> outgoing;
  for (int distance = 1; distance < size_; ++distance) {
    const int from = (rank_ - distance + size_) % size_, to = (rank_ + distance) % size_;
    incoming.push_back({&theirs[from], 1, from});
    outgoing.push_back({&mine, 1, to});
  }
  exchange(incoming, outgoing);
}

void MpiTransport::post_receive(const Incoming& incoming, int tag) {
  assert(incoming.bytes >= 0);
  for_each_piece(incoming.bytes, [&](std::int64_t first, int bytes) {
    char* data = static_cast<char*>(incoming.data) + first;
    Request& request = requests_.emplace_back(Request{MPI_REQUEST_NULL, incoming.rank});
    check_mpi(MPI_Irecv(data, bytes, MPI_BYTE, incoming.rank, tag, comm_, &request.handle), "MPI_Irecv");
  });
}

void MpiTransport::post_send(const Outgoing& outgoing, int tag, std::vector<Request>& requests,
                             std::int64_t message) {
  assert(outgoing.bytes >= 0);
  for_each_piece(outgoing.bytes, [&](std::int64_t first, int bytes) {
    const char* data = static_cast<const char*>(outgoing.data) + first;
    Request& request = requests.emplace_back(Request{MPI_REQUEST_NULL, outgoing.rank, message});
    check_mpi(MPI_Isend(data, bytes, MPI_BYTE, outgoing.rank, tag, comm_, &request.handle), "MPI_Isend");
  });
}

void MpiTransport::wait(MPI_Request& request, MPI_Status* status) {
  wait_until([&] {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, status), "waiting for other ranks (MPI_Test)");
    return done != 0;
  });
}

void MpiTransport::drop_finished_sends() {
  for (Request& request : pending_sends_) {
    int done = 0;
    check_mpi(MPI_Test(&request.handle, &done, MPI_STATUS_IGNORE), "sending to another rank (MPI_Test)");
  }
  std::erase_if(pending_sends_, [](const Request& each) { return each.handle == MPI_REQUEST_NULL; });
}

template <class Done>
void MpiTransport::wait_until(Done done) {
  const HangLimits limits = watch_ ? watch_->limits : HangLimits{};
  Backoff backoff;
  bool is_reported = false;
  std::optional<double> asked_s;  // how long it had waited then
  while (!done()) {
    if (!backoff.pause()) continue;
    drop_finished_sends();
    if (!is_reported && limits.report_after_s > 0 && backoff.waited_s() >= limits.report_after_s) {
      is_reported = true;
      watch_->report(long_wait(backoff.waited_s()));
    }
    if (limits.timeout_s > 0 && backoff.waited_s() >= limits.timeout_s) give_up(backoff.waited_s(), false);
    if (!asked_s && watch_ && watch_->is_asked_to_end && watch_->is_asked_to_end())
      asked_s = backoff.waited_s();
    if (asked_s && backoff.waited_s() >= *asked_s + watch_->end_grace_s) give_up(backoff.waited_s(), true);
  }
}

void MpiTransport::give_up(double waited_s, bool asked_to_end) {
  const std::string what = long_wait(waited_s);
  // What comes all the same must not be written to memory that is gone by then.
  for (Request& request : requests_)
    if (request.handle != MPI_REQUEST_NULL) MPI_Cancel(&request.handle);
  if (asked_to_end) throw Error(ErrorKind::peer, what + ", when a signal asked to end");
  throw Error(
      ErrorKind::peer, what,
      "see what holds that rank up (where it waits too, it says for whom), or give it more time with " +
          watch_->option);
}

std::string MpiTransport::long_wait(double waited_s) const {
  const std::vector<std::string> names = late_peers();
  std::string all;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) all += (i ? ", " : "") + names[i];
  if (names.size() > kMostNames) all += fmt::format(" and {} more", names.size() - kMostNames);
  const std::string size = operation_bytes_ > 0 ? " of " + bytes_text(operation_bytes_) : "";
  return fmt::format("waiting for {} for {}, in {}{}", all, seconds_text(waited_s), operation_, size);
}

std::vector<std::string> MpiTransport::late_peers() const {
  std::set<int> peers;
  for (const std::vector<Request>* requests : {&requests_, &pending_sends_})
    for (const Request& request : *requests) {
      int done = 0;
      if (request.handle != MPI_REQUEST_NULL)
        check_mpi(MPI_Request_get_status(request.handle, &done, MPI_STATUS_IGNORE), "MPI_Request_get_status");
      if (request.handle != MPI_REQUEST_NULL && !done) peers.insert(request.peer);
    }
  const std::vector<int> here(peers.begin(), peers.end());
  std::vector<int> in_world(here.size());
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(comm_, &group), "MPI_Comm_group");
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  check_mpi(
      MPI_Group_translate_ranks(group, static_cast<int>(here.size()), here.data(), world, in_world.data()),
      "MPI_Group_translate_ranks");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  std::vector<std::string> names;
  for (const int rank : in_world) names.push_back(watch_->places[rank]);
  return names;
}

}  // namespace alpa
