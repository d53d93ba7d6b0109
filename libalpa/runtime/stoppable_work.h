#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "libalpa/base/log.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/runtime/train_ranks.h"

namespace alpa {

/// Work that all ranks do together, piece by piece, until it is done or one of them is asked to stop. Its
/// lines report how far it has come: "batch 12/300  loss 2.3456 so far  left 12.00 s".
class StoppableWork {
 public:
  /// `pieces` in all, each called a `piece`; a line every so many seconds. Time counts from here on. Keeps
  /// references.
  StoppableWork(std::string piece, std::int64_t pieces, double progress_s, const TrainRanks&,
                const StopRequest&, Log&);

  /// One more is done, and `left_out` of the others turn out not to be needed. `so_far` gives the middle of a
  /// line. Collective.
  void piece_done(const std::function<std::string()>& so_far, std::int64_t left_out = 0);

  bool is_done() const { return done_ == pieces_; }
  bool is_stopped() const { return is_stopped_; }  ///< before it was done; all ranks alike
  double seconds() const;

 private:
  std::string piece_;
  std::int64_t pieces_, done_ = 0;
  double progress_s_, begun_s_, reported_s_ = 0;
  Communicator& control_;
  std::unique_ptr<Stream> stream_;
  const StopRequest& stop_;
  Log& log_;
  bool is_stopped_ = false;
};

}  // namespace alpa
