#pragma once
#include <memory>

#include "libalpa/comm/communicator.h"

namespace alpa {

/// body(rank, communicator of all, a stream of the host) on three ranks, each a thread.
template <class Body>
void on_three_ranks(Body body) {
  run_on_threads(3, [&](int rank, Communicator& all) {
    const std::unique_ptr<Device> host = make_cpu_device(1);
    const std::unique_ptr<Stream> stream = host->make_stream();
    body(rank, all, *stream);
  });
}

}  // namespace alpa
