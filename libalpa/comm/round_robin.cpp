#include "libalpa/comm/round_robin.h"

namespace alpa {

int round_robin_rounds(int ranks) { return ranks % 2 == 0 ? ranks - 1 : (ranks == 1 ? 0 : ranks); }

int round_robin_partner(int rank, int round, int ranks) {
  // All but one stand on a circle of odd length and meet their mirror image; the one who would meet
  // themselves meets the one outside the circle, or nobody.
  const int circle = ranks % 2 == 0 ? ranks - 1 : ranks;
  const int outside = ranks % 2 == 0 ? ranks - 1 : -1;
  if (rank == outside) return round;
  const int partner = (2 * round - rank + circle) % circle;
  return partner == rank ? outside : partner;
}

}  // namespace alpa
