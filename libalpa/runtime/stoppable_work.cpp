#include "libalpa/runtime/stoppable_work.h"

#include <fmt/core.h>

#include <utility>

#include "libalpa/base/clock.h"
#include "libalpa/base/units.h"

namespace alpa {

StoppableWork::StoppableWork(std::string piece, std::int64_t pieces, double progress_s,
                             const TrainRanks& ranks, const StopRequest& stop, Log& log)
    : piece_(std::move(piece)),
      pieces_(pieces),
      progress_s_(progress_s),
      begun_s_(monotonic_s()),
      control_(ranks.control),
      stream_(ranks.host.make_stream()),
      stop_(stop),
      log_(log) {}

double StoppableWork::seconds() const { return monotonic_s() - begun_s_; }

void StoppableWork::piece_done(const std::function<std::string()>& so_far, std::int64_t left_out) {
  ++done_;
  pieces_ -= left_out;
  std::int32_t asked = stop_.is_asked() ? 1 : 0;
  control_.all_reduce(*stream_, &asked, 1, DType::i32, Reduction::max);
  is_stopped_ = asked != 0 && !is_done();
  const double now_s = seconds();
  if (is_done() || now_s - reported_s_ < progress_s_) return;
  reported_s_ = now_s;
  log_.info(
      fmt::format("{} {}/{}  {}  left {}", piece_, done_, pieces_, so_far(),
                  seconds_text(now_s / static_cast<double>(done_) * static_cast<double>(pieces_ - done_))));
}

}  // namespace alpa
