#pragma once
#include <cstdint>

namespace alpa {

/// Messages between the ranks of a group, as the algorithms of comm/collectives.h need them. Between two
/// ranks messages of one tag are matched in the order started; both sides know the size.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts a message of at most kMostBytes and returns its number. `data` is host memory, in use until
  /// test() of that number is true.
  virtual int isend(const void* data, std::int64_t bytes, int to, int tag) = 0;
  virtual int irecv(void* data, std::int64_t bytes, int from, int tag) = 0;

  /// Whether the message has left, or arrived. Its number is free for another one once this was true.
  virtual bool test(int message) = 0;

  /// For when test() is true of no message: gives the core away for a moment. Throws Error(peer) when one
  /// that is waited for cannot come any more, or has been waited for too long.
  virtual void rest() = 0;

  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

  // What goes to another node is best cut into messages of so much. MPICH over UCX sends longer ones by
  // rendezvous, and over TCP its requests and answers wait behind the data of other messages, and links
  // behind them: at 200 Mbit/s collectives of 8 MiB took 1.4 times as long; at 1 Gbit/s a pipeline whose
  // transfers, of 512 KiB beside computations, are as long as its forwards took 570 ms a step, not 531.
  static constexpr std::int64_t kMostBytesBetweenNodes = 16 << 10;
};

}  // namespace alpa
