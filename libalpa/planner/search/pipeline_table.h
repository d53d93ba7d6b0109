#pragma once
#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include "libalpa/base/parallel_tasks.h"

namespace alpa {

/// Which stages a pipeline may have. `left`: stages that are left, the stage itself among them; 0: any.
template <class T>
concept PipelineStages = requires(const T& stages, int n, std::size_t size) {
  { stages.layers() } -> std::convertible_to<int>;
  { stages.devices() } -> std::convertible_to<int>;
  { stages.sizes() } -> std::convertible_to<const std::vector<int>&>;
  { stages.most_stages() } -> std::convertible_to<int>;
  { stages.last_end(n, size) } -> std::convertible_to<int>;       // first layer: none ends later
  { stages.allows(n, n, n, size) } -> std::convertible_to<bool>;  // left, first layer, end layer
};

/// [first layer] The fewest devices for so many stages, the last of all; more than there are: there are none.
using FewestDevices = std::vector<int>;

FewestDevices inline none_left(const PipelineStages auto& stages) {
  FewestDevices fewest(static_cast<std::size_t>(stages.layers()) + 1, stages.devices() + 1);
  fewest.back() = 0;
  return fewest;
}

/// With another one before those: `left` in all.
FewestDevices with_one_more(const PipelineStages auto& stages, int left, const FewestDevices& after) {
  FewestDevices fewest(after.size(), stages.devices() + 1);
  for (int first = 0; first + left <= stages.layers(); ++first)
    for (std::size_t s = 0; s < stages.sizes().size(); ++s)
      for (int end = first + 1; end <= stages.last_end(first, s); ++end) {
        const int devices = stages.sizes()[s] + after[end];
        if (devices < fewest[first] && stages.allows(left, first, end, s)) fewest[first] = devices;
      }
  return fewest;
}

/// [layer] The fewest devices for all layers before it, in any number of stages.
FewestDevices fewest_before(const PipelineStages auto& stages) {
  FewestDevices fewest(static_cast<std::size_t>(stages.layers()) + 1, stages.devices() + 1);
  fewest[0] = 0;
  for (int first = 0; first < stages.layers(); ++first)
    for (std::size_t s = 0; s < stages.sizes().size(); ++s)
      for (int end = first + 1; end <= stages.last_end(first, s); ++end)
        if (stages.allows(0, first, end, s))
          fewest[end] = std::min(fewest[end], fewest[first] + stages.sizes()[s]);
  return fewest;
}

/// How a table is filled.
struct FillOptions {
  int threads = 1;
  std::function<bool()> stops = {};  ///< says so once it is to end with what it has; may be empty
  bool stopped() const { return stops && stops(); }
};

/// An entry for every end that a pipeline on all devices may have: for so many stages from one layer on, on
/// so many devices. Between the fewest devices for these and the fewest for what comes before, few need be
/// looked at where few can be spared. `Entry::empty()`: there is no such pipeline.
template <class Entry>
class PipelineTable {
 public:
  /// From the last stages on. `nothing` is the entry of no stages; `before(left, first, end, size)` returns
  /// what makes an entry of a stage on the first of so many devices and an entry of all behind it:
  /// (devices, const Entry& after, Entry& with), on any of the threads.
  void fill(const PipelineStages auto& stages, const Entry& nothing, const FillOptions& options,
            const auto& before) {
    unit_ = stages.devices();
    for (const int size : stages.sizes()) unit_ = std::gcd(unit_, size);
    const FewestDevices others = fewest_before(stages);
    FewestDevices fewest = none_left(stages);
    const bool is_small = stages.layers() * (stages.devices() / unit_) < kWorthThreads;
    rows_.assign(1, std::vector<Row>(fewest.size()));
    rows_[0].back() = {0, {nothing}};
    for (int left = 1; left <= stages.most_stages() && !options.stopped(); ++left) {
      fewest = with_one_more(stages, left, fewest);
      rows_.emplace_back(fewest.size());
      run_tasks(stages.layers() - left + 1, is_small ? 1 : options.threads, [&](int first) {
        const int most = first == 0 ? stages.devices() : stages.devices() - others[first];
        const int least = first == 0 ? stages.devices() : fewest[first];
        if (fewest[first] <= most && !options.stopped()) fill_row(stages, left, first, least, most, before);
      });
    }
  }

  /// Null: there is none.
  const Entry* at(int left, int first, int devices) const {
    if (left >= std::ssize(rows_)) return nullptr;
    const Row& row = rows_[left][first];
    const int place = (devices - row.least) / unit_;
    return devices < row.least || place >= std::ssize(row.entries) ? nullptr : &row.entries[place];
  }

 private:
  /// Entries of a number of stages: fewer take less time than threads do.
  static constexpr int kWorthThreads = 1000;

  /// Of so many stages from one layer on, by their devices.
  struct Row {
    int least = 0;
    std::vector<Entry> entries;  ///< by unit_ apart
  };

  void fill_row(const PipelineStages auto& stages, int left, int first, int least, int most,
                const auto& before) {
    Row& row = rows_[left][first];
    row.least = least;
    row.entries.resize(static_cast<std::size_t>((most - least) / unit_ + 1));
    for (std::size_t s = 0; s < stages.sizes().size(); ++s) {
      const int size = stages.sizes()[s];
      for (int end = first + 1; end <= stages.last_end(first, s); ++end) {
        const Row& after = rows_[left - 1][end];
        if (after.entries.empty() || !stages.allows(left, first, end, s)) continue;
        const auto with = before(left, first, end, s);
        const int last =
            std::min(most, size + after.least + unit_ * static_cast<int>(std::ssize(after.entries) - 1));
        for (int devices = std::max(least, size + after.least); devices <= last; devices += unit_)
          if (const Entry& rest = after.entries[(devices - size - after.least) / unit_]; !rest.empty())
            with(devices, rest, row.entries[(devices - least) / unit_]);
      }
    }
    trim(row);
  }

  /// Most rows have few entries that are not empty, next to each other.
  void trim(Row& row) const {
    const auto first = std::ranges::find_if(row.entries, [](const Entry& each) { return !each.empty(); });
    const auto last = std::find_if(row.entries.rbegin(), std::make_reverse_iterator(first),
                                   [](const Entry& each) { return !each.empty(); });
    row.least += unit_ * static_cast<int>(first - row.entries.begin());
    row.entries = std::vector<Entry>(std::make_move_iterator(first), std::make_move_iterator(last.base()));
  }

  int unit_ = 1;                        ///< devices that stages have a multiple of
  std::vector<std::vector<Row>> rows_;  ///< [stages left][first layer]
};

}  // namespace alpa
