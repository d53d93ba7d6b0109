#include "libalpa/runtime/race_watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "libalpa/base/error.h"

namespace alpa {

void RaceWatch::wait(int lane, const Clock& recorded) {
  Clock& clock = clocks_[lane];
  for (std::size_t l = 0; l < clock.size(); ++l) clock[l] = std::max(clock[l], recorded[l]);
}

void RaceWatch::begin(int lane, const std::string* name) {
  const auto own = static_cast<std::size_t>(lane);
  now_ = {lane, ++clocks_[own][own], name};
}

void RaceWatch::split_at(std::int64_t byte) {
  auto after = bytes_.upper_bound(byte);
  if (after == bytes_.begin()) return;
  const auto holder = std::prev(after);
  if (holder->first == byte || holder->second.end <= byte) return;
  Bytes rest = holder->second;
  holder->second.end = byte;
  bytes_.emplace(byte, std::move(rest));
}

void RaceWatch::check(const Use& other, bool writes) const {
  if (other.lane < 0 || other.lane == now_.lane) return;
  if (clocks_[now_.lane][other.lane] >= other.number) return;
  throw Error(ErrorKind::run_time,
              fmt::format("'{}' {} memory that '{}', on another lane, may still use", *now_.name,
                          writes ? "writes" : "reads", *other.name),
              "report the plan file: this is a fault of alpa-train");
}

void RaceWatch::touch(std::int64_t begin, std::int64_t end, bool writes) {
  split_at(begin);
  split_at(end);
  for (std::int64_t at = begin; at < end;) {
    auto found = bytes_.lower_bound(at);
    const std::int64_t known = found == bytes_.end() ? end : std::min(found->first, end);
    if (known > at) found = bytes_.emplace(at, Bytes{known, {}, {}}).first;
    Bytes& bytes = found->second;
    check(bytes.written, writes);
    if (writes) {
      for (const Use& reader : bytes.read) check(reader, writes);
      bytes.read.clear();
      bytes.written = now_;
    } else if (const auto same = std::ranges::find(bytes.read, now_.lane, &Use::lane);
               same != bytes.read.end()) {
      *same = now_;
    } else {
      bytes.read.push_back(now_);
    }
    at = bytes.end;
  }
}

}  // namespace alpa
