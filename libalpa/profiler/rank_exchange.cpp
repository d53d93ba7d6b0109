#include "libalpa/profiler/rank_exchange.h"

#include <algorithm>
#include <cstring>

namespace alpa {

constexpr std::size_t kTextBytes = 256;

RankExchange::RankExchange(Device& device, Communicator& world)
    : device_(device), world_(world), stream_(device.make_stream()) {}

std::vector<char> RankExchange::gather_bytes(const void* mine, std::int64_t bytes) {
  const std::int64_t ranks = world_.size();
  if (!memory_ || memory_->bytes() < (ranks + 1) * bytes) memory_ = device_.allocate((ranks + 1) * bytes);
  char* const part = static_cast<char*>(memory_->data());
  char* const whole = part + bytes;
  std::vector<char> all(static_cast<std::size_t>(ranks * bytes));
  stream_->copy_to_device(part, mine, bytes);
  world_.all_gather(*stream_, part, whole, bytes);
  stream_->copy_to_host(all.data(), whole, ranks * bytes);
  stream_->synchronize();
  return all;
}

std::vector<std::vector<double>> RankExchange::gather(std::span<const double> mine) {
  const std::vector<char> all = gather_bytes(mine.data(), static_cast<std::int64_t>(mine.size_bytes()));
  std::vector<std::vector<double>> values(static_cast<std::size_t>(world_.size()),
                                          std::vector<double>(mine.size()));
  for (std::size_t r = 0; r < values.size(); ++r)
    std::memcpy(values[r].data(), all.data() + r * mine.size_bytes(), mine.size_bytes());
  return values;
}

std::vector<std::string> RankExchange::gather(const std::string& mine) {
  char text[kTextBytes] = {};
  std::memcpy(text, mine.data(), std::min(mine.size(), kTextBytes - 1));
  const std::vector<char> all = gather_bytes(text, kTextBytes);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < static_cast<std::size_t>(world_.size()); ++r)
    texts.emplace_back(all.data() + r * kTextBytes);
  return texts;
}

}  // namespace alpa
