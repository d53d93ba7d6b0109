#pragma once
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/comm/peer_watch.h"
#include "libalpa/comm/wire.h"

namespace alpa {

/// Throws Error with MPI's text unless `code` is success: peer when MPI says that a process is gone, run_time
/// otherwise. `call` names what was tried, e.g. "MPI_Isend to rank 3".
void check_mpi(int code, const char* call);

/// Messages between the ranks of one MPI communicator that this object owns. Waiting means testing with
/// back-off: MPICH's own waits keep a core busy, which costs milliseconds where ranks outnumber cores. Not
/// thread-safe: one thread of a rank owns MPI at a time.
class MpiTransport final : public Wire {
 public:
  explicit MpiTransport(MPI_Comm adopted, std::shared_ptr<const PeerWatch> watch = nullptr);
  ~MpiTransport() override;  ///< does not wait: sends still pending keep the MPI communicator alive until the
                             ///< process ends
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  MPI_Comm native() const { return comm_; }
  const std::shared_ptr<const PeerWatch>& watch() const { return watch_; }

  /// What the wire's next messages are of, for the report when they are waited for long; `bytes` of 0 are
  /// left out.
  void begin(const char* operation, std::int64_t bytes = 0) {
    operation_ = {operation, bytes};
    wait_ = {};
  }

  int isend(const void* data, std::int64_t bytes, int to, int tag) override;
  int irecv(void* data, std::int64_t bytes, int from, int tag) override;
  bool test(int message) override;
  void rest() override { rest({}); }
  void rest(std::string_view during);  ///< as those of Communicator
  void look(std::string_view during);
  void cancel();

  /// Messages of any size, apart from those of the wire, in pieces of `most` bytes, as the other side has
  /// them too. `data` stays in use until has_left() of the returned number, or wait_sends(); every other wait
  /// keeps it moving, and so does move_messages().
  std::int64_t start_send(const void* data, std::int64_t bytes, int to, std::int64_t most = kMostBytes);
  bool has_left(std::int64_t message);
  void wait_sends();
  void move_messages();

  /// Returns a number for has_arrived(), which frees it once it is true, and throws Error(run_time) when the
  /// message had another size.
  int start_receive(void* data, std::int64_t bytes, int from, std::int64_t most = kMostBytes);
  bool has_arrived(int message);

  void barrier();

 private:
  struct Operation {
    const char* name = "message";
    std::int64_t bytes = 0;
  };

  struct Request {
    MPI_Request handle = MPI_REQUEST_NULL;
    int peer = 0;
    Operation operation = {};
    std::int64_t message = 0;  ///< of a pending send
    int bytes = 0;             ///< that have arrived
    int next = -1;             ///< number of the next piece of a message that is received
  };

  /// A message that is received, in pieces.
  struct Receiving {
    int from = 0;
    std::int64_t bytes = 0, arrived = 0;
    int piece = -1;  ///< the first that is not there yet
    bool is_under_way = false;
  };

  /// Time in which nothing was started or arrived.
  struct Wait {
    int polls = 0;
    std::chrono::steady_clock::time_point looked = std::chrono::steady_clock::now();
    std::chrono::steady_clock::duration waited{};
    bool is_reported = false;
    std::optional<double> asked_s = {};  ///< how long it had waited when it was asked to end
    double waited_s() const { return std::chrono::duration<double>(waited).count(); }
  };

  int new_request(int peer, Operation);
  int start_piece(void* data, int bytes, int from, int tag, Operation);
  void drop_finished_sends();

  /// Waits until `done()`, with back-off, under the eyes of the watch.
  template <class Done>
  void wait_until(Done done);
  [[noreturn]] void give_up(const std::string& what, bool asked_to_end);
  std::string long_wait(double waited_s, std::string_view during) const;
  std::vector<const Request*> late_requests() const;
  std::vector<std::string> places_of(const std::vector<const Request*>&) const;

  MPI_Comm comm_;
  std::shared_ptr<const PeerWatch> watch_;
  int rank_ = 0, size_ = 1;
  std::vector<Request> pending_sends_;  ///< pieces, in the order in which they were started
  std::int64_t messages_ = 0;
  std::vector<Request> requests_;  ///< by number of the wire's message
  std::vector<int> free_numbers_;
  std::vector<Receiving> receiving_;  ///< by number of the message
  Wait wait_;
  Operation operation_;  ///< of the wire's messages
};

}  // namespace alpa
