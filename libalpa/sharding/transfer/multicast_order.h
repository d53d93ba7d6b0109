#pragma once
#include <vector>

namespace alpa {

/// What one multicast takes if a certain device sends it: every link of `links` for so long, from the same
/// moment on.
struct MulticastSender {
  std::vector<int> links;  ///< numbered from 0
  double seconds = 0;
};

/// Those that may send it; one at least.
using Multicast = std::vector<MulticastSender>;

struct MulticastTurn {
  int multicast = 0, sender = 0;
  double start_s = 0;
  bool operator==(const MulticastTurn&) const = default;
};

/// How hard to look (MLSys'23, section 3.2, and its ablation).
enum class MulticastSearch {
  none,      ///< the first sender, in the order given
  balanced,  ///< that with the least to send yet, in the order given
  order,     ///< the best of these, of randomised greedy orders, and of branch and bound
};

/// Who sends each multicast and when, for the last to be done early: a link serves one at a time. In the
/// order of their begin. Effort is counted, not timed; the same input has the same answer.
std::vector<MulticastTurn> multicast_order(const std::vector<Multicast>&, MulticastSearch);

/// When the last one is done.
double multicast_seconds(const std::vector<Multicast>&, const std::vector<MulticastTurn>&);

/// No order is done before: what a link has to serve whoever sends, and what all senders have to.
double multicast_bound(const std::vector<Multicast>&);

}  // namespace alpa
