#include "libalpa/runtime/gather_timeline.h"

#include <array>
#include <cstdint>
#include <type_traits>

namespace alpa {
namespace {

/// What comes before the rows of a rank.
struct RowsHeader {
  std::int64_t count = 0;
  std::array<char, 64> host = {};  ///< longer names are cut
};
// Both are sent as their bytes: all ranks run one executable.
static_assert(std::is_trivially_copyable_v<RowsHeader> && std::is_trivially_copyable_v<TimelineRow>);

constexpr std::int64_t kBytesOfRow = sizeof(TimelineRow);

}  // namespace

std::vector<RankRows> gather_timeline(const Executor& executor, const std::vector<DeviceIndex>& ranks,
                                      const std::string& host, Communicator& communicator, Stream& stream) {
  std::vector<RankRows> all;
  for (const DeviceIndex from : ranks) {
    const bool is_first = communicator.rank() == 0;
    if (communicator.rank() == from && is_first) all.push_back({from, host, executor.timeline()});
    if (communicator.rank() == from && !is_first) {
      std::vector<TimelineRow> rows = executor.timeline();
      RowsHeader header{std::ssize(rows)};
      host.copy(header.host.data(), header.host.size() - 1);
      communicator.send(stream, &header, sizeof header, 0);
      communicator.send(stream, rows.data(), header.count * kBytesOfRow, 0);
      communicator.wait_sends(stream);
    }
    if (!is_first || from == 0) continue;
    RowsHeader header;
    communicator.receive(stream, &header, sizeof header, from);
    RankRows& received = all.emplace_back(RankRows{from, header.host.data(), {}});
    received.rows.resize(static_cast<std::size_t>(header.count));
    communicator.receive(stream, received.rows.data(), header.count * kBytesOfRow, from);
  }
  return all;
}

}  // namespace alpa
