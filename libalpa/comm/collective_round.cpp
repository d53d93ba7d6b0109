#include "libalpa/comm/collective_round.h"

namespace alpa {

void CollectiveRound::clear() {
  sends.clear();
  receives.clear();
  parts.clear();
  results.clear();
}

void CollectiveRound::send(const void* data, std::int64_t bytes, int to) {
  if (bytes > 0) sends.push_back({data, bytes, to});
}

void CollectiveRound::receive(void* data, std::int64_t bytes, int from) {
  if (bytes > 0) receives.push_back({data, bytes, from});
}

void CollectiveRound::reduce_parts(void* into, std::int64_t bytes) {
  const std::size_t first = results.empty() ? 0 : results.back().first_part + results.back().part_count;
  results.push_back({first, parts.size() - first, into, bytes});
}

void CollectiveRound::copy(const void* from, void* into, std::int64_t bytes) {
  add_part(from);
  reduce_parts(into, bytes);
}

}  // namespace alpa
