#include "libalpa/solver/selection/anytime_search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/solver/selection/dive.h"
#include "libalpa/solver/selection/neighbourhood_lanes.h"
#include "libalpa/solver/selection/price_ascent.h"
#include "libalpa/solver/selection/recombination.h"

namespace alpa {
namespace {

constexpr int probes_per_turn = 2, lanes_per_walk = 4;

// Choices to recombine: the best that were found from different prices.
class ChoicePool {
 public:
  void add(Incumbent found) {
    if (!found.exists()) return;
    for (const Incumbent& known : pool_)
      if (known.choice == found.choice) return;
    constexpr std::size_t capacity = 6;
    pool_.push_back(std::move(found));
    std::stable_sort(pool_.begin(), pool_.end(),
                     [](const Incumbent& a, const Incumbent& b) { return a.cost < b.cost; });
    if (pool_.size() > capacity) pool_.pop_back();
  }
  std::vector<std::vector<int>> choices() const {
    std::vector<std::vector<int>> choices;
    for (const Incumbent& known : pool_) choices.push_back(known.choice);
    return choices;
  }

 private:
  std::vector<Incumbent> pool_;
};

}  // namespace

class AnytimeSearch::Implementation {
 public:
  Implementation(const SelectionNetwork& network, AnytimeOptions options, const Deadline& deadline)
      : network_(network),
        options_(std::move(options)),
        deadline_(deadline),
        incident_(incident_edges(network)),
        ascent_(network, incident_, options_.price),
        unit_(std::clamp(10.0 * static_cast<double>(network.edge_cells()), 4e6, 4e7)) {}

  void run(int turns, Incumbent& incumbent) {
    if (!view_) {
      ascend();
      view_.emplace(network_, incident_, ascent_.best_price());
      lanes_.emplace(*view_, lanes_per_walk, philox_key(options_.seed, 0));
      if (incumbent.exists()) pool_.add(incumbent);
    }
    certificate_.reset();
    for (int k = 0; k < turns && !is_over(incumbent); ++k) {
      probe(incumbent);
      if (is_over(incumbent)) return;
      mix(incumbent);
      if (!is_over(incumbent) && incumbent.exists()) walk(incumbent);
      ++turn_;
    }
  }

  double work_left() const { return options_.work - work_; }

  const Certificate& certificate() {
    if (!certificate_) {
      certificate_ = ascent_.certificate(deadline_);
      certificates_work_ += ascent_.certificate_work();
    }
    return *certificate_;
  }
  bool is_certificate_cheap() const {
    constexpr double share = 0.05;
    return certificates_work_ + ascent_.certificate_work() <= share * work_;
  }
  const std::vector<double>& price() const { return ascent_.best_price(); }

 private:
  bool is_over(const Incumbent& incumbent) const {
    return deadline_.passed() || work_ >= options_.work || incumbent.cost <= options_.target;
  }

  // Longer where the bound still rises: no choice is much better than the prices that it is found by.
  void ascend() {
    const double time = deadline_.seconds_left();
    const auto has_spent = [&](double share) {
      return deadline_.seconds_left() < (1 - share) * time || work_ > share * options_.work;
    };
    constexpr int most_steps = 1500, some_steps = 10;
    constexpr double share = 0.3, most_share = 0.6, much = 5e-4;
    bool rises = true;
    double before = ascent_.bound();
    for (int k = 1; k <= most_steps && !ascent_.has_settled(); ++k) {
      if (has_spent(rises ? most_share : share)) break;
      ascent_.step();
      work_ += ascent_.step_work();
      if (k % some_steps > 0) continue;
      rises = ascent_.bound() - before > much * std::abs(before);
      before = ascent_.bound();
    }
    ascent_.wander();
  }

  struct Probe {
    std::vector<int> start;  // read off from messages
    std::vector<double> price;
    std::optional<Dive> dive;  // from there
    std::vector<Ban> bans;
    Incumbent found;
  };

  void probe(Incumbent& incumbent) {
    std::vector<Probe> probes;
    for (int k = 0; k < probes_per_turn && (k == 0 || !deadline_.passed()); ++k) {
      constexpr int steps_between = 4;
      for (int s = 0; s < steps_between && !deadline_.passed(); ++s) {
        ascent_.step();
        work_ += ascent_.step_work();
      }
      const bool is_odd = k % 2 == 1;
      Probe& probe = probes.emplace_back();
      probe.start = ascent_.choice();
      probe.price = ascent_.price();
      // A dive may end dearer than where it began, so the first turn tries both.
      if (turn_ > 0 || !is_odd) probe.dive.emplace(network_, incident_, ascent_.messages(), probe.price);
      if (is_odd) probe.bans = best_bans_;
    }
    run_tasks(static_cast<int>(probes.size()), options_.threads, [&](int k) {
      improve_probe(probes[k], philox_key(options_.seed, 1 + turn_ * probes_per_turn + k));
    });
    for (Probe& probe : probes) {
      work_ += (probe.dive ? probe.dive->work() * (1 + 4.0 * most_bans()) : 0) + 4 * unit_;
      if (probe.found.cost < incumbent.cost) best_bans_ = probe.bans;
      incumbent.offer(probe.found.choice, probe.found.cost);
      pool_.add(std::move(probe.found));
    }
  }

  // The first turn has to come to a choice that fits soon.
  int most_bans() const { return static_cast<int>(std::min<std::uint64_t>(turn_, 3) * 2); }

  // First with memory paid for and not limited, then from what fits near that.
  void improve_probe(Probe& probe, std::uint64_t seed) {
    std::vector<int> start = std::move(probe.start);
    if (probe.dive) {
      Dive::Found dived = probe.dive->run(std::move(probe.bans), most_bans(), unit_ / 8, seed, deadline_);
      probe.bans = std::move(dived.bans);
      start = std::move(dived.choice);
    }
    {
      const NeighbourhoodView paid(network_, incident_, probe.price, NeighbourhoodView::Memory::paid);
      NeighbourhoodLane lane(paid, philox_key(seed, 2));
      lane.start_from(start);
      lane.walk(2 * unit_, deadline_);
      start = lane.choice();
    }
    LocalSearch repaired(network_, incident_);
    repaired.start_from(start);
    constexpr int most_switches = 3000;
    std::vector<int> all(network_.nodes.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    if (std::isfinite(network_cost(network_, start)) && repaired.repair(deadline_, all, most_switches) &&
        repaired.fits()) {
      repaired.improve();
      start = repaired.choice();
    }
    NeighbourhoodLane lane(*view_, philox_key(seed, 1));
    lane.start_from(start);
    lane.walk(2 * unit_, deadline_);
    if (lane.best().exists())
      probe.found.offer(lane.best().choice, network_cost(network_, lane.best().choice));
  }

  void mix(Incumbent& incumbent) {
    const auto choices = pool_.choices();
    if (choices.size() < 2) return;
    recombine(network_, choices, incumbent,
              {.price = view_->price,
               .work = 4 * unit_,
               .seed = philox_key(options_.seed, 1000 + turn_),
               .threads = options_.threads},
              deadline_);
    work_ += 4 * unit_;
    pool_.add(incumbent);
  }

  // On for as long as it gains much: probes take longer, and what they find has to be walked from too.
  void walk(Incumbent& incumbent) {
    lanes_->start_from(incumbent.choice);
    constexpr int rounds = 6;
    constexpr double much = 1e-3;
    double before = infinity;
    while (before - incumbent.cost > much * std::abs(incumbent.cost) && !is_over(incumbent)) {
      before = incumbent.cost;
      for (int k = 0; k < rounds && !is_over(incumbent); ++k) {
        lanes_->walk(unit_, options_.threads, incumbent, deadline_);
        work_ += lanes_per_walk * unit_;
      }
    }
    pool_.add(incumbent);
  }

  const SelectionNetwork& network_;
  AnytimeOptions options_;
  const Deadline& deadline_;
  std::vector<std::vector<int>> incident_;
  PriceAscent ascent_;
  double unit_;  // of work: what one lane does at a time
  std::optional<NeighbourhoodView> view_;
  std::optional<NeighbourhoodLanes> lanes_;
  std::optional<Certificate> certificate_;
  ChoicePool pool_;
  std::vector<Ban> best_bans_;
  double work_ = 0, certificates_work_ = 0;
  std::uint64_t turn_ = 0;
};

AnytimeSearch::AnytimeSearch(const SelectionNetwork& network, AnytimeOptions options,
                             const Deadline& deadline)
    : implementation_(std::make_unique<Implementation>(network, std::move(options), deadline)) {}
AnytimeSearch::~AnytimeSearch() = default;

void AnytimeSearch::run(int turns, Incumbent& incumbent) { implementation_->run(turns, incumbent); }
double AnytimeSearch::work_left() const { return implementation_->work_left(); }
const Certificate& AnytimeSearch::certificate() { return implementation_->certificate(); }
bool AnytimeSearch::is_certificate_cheap() const { return implementation_->is_certificate_cheap(); }
const std::vector<double>& AnytimeSearch::price() const { return implementation_->price(); }

}  // namespace alpa
