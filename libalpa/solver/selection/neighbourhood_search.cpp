#include "libalpa/solver/selection/neighbourhood_search.h"

#include <algorithm>

#include "libalpa/solver/selection/neighbourhood_lanes.h"

namespace alpa {

void search_neighbourhoods(const SelectionNetwork& network, Incumbent& incumbent,
                           const NeighbourhoodOptions& options, const Deadline& deadline) {
  const auto incident = incident_edges(network);
  const NeighbourhoodView view(network, incident, options.price);
  NeighbourhoodLanes lanes(view, options.lanes, options.seed);
  lanes.start_from(incumbent.choice);
  const double total = static_cast<double>(options.work);
  const double round_work = std::clamp(options.patience / options.lanes / 8, 2e5, 5e7);
  for (double work = 0, futile = 0; futile < options.patience && work < total;) {
    if (incumbent.cost <= options.target || deadline.passed()) return;
    work += options.lanes * round_work;
    futile += options.lanes * round_work;
    if (lanes.walk(round_work, options.threads, incumbent, deadline)) futile = 0;
  }
}

}  // namespace alpa
