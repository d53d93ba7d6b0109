#include "libalpa/comm/together.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

std::optional<Error> error_of(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::peer) throw;
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorKind::run_time, error.what());
  }
}

}  // namespace

void together(Communicator& ranks, Stream& stream, const std::function<void()>& body) {
  if (ranks.size() == 1) return body();
  const std::optional<Error> mine = error_of(body);
  std::int32_t above = mine ? ranks.size() - ranks.rank() : 0;  // the greatest is of the lowest rank
  ranks.all_reduce(stream, &above, 1, DType::i32, Reduction::max);
  if (above == 0) return;
  const int root = ranks.size() - above;
  const bool speaks = root == ranks.rank();
  const auto shared = [&](const std::string& text) {
    return text_of_rank(ranks, stream, speaks ? text : "", root);
  };
  const std::string kind = shared(mine ? std::to_string(static_cast<int>(mine->kind())) : "");
  const std::string happened = shared(mine ? mine->happened() : "");
  const std::string hint = shared(mine ? mine->hint() : "");
  throw Error(static_cast<ErrorKind>(std::stoi(kind)), fmt::format("rank {}: {}", root, happened), hint);
}

std::string text_of_rank(Communicator& ranks, Stream& stream, std::string text, int root) {
  auto size = static_cast<std::int64_t>(text.size());
  ranks.broadcast(stream, &size, sizeof size, root);
  text.resize(static_cast<std::size_t>(size));
  if (size > 0) ranks.broadcast(stream, text.data(), size, root);
  return text;
}

std::vector<std::vector<std::int64_t>> gathered(Communicator& ranks, Stream& stream,
                                                const std::vector<std::int64_t>& mine) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const std::int64_t count = std::ssize(mine);
  std::vector<std::int64_t> counts(size);
  ranks.all_gather(stream, &count, counts.data(), sizeof count);
  const auto longest = static_cast<std::size_t>(*std::max_element(counts.begin(), counts.end()));
  std::vector<std::int64_t> padded = mine, all(size * longest);
  padded.resize(longest);
  ranks.all_gather(stream, padded.data(), all.data(), static_cast<std::int64_t>(longest * sizeof count));
  std::vector<std::vector<std::int64_t>> by_rank;
  for (std::size_t r = 0; r < size; ++r) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(r * longest);
    by_rank.emplace_back(first, first + counts[r]);
  }
  return by_rank;
}

}  // namespace alpa
