#pragma once
#include <optional>
#include <string>
#include <vector>

#include "libalpa/program/order/rank_rows.h"

namespace alpa {

/// How long a rank computed.
struct RankWork {
  DeviceIndex rank{0};
  std::string host;  ///< "": not known
  double computed_s = 0;
};

double computed_s(const std::vector<TimelineRow>&);

/// The rank that computes longest beside the others of its mesh, which do the same work and wait for it.
struct Straggler {
  RankWork work;
  double usual_s = 0;  ///< the median of the others
  double ratio() const { return work.computed_s / usual_s; }
};

/// nullopt where no mesh has several ranks that computed something, or none of them a twentieth longer than
/// the others.
std::optional<Straggler> slowest_rank(const std::vector<RankWork>&, const Program&);

/// "rank 3 on node02 computes 14.20 ms a step, 1.42 times as long as the other ranks of its mesh"
std::string straggler_text(const Straggler&);

}  // namespace alpa
