#pragma once
#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libalpa/comm/peer_watch.h"

namespace alpa {

/// Throws Error with MPI's text unless `code` is success: peer when MPI says that a process is gone, run_time
/// otherwise. `call` names what was tried, e.g. "MPI_Isend to rank 3".
void check_mpi(int code, const char* call);

/// Bytes in host memory that go to or come from `rank`.
struct Outgoing {
  const void* data;
  std::int64_t bytes;
  int rank;
};
struct Incoming {
  void* data;
  std::int64_t bytes;
  int rank;
};

/// Messages between the ranks of one MPI communicator that this object owns. Waiting means testing with
/// back-off: MPICH's own waits keep a core busy, which costs milliseconds where ranks outnumber cores.
/// Messages of any size are sent in pieces that MPI's int counts can hold. Not thread-safe: one thread of a
/// rank owns MPI.
class MpiTransport {
 public:
  explicit MpiTransport(MPI_Comm adopted, std::shared_ptr<const PeerWatch> watch = nullptr);
  ~MpiTransport();  ///< does not wait: sends still pending keep the MPI communicator alive until the process
                    ///< ends
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm native() const { return comm_; }
  const std::shared_ptr<const PeerWatch>& watch() const { return watch_; }

  /// What the next waits are for, for the report when they last long; `bytes` of 0 are left out.
  void begin(const char* operation, std::int64_t bytes = 0) {
    operation_ = operation;
    operation_bytes_ = bytes;
  }

  /// Starts all and waits for all. Collective in the sense that each outgoing block meets an incoming one of
  /// its size. Blocks of no bytes are left out. Between two ranks blocks are matched in order.
  void exchange(std::span<const Incoming> incoming, std::span<const Outgoing> outgoing);

  /// Point to point, apart from exchanges. `data` stays in use until wait_send() of the returned number, or
  /// wait_sends(); every other wait keeps it moving.
  std::int64_t start_send(const Outgoing& outgoing);
  /// Throws Error(run_time) when the message has another size.
  void receive(const Incoming& incoming);
  void wait_send(std::int64_t message);
  void wait_sends();

  void barrier();

 private:
  struct Request {
    MPI_Request handle = MPI_REQUEST_NULL;
    int peer = 0;
    std::int64_t message = 0;  ///< of a pending send
  };

  void post_receive(const Incoming& incoming, int tag);
  void post_send(const Outgoing& outgoing, int tag, std::vector<Request>& requests, std::int64_t message = 0);
  void wait(MPI_Request& request, MPI_Status* status);
  void drop_finished_sends();

  /// Waits until `done()`, with back-off, under the eyes of the watch.
  template <class Done>
  void wait_until(Done done);
  [[noreturn]] void give_up(double waited_s, bool asked_to_end);
  std::string long_wait(double waited_s) const;
  std::vector<std::string> late_peers() const;

  MPI_Comm comm_;
  std::shared_ptr<const PeerWatch> watch_;
  int rank_ = 0, size_ = 1;
  std::vector<Request> pending_sends_;
  std::int64_t messages_ = 0;
  std::vector<Request> requests_;  ///< of the running exchange; kept for its capacity
  const char* operation_ = "message";
  std::int64_t operation_bytes_ = 0;
};

}  // namespace alpa
