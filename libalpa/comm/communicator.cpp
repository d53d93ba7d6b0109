#include "libalpa/comm/communicator.h"

namespace alpa {

std::vector<int> consecutive_nodes(int ranks, int per_node) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / per_node);
  return nodes;
}

void shift(Communicator& ranks, Stream& stream, std::span<const ShiftBuffer> tensors) {
  const int next = (ranks.rank() + 1) % ranks.size(),
            previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
  for (const ShiftBuffer& tensor : tensors) ranks.send(stream, tensor.from, tensor.bytes, next);
  for (const ShiftBuffer& tensor : tensors) ranks.receive(stream, tensor.to, tensor.bytes, previous);
  ranks.wait_sends(stream);
}

}  // namespace alpa
