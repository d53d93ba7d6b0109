#pragma once
#include <functional>
#include <string>

#include "libalpa/comm/communicator.h"

namespace alpa {

/// What rank 0 does for all: runs `body` there and gives its result to every rank. An Error that leaves it is
/// thrown on every rank alike, so that all leave together. Collective; buffers are the host's.
std::string text_of_first_rank(Communicator&, Stream&, const std::function<std::string()>& body);
void on_first_rank(Communicator&, Stream&, const std::function<void()>& body);

}  // namespace alpa
