#include "libalpa/sharding/transfer/multicast_order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

constexpr int kMostGreedyRounds = 100;
constexpr std::size_t kGreedyVisits = 2'000'000;  // of multicasts, in all rounds
constexpr std::size_t kMostInBranches = 24;
constexpr int kMostBranches = 20'000;

/// Sums in another order differ by so much at most.
constexpr double kEqual = 1 + 1e-12;

using Turns = std::vector<MulticastTurn>;

int link_count(const std::vector<Multicast>& multicasts) {
  int links = 0;
  for (const Multicast& multicast : multicasts)
    for (const MulticastSender& sender : multicast)
      for (const int link : sender.links) links = std::max(links, link + 1);
  return links;
}

/// Links that a multicast takes whoever sends it.
std::vector<int> fixed_links(const Multicast& multicast) {
  std::vector<int> fixed = multicast.front().links;
  for (const MulticastSender& sender : multicast)
    std::erase_if(fixed,
                  [&](int link) { return std::ranges::find(sender.links, link) == sender.links.end(); });
  return fixed;
}

double least_seconds(const Multicast& multicast) {
  return std::ranges::min_element(multicast, {}, &MulticastSender::seconds)->seconds;
}

/// When links are free, as multicasts take them.
class Links {
 public:
  explicit Links(int count) : free_s_(static_cast<std::size_t>(count)) {}

  double free_s(const MulticastSender& sender) const {
    double free = 0;
    for (const int link : sender.links) free = std::max(free, free_s_[link]);
    return free;
  }
  double free_s(int link) const { return free_s_[link]; }

  void take(const MulticastSender& sender, double start_s) {
    for (const int link : sender.links) free_s_[link] = start_s + sender.seconds;
  }

 private:
  std::vector<double> free_s_;
};

/// In the order given, from those senders.
Turns in_turn(const std::vector<Multicast>& multicasts, const std::vector<int>& senders) {
  Links links(link_count(multicasts));
  Turns turns;
  for (std::size_t m = 0; m < multicasts.size(); ++m) {
    const MulticastSender& sender = multicasts[m][static_cast<std::size_t>(senders[m])];
    const double start_s = links.free_s(sender);
    links.take(sender, start_s);
    turns.push_back({static_cast<int>(m), senders[m], start_s});
  }
  return turns;
}

/// What a sender's own links have to serve with this, the most of them; `fixed` are not its own.
double load_of(const MulticastSender& sender, const std::vector<int>& fixed,
               const std::vector<double>& loads) {
  double load = 0;
  for (const int link : sender.links)
    if (std::ranges::find(fixed, link) == fixed.end()) load = std::max(load, loads[link]);
  return load + sender.seconds;
}

std::vector<int> balanced_senders(const std::vector<Multicast>& multicasts) {
  std::vector<double> loads(static_cast<std::size_t>(link_count(multicasts)));
  std::vector<int> senders;
  for (const Multicast& multicast : multicasts) {
    const std::vector<int> fixed = fixed_links(multicast);
    std::size_t best = 0;
    double least = infinity;
    for (std::size_t s = 0; s < multicast.size(); ++s) {
      const double load = load_of(multicast[s], fixed, loads);
      if (load < least) least = load, best = s;
    }
    for (const int link : multicast[best].links) loads[link] += multicast[best].seconds;
    senders.push_back(static_cast<int>(best));
  }
  return senders;
}

/// Whenever links get free, the first in `order` that can begin does, from the sender that has had least to
/// send.
Turns greedy(const std::vector<Multicast>& multicasts, std::vector<int> order) {
  Links links(link_count(multicasts));
  std::vector<double> loads(static_cast<std::size_t>(link_count(multicasts)));
  std::vector<std::vector<int>> fixed;
  for (const Multicast& multicast : multicasts) fixed.push_back(fixed_links(multicast));
  Turns turns;
  for (double now_s = 0; !order.empty();) {
    double next_s = infinity;
    std::erase_if(order, [&](int m) {
      const Multicast& multicast = multicasts[m];
      int best = -1;
      for (int s = 0; s < static_cast<int>(multicast.size()); ++s) {
        const MulticastSender& sender = multicast[s];
        const double free_s = links.free_s(sender);
        if (free_s > now_s)
          next_s = std::min(next_s, free_s);
        else if (best < 0 || load_of(sender, fixed[m], loads) < load_of(multicast[best], fixed[m], loads))
          best = s;
      }
      if (best < 0) return false;
      const MulticastSender& sender = multicast[best];
      links.take(sender, now_s);
      for (const int link : sender.links) loads[link] += sender.seconds;
      turns.push_back({m, best, now_s});
      next_s = std::min(next_s, now_s + sender.seconds);
      return true;
    });
    now_s = next_s;
  }
  return turns;
}

/// Depth first over (next multicast, its sender) in the order of their begin.
class Branches {
 public:
  Branches(const std::vector<Multicast>& multicasts, double best_s, double bound_s)
      : multicasts_(multicasts),
        links_(link_count(multicasts)),
        left_s_(static_cast<std::size_t>(link_count(multicasts))),
        is_done_(multicasts.size()),
        best_s_(best_s),
        bound_s_(bound_s) {
    for (const Multicast& multicast : multicasts) {
      fixed_.push_back(fixed_links(multicast));
      for (const int link : fixed_.back()) left_s_[link] += least_seconds(multicast);
    }
  }

  /// Empty where none is better.
  Turns best() {
    branch(0, 0);
    return std::move(best_);
  }

 private:
  bool is_over() const { return branches_ >= kMostBranches || best_s_ <= bound_s_ * kEqual; }

  bool may_be_better(double end_s) const {
    for (std::size_t link = 0; link < left_s_.size(); ++link)
      if (left_s_[link] > 0) end_s = std::max(end_s, links_.free_s(static_cast<int>(link)) + left_s_[link]);
    return end_s * kEqual < best_s_;
  }

  bool is_like_one_before(std::size_t m) const {
    for (std::size_t other = 0; other < m; ++other)
      if (!is_done_[other] && are_alike(multicasts_[other], multicasts_[m])) return true;
    return false;
  }

  static bool are_alike(const Multicast& a, const Multicast& b) {
    return std::ranges::equal(a, b, [](const MulticastSender& x, const MulticastSender& y) {
      return x.links == y.links && x.seconds == y.seconds;
    });
  }

  void branch(double start_s, double end_s) {
    if (turns_.size() == multicasts_.size()) {
      best_ = turns_;
      best_s_ = end_s;
      return;
    }
    std::vector<MulticastTurn> next;
    for (std::size_t m = 0; m < multicasts_.size(); ++m) {
      if (is_done_[m] || is_like_one_before(m)) continue;
      for (std::size_t s = 0; s < multicasts_[m].size(); ++s)
        next.push_back(
            {static_cast<int>(m), static_cast<int>(s), std::max(start_s, links_.free_s(multicasts_[m][s]))});
    }
    std::ranges::stable_sort(next, {}, &MulticastTurn::start_s);
    for (const MulticastTurn& turn : next) {
      if (is_over()) return;
      ++branches_;
      const auto m = static_cast<std::size_t>(turn.multicast);
      const MulticastSender& sender = multicasts_[m][turn.sender];
      const Links before = links_;
      links_.take(sender, turn.start_s);
      for (const int link : fixed_[m]) left_s_[link] -= least_seconds(multicasts_[m]);
      is_done_[m] = true;
      turns_.push_back(turn);
      const double done_s = std::max(end_s, turn.start_s + sender.seconds);
      if (may_be_better(done_s)) branch(turn.start_s, done_s);
      turns_.pop_back();
      is_done_[m] = false;
      for (const int link : fixed_[m]) left_s_[link] += least_seconds(multicasts_[m]);
      links_ = before;
    }
  }

  const std::vector<Multicast>& multicasts_;
  Links links_;
  std::vector<std::vector<int>> fixed_;  ///< [multicast]
  std::vector<double> left_s_;           ///< [link] that it has to serve yet, whoever sends
  std::vector<char> is_done_;            ///< [multicast]
  Turns turns_, best_;
  double best_s_, bound_s_;
  int branches_ = 0;
};

Turns searched(const std::vector<Multicast>& multicasts) {
  const double bound_s = multicast_bound(multicasts);
  Turns best;
  double best_s = infinity;
  const auto offer = [&](Turns turns) {
    const double seconds = multicast_seconds(multicasts, turns);
    if (seconds * kEqual < best_s) best = std::move(turns), best_s = seconds;
    return best_s <= bound_s * kEqual;
  };
  std::vector<int> order(multicasts.size());
  std::iota(order.begin(), order.end(), 0);
  if (offer(in_turn(multicasts, std::vector<int>(multicasts.size())))) return best;
  if (offer(in_turn(multicasts, balanced_senders(multicasts)))) return best;
  const std::size_t visits = multicasts.size() * multicasts.size();
  const int rounds = static_cast<int>(
      std::min<std::size_t>(kMostGreedyRounds, kGreedyVisits / std::max<std::size_t>(visits, 1)));
  std::mt19937 random;  // the standard's own seed: the same everywhere
  for (int round = 0; round < rounds; ++round) {
    if (offer(greedy(multicasts, order))) return best;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  if (multicasts.size() <= kMostInBranches)
    if (Turns better = Branches(multicasts, best_s, bound_s).best(); !better.empty())
      best = std::move(better);
  return best;
}

}  // namespace

std::vector<MulticastTurn> multicast_order(const std::vector<Multicast>& multicasts, MulticastSearch search) {
  Turns turns = search == MulticastSearch::none ? in_turn(multicasts, std::vector<int>(multicasts.size()))
                : search == MulticastSearch::balanced ? in_turn(multicasts, balanced_senders(multicasts))
                                                      : searched(multicasts);
  std::ranges::stable_sort(turns, {}, &MulticastTurn::start_s);
  return turns;
}

double multicast_seconds(const std::vector<Multicast>& multicasts, const Turns& turns) {
  double end_s = 0;
  for (const MulticastTurn& turn : turns)
    end_s = std::max(end_s, turn.start_s + multicasts[turn.multicast][turn.sender].seconds);
  return end_s;
}

double multicast_bound(const std::vector<Multicast>& multicasts) {
  std::vector<double> served_s(static_cast<std::size_t>(link_count(multicasts)));
  std::set<int> of_senders;
  double sent_s = 0;
  for (const Multicast& multicast : multicasts) {
    const std::vector<int> fixed = fixed_links(multicast);
    const double seconds = least_seconds(multicast);
    for (const int link : fixed) served_s[link] += seconds;
    bool has_own = false;
    for (const MulticastSender& sender : multicast)
      for (const int link : sender.links)
        if (std::ranges::find(fixed, link) == fixed.end()) of_senders.insert(link), has_own = true;
    if (has_own) sent_s += seconds;
  }
  double bound_s = of_senders.empty() ? 0 : sent_s / static_cast<double>(of_senders.size());
  for (const double seconds : served_s) bound_s = std::max(bound_s, seconds);
  return bound_s;
}

}  // namespace alpa
