#include "libalpa/h5/ranks.h"

#include "libalpa/comm/communicator.h"
#include "libalpa/comm/together.h"

namespace alpa {

int Ranks::rank() const { return all_ ? all_->rank() : 0; }
int Ranks::size() const { return all_ ? all_->size() : 1; }

void Ranks::together(const std::function<void()>& body) const {
  if (alone()) return body();
  alpa::together(*all_, *host_, body);
}

std::string Ranks::from_first(const std::string& text) const {
  return alone() ? text : text_of_rank(*all_, *host_, text, 0);
}

std::vector<std::vector<std::int64_t>> Ranks::gathered(const std::vector<std::int64_t>& mine) const {
  if (alone()) return {mine};
  return alpa::gathered(*all_, *host_, mine);
}

bool Ranks::any(bool mine) const {
  std::int32_t any = mine ? 1 : 0;
  if (!alone()) all_->all_reduce(*host_, &any, 1, DType::i32, Reduction::max);
  return any != 0;
}

void Ranks::exchange(const std::vector<Message>& sent, const std::vector<Message>& received) const {
  for (const Message& m : sent) all_->send(*host_, m.bytes, m.count, m.rank);
  for (const Message& m : received) all_->receive(*host_, m.bytes, m.count, m.rank);
  if (!sent.empty()) all_->wait_sends(*host_);
}

}  // namespace alpa
