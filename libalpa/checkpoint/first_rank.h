#pragma once
#include <functional>
#include <string>

#include "libalpa/comm/communicator.h"
#include "libalpa/h5/tensor_file.h"

// What takes long at files while other ranks wait. Ranks that wait for another that moves on meet it after
// every 64 MiB that it has read, so that no wait of theirs is as long as the whole. All are collective;
// buffers are the host's.

namespace alpa {

/// What rank 0 does for all: runs `body` there and gives its result to every rank. An Error that leaves it is
/// thrown on every rank alike, so that all leave together.
std::string text_of_first_rank(Communicator&, Stream&, const std::function<std::string()>& body);
void on_first_rank(Communicator&, Stream&, const std::function<void()>& body);

/// The same for a `body` that says what it has read.
std::string text_of_first_rank(Communicator&, Stream&,
                               const std::function<std::string(const BytesRead&)>& body);

/// Runs `body`, which says what it has read, on each rank, see together().
void read_together(Communicator&, Stream&, const std::function<void(const BytesRead&)>& body);

}  // namespace alpa
