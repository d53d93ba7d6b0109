#include "libalpa/comm/mpi_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <ctime>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"

namespace alpa {
namespace {

constexpr int kMessageTag = 1, kBarrierTag = 2, kFirstWireTag = 3;

// A short spin catches what is about to arrive; after it the core goes to whoever has work (another rank,
// often).
constexpr int kPolls = 100;
constexpr std::chrono::seconds kLongestNap{1};  // after longer ones this process was suspended

constexpr std::size_t kMostNames = 8;
// Pieces of messages under way that take nothing from the heap: how many there are depends on how far other
// ranks lag.
constexpr std::size_t kExpected = 1024;

/// Longer, the longer the wait: nothing comes later than by a hundredth for it, and a long wait takes no
/// core.
timespec nap_after(double waited_s) {
  return {0, static_cast<long>(1e9 * std::clamp(waited_s / 100, 20e-6, 1e-3))};
}

/// From the first to the last. An empty message is one empty piece, so that it still meets its receive.
template <class Body>
void for_each_piece(std::int64_t bytes, std::int64_t most, Body&& body) {
  std::int64_t first = 0;
  do {
    body(first, static_cast<int>(std::min(most, bytes - first)));
    first += most;
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
  pending_sends_.reserve(kExpected);
  requests_.reserve(kExpected);
  free_numbers_.reserve(kExpected);
  receiving_.resize(kExpected);
}

MpiTransport::~MpiTransport() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized && pending_sends_.empty()) MPI_Comm_free(&comm_);
}

int MpiTransport::new_request(int peer, Operation operation) {
  if (free_numbers_.empty()) {
    requests_.emplace_back();
    free_numbers_.push_back(static_cast<int>(requests_.size()) - 1);
  }
  const int number = free_numbers_.back();
  free_numbers_.pop_back();
  requests_[number].peer = peer;
  requests_[number].operation = operation;
  return number;
}

int MpiTransport::isend(const void* data, std::int64_t bytes, int to, int tag) {
  assert(bytes >= 0 && bytes <= kMostBytes);
  const int number = new_request(to, operation_);
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, kFirstWireTag + tag, comm_,
                      &requests_[number].handle),
            "MPI_Isend");
  return number;
}

int MpiTransport::irecv(void* data, std::int64_t bytes, int from, int tag) {
  assert(bytes >= 0 && bytes <= kMostBytes);
  return start_piece(data, static_cast<int>(bytes), from, kFirstWireTag + tag, operation_);
}

int MpiTransport::start_piece(void* data, int bytes, int from, int tag, Operation operation) {
  const int number = new_request(from, operation);
  check_mpi(MPI_Irecv(data, bytes, MPI_BYTE, from, tag, comm_, &requests_[number].handle), "MPI_Irecv");
  return number;
}

bool MpiTransport::test(int message) {
  Request& request = requests_[message];
  int done = 0;
  MPI_Status status;
  check_mpi(MPI_Test(&request.handle, &done, &status), "waiting for other ranks (MPI_Test)");
  if (!done) return false;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &request.bytes), "MPI_Get_count");
  free_numbers_.push_back(message);
  wait_ = {};
  return true;
}

std::int64_t MpiTransport::start_send(const void* data, std::int64_t bytes, int to, std::int64_t most) {
  drop_finished_sends();
  ++messages_;
  for_each_piece(bytes, most, [&](std::int64_t first, int length) {
    Request& request =
        pending_sends_.emplace_back(Request{.peer = to, .operation = {"send", bytes}, .message = messages_});
    check_mpi(MPI_Isend(static_cast<const char*>(data) + first, length, MPI_BYTE, to, kMessageTag, comm_,
                        &request.handle),
              "MPI_Isend");
  });
  wait_ = {};
  return messages_;
}

bool MpiTransport::has_left(std::int64_t message) {
  drop_finished_sends();
  return std::ranges::find(pending_sends_, message, &Request::message) == pending_sends_.end();
}

void MpiTransport::wait_sends() {
  wait_until([this] { return drop_finished_sends(), pending_sends_.empty(); });
}

void MpiTransport::move_messages() {
  if (!pending_sends_.empty()) return drop_finished_sends();
  if (std::ranges::none_of(receiving_, &Receiving::is_under_way)) return;
  int is_there = 0;  // of what is asked for: any question has MPI look at all messages
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kMessageTag, comm_, &is_there, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

int MpiTransport::start_receive(void* data, std::int64_t bytes, int from, std::int64_t most) {
  auto free = std::ranges::find(receiving_, false, &Receiving::is_under_way);
  if (free == receiving_.end()) free = receiving_.emplace(receiving_.end());
  free->from = from;
  free->bytes = bytes;
  free->arrived = 0;
  free->is_under_way = true;
  int last = -1;
  for_each_piece(bytes, most, [&](std::int64_t first, int length) {
    const int piece =
        start_piece(static_cast<char*>(data) + first, length, from, kMessageTag, {"receive", bytes});
    (last < 0 ? free->piece : requests_[last].next) = piece;
    requests_[piece].next = -1;
    last = piece;
  });
  wait_ = {};
  return static_cast<int>(free - receiving_.begin());
}

bool MpiTransport::has_arrived(int message) {
  Receiving& receiving = receiving_[message];
  while (receiving.piece >= 0) {
    const Request& piece = requests_[receiving.piece];
    if (!test(receiving.piece)) return false;
    receiving.arrived += piece.bytes;
    receiving.piece = piece.next;
  }
  receiving.is_under_way = false;
  if (receiving.arrived != receiving.bytes)
    throw Error(ErrorKind::run_time, fmt::format("rank {} expects {} bytes from rank {}, which sent {}",
                                                 rank_, receiving.bytes, receiving.from, receiving.arrived));
  return true;
}

void MpiTransport::barrier() {
  // Not MPI's: of these messages it is known which ranks they are waited for from.
  const char mine = 0;
  std::vector<char> theirs(static_cast<std::size_t>(size_));
  std::vector<int> messages;
  for (int distance = 1; distance < size_; ++distance) {
    const int from = (rank_ - distance + size_) % size_, to = (rank_ + distance) % size_;
    messages.push_back(irecv(&theirs[from], 1, from, kBarrierTag - kFirstWireTag));
    messages.push_back(isend(&mine, 1, to, kBarrierTag - kFirstWireTag));
  }
  for (const int message : messages) wait_until([&] { return test(message); });
}

void MpiTransport::drop_finished_sends() {
  std::int64_t stuck = 0;  // pieces of a message leave one after another
  for (Request& request : pending_sends_) {
    if (request.message == stuck) continue;
    int done = 0;
    check_mpi(MPI_Test(&request.handle, &done, MPI_STATUS_IGNORE), "sending to another rank (MPI_Test)");
    if (!done) stuck = request.message;
  }
  if (std::erase_if(pending_sends_, [](const Request& each) { return each.handle == MPI_REQUEST_NULL; }) > 0)
    wait_ = {};
}

template <class Done>
void MpiTransport::wait_until(Done done) {
  wait_ = {};
  while (!done()) rest();
}

void MpiTransport::rest(std::string_view during) {
  if (++wait_.polls < kPolls) return;
  const timespec nap = nap_after(wait_.waited_s());
  nanosleep(&nap, nullptr);
  look(during);
}

void MpiTransport::look(std::string_view during) {
  const auto now = std::chrono::steady_clock::now();
  wait_.waited += std::min<std::chrono::steady_clock::duration>(now - wait_.looked, kLongestNap);
  wait_.looked = now;
  drop_finished_sends();
  const HangLimits limits = watch_ ? watch_->limits : HangLimits{};
  const double waited_s = wait_.waited_s();
  if (!wait_.is_reported && limits.report_after_s > 0 && waited_s >= limits.report_after_s) {
    wait_.is_reported = true;
    watch_->report(long_wait(waited_s, during));
  }
  if (limits.timeout_s > 0 && waited_s >= limits.timeout_s) give_up(long_wait(waited_s, during), false);
  if (!wait_.asked_s && watch_ && watch_->is_asked_to_end && watch_->is_asked_to_end())
    wait_.asked_s = waited_s;
  if (wait_.asked_s && waited_s >= *wait_.asked_s + watch_->end_grace_s)
    give_up(long_wait(waited_s, during), true);
}

void MpiTransport::cancel() {
  // What comes all the same must not be written to memory that is gone by then.
  for (Request& request : requests_)
    if (request.handle != MPI_REQUEST_NULL) MPI_Cancel(&request.handle);
}

void MpiTransport::give_up(const std::string& what, bool asked_to_end) {
  cancel();
  if (asked_to_end) throw Error(ErrorKind::peer, what + ", when a signal asked to end");
  throw Error(
      ErrorKind::peer, what,
      "see what holds that rank up (where it waits too, it says for whom), or give it more time with " +
          watch_->option);
}

std::string MpiTransport::long_wait(double waited_s, std::string_view during) const {
  const std::vector<const Request*> late = late_requests();
  const std::vector<std::string> names = places_of(late);
  std::string all;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) all += (i ? ", " : "") + names[i];
  if (names.size() > kMostNames) all += fmt::format(" and {} more", names.size() - kMostNames);
  const Operation operation = late.empty() ? operation_ : late.front()->operation;
  const std::string size = operation.bytes > 0 ? " of " + bytes_text(operation.bytes) : "";
  return fmt::format("waiting for {} for {}, in {}{}{}{}", all, seconds_text(waited_s), operation.name, size,
                     during.empty() ? "" : ": ", during);
}

/// What is received first.
std::vector<const MpiTransport::Request*> MpiTransport::late_requests() const {
  std::vector<const Request*> late;
  for (const std::vector<Request>* requests : {&requests_, &pending_sends_})
    for (const Request& request : *requests) {
      int done = 0;
      if (request.handle == MPI_REQUEST_NULL) continue;
      check_mpi(MPI_Request_get_status(request.handle, &done, MPI_STATUS_IGNORE), "MPI_Request_get_status");
      if (!done) late.push_back(&request);
    }
  return late;
}

std::vector<std::string> MpiTransport::places_of(const std::vector<const Request*>& requests) const {
  std::set<int> peers;
  for (const Request* request : requests) peers.insert(request->peer);
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
