#include "libalpa/comm/mpi_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <ctime>
#include <string>

#include "libalpa/base/error.h"

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
    return true;
  }

 private:
  int polls_ = 0;
};

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

MpiTransport::MpiTransport(MPI_Comm adopted) : comm_(adopted) {
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
    if (each.bytes > 0) post_receive(each, kExchangeTag, requests_);
  for (const Outgoing& each : outgoing)
    if (each.bytes > 0) post_send(each, kExchangeTag, requests_);
  for (MPI_Request& request : requests_) wait(request, MPI_STATUS_IGNORE);
}

void MpiTransport::start_send(const Outgoing& outgoing) {
  drop_finished_sends();
  post_send(outgoing, kMessageTag, pending_sends_);
}

void MpiTransport::receive(const Incoming& incoming) {
  requests_.clear();
  post_receive(incoming, kMessageTag, requests_);
  std::int64_t received = 0;
  for (MPI_Request& request : requests_) {
    MPI_Status status;
    wait(request, &status);
    int bytes = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    received += bytes;
  }
  if (received != incoming.bytes)
    throw Error(ErrorKind::run_time, fmt::format("rank {} expects {} bytes from rank {}, which sent {}",
                                                 rank_, incoming.bytes, incoming.rank, received));
}

void MpiTransport::wait_sends() {
  Backoff backoff;
  while (drop_finished_sends(), !pending_sends_.empty()) backoff.pause();
}

void MpiTransport::barrier() {
  MPI_Request request;
  check_mpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  wait(request, MPI_STATUS_IGNORE);
}

void MpiTransport::post_receive(const Incoming& incoming, int tag, std::vector<MPI_Request>& requests) {
  assert(incoming.bytes >= 0);
  for_each_piece(incoming.bytes, [&](std::int64_t first, int bytes) {
    char* data = static_cast<char*>(incoming.data) + first;
    check_mpi(
        MPI_Irecv(data, bytes, MPI_BYTE, incoming.rank, tag, comm_, &requests.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Irecv");
  });
}

void MpiTransport::post_send(const Outgoing& outgoing, int tag, std::vector<MPI_Request>& requests) {
  assert(outgoing.bytes >= 0);
  for_each_piece(outgoing.bytes, [&](std::int64_t first, int bytes) {
    const char* data = static_cast<const char*>(outgoing.data) + first;
    check_mpi(
        MPI_Isend(data, bytes, MPI_BYTE, outgoing.rank, tag, comm_, &requests.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Isend");
  });
}

void MpiTransport::wait(MPI_Request& request, MPI_Status* status) {
  Backoff backoff;
  while (true) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, status), "waiting for other ranks (MPI_Test)");
    if (done) return;
    if (backoff.pause()) drop_finished_sends();
  }
}

void MpiTransport::drop_finished_sends() {
  for (MPI_Request& request : pending_sends_) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "sending to another rank (MPI_Test)");
  }
  std::erase(pending_sends_, MPI_REQUEST_NULL);
}

}  // namespace alpa
