#pragma once

namespace alpa {

/// Rounds in which each of `ranks` ranks meets every other one exactly once, with at most one partner a
/// round: ranks - 1, or ranks where that is odd (a round-robin tournament by the circle method).
int round_robin_rounds(int ranks);

/// The rank that `rank` meets in `round` (from 0), or -1 when it sits out. With 4 ranks rank 0 meets 3, 2, 1.
int round_robin_partner(int rank, int round, int ranks);

}  // namespace alpa
