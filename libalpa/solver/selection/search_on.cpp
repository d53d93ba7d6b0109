#include <algorithm>
#include <cmath>
#include <utility>

#include "libalpa/solver/selection/anytime_search.h"
#include "libalpa/solver/selection/network_search.h"
#include "libalpa/solver/selection/price_ascent.h"

namespace alpa {

void NetworkSearch::certify_small() {
  const auto incident = incident_edges(network_);
  PriceAscent ascent(network_, incident, {});
  constexpr int most_steps = 1500;
  constexpr double share_of_time = 0.1;
  solution_.by_effort_alone = false;
  const double time = deadline_.seconds_left();
  for (int k = 0; k < most_steps && !ascent.has_settled(); ++k) {
    if (deadline_.seconds_left() < (1 - share_of_time) * time) break;
    ascent.step();
  }
  const double bound = ascent.certificate(deadline_).bound;
  raise_certified_bound(bound);
  raise_bound(bound);
}

void NetworkSearch::search_on() {
  while (work_left_ > 0 && !done() && search_network_on()) {
  }
}

// On the present network, until the bound takes a good part of it out. False when that settles the search.
bool NetworkSearch::search_network_on() {
  constexpr double worth_presolving = 0.15;
  solution_.by_effort_alone = false;  // prices are raised for a share of the time at most
  AnytimeSearch search(network_,
                       {.price = price_,
                        .work = work_left_,
                        .target = solution_.bound + options_.gap * std::abs(solution_.bound),
                        .seed = liftings_.size(),
                        .threads = options_.threads},
                       deadline_);
  bool is_certified = false;
  double certified_at = infinity;  // cost of the incumbent when the bound was looked at last
  while (!done()) {
    Incumbent incumbent = present_incumbent();
    search.run(1, incumbent);
    work_left_ = search.work_left();
    if (incumbent.exists()) offer(incumbent.choice, incumbent.cost);
    price_ = search.price();
    const bool is_last = work_left_ <= 0 || deadline_.passed();
    const bool is_new = solution_.incumbent.cost < certified_at && search.is_certificate_cheap();
    if (deadline_.passed() ? !is_certified : is_last || is_new) {
      is_certified = true;
      const Certificate& certificate = search.certificate();
      raise_bound(certificate.bound);
      raise_certified_bound(certificate.bound);
      certified_at = solution_.incumbent.cost;
      if (!is_last && share_beyond(certificate.bound, certificate.reduced_costs) > worth_presolving) {
        report();
        return remove_beyond(certificate.bound, certificate.reduced_costs);
      }
    }
    report();
    if (is_last) return false;
  }
  return false;
}

}  // namespace alpa
