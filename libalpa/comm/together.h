#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libalpa/comm/communicator.h"

// Agreements between ranks about host values. All are collective.

namespace alpa {

/// Runs `body` on each rank. Where it throws on any, the lowest such rank's error is thrown on all, as that
/// rank's ("rank 2: cannot write ..."; that of a rank alone as it is). An Error(peer) is thrown at once: who
/// has lost a rank cannot agree with it.
void together(Communicator&, Stream&, const std::function<void()>& body);

/// The text of rank `root`.
std::string text_of_rank(Communicator&, Stream&, std::string text, int root);

/// What each rank gives, by rank.
std::vector<std::vector<std::int64_t>> gathered(Communicator&, Stream&,
                                                const std::vector<std::int64_t>& mine);

}  // namespace alpa
