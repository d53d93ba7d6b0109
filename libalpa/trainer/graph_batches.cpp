#include "libalpa/trainer/graph_batches.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <map>

#include "libalpa/base/error.h"
#include "libalpa/dataset/graph_statistics.h"

namespace alpa {
namespace {

GraphStatistics sizes_of(const GraphSource& source) {
  std::map<std::int64_t, std::int64_t> counts;
  for (std::int64_t i = 0; i < source.samples(); ++i) ++counts[source.vertices(i)];
  GraphStatistics statistics;
  for (const auto& [size, samples] : counts) {
    statistics.sizes.push_back(size);
    statistics.samples_by_size.push_back(samples);
  }
  return statistics;
}

/// A group of samples.
struct GroupSize {
  std::int64_t vertices = 0, largest_sample = 0;
};

/// The group of the run with the most vertices, in training and in evaluations.
GroupSize most_of_run(const GraphSource& source, const SampleOrder& order, std::int64_t group,
                      std::int64_t samples) {
  GroupSize most;
  const auto look_through = [&](Split split, std::int64_t count) {
    for (std::int64_t first = 0; first < count; first += group) {
      GroupSize size{0, order.window_start(split, first)};
      for (std::int64_t i = first; i < first + group; ++i) {
        const std::int64_t sample = order.window_start(split, i);
        size.vertices += source.vertices(sample);
        if (source.vertices(sample) > source.vertices(size.largest_sample)) size.largest_sample = sample;
      }
      if (size.vertices > most.vertices) most = size;
    }
  };
  if (order.windows(Split::training) > 0) look_through(Split::training, samples);
  const std::int64_t held_out = order.windows(Split::held_out);  // evaluations take whole batches
  if (held_out > 0) look_through(Split::held_out, held_out - held_out % group);
  return most;
}

/// Where not all orders of the samples fit, that of the run has to. What that takes is known before the first
/// step, and said.
void check_room(const GraphSource& source, const SampleOrder& order, const GraphRoom& room,
                std::int64_t samples) {
  constexpr std::int64_t kMostLookedThrough = 100'000'000;  // some seconds
  const std::int64_t fit = room.group * room.vertices, most = sizes_of(source).largest_in_run(room.group);
  if (most <= fit) return;
  const auto per_sample = [&](std::int64_t vertices) { return (vertices + room.group - 1) / room.group; };
  const std::string has = fmt::format(
      "and the model has room for {} ([graphs] vertices = {}, [training] "
      "group_samples = {})",
      fit, room.vertices, room.group);
  if (samples > kMostLookedThrough && order.windows(Split::training) > 0)
    throw Error(ErrorKind::input,
                fmt::format("{}: {} samples that may come together have {} vertices, {}",
                            source.description(), room.group, most, has),
                fmt::format("[graphs] vertices = {}", per_sample(most)));
  const GroupSize of_run = most_of_run(source, order, room.group, samples);
  if (of_run.vertices <= fit) return;
  throw Error(
      ErrorKind::input,
      fmt::format("{}: {} samples that come together in this run have {} vertices, {}; the largest of "
                  "them, sample {}, has {}",
                  source.description(), room.group, of_run.vertices, has, of_run.largest_sample,
                  source.vertices(of_run.largest_sample)),
      fmt::format("[graphs] vertices = {} for this run, {} for any order of its samples",
                  per_sample(of_run.vertices), per_sample(most)));
}

}  // namespace

GraphBatches::GraphBatches(GraphSource& source, const SampleOrder& order, const GraphRoom& room,
                           BatchingPolicy policy, std::int64_t samples)
    : BatchReader(order),
      source_(source),
      room_(room),
      policy_(policy),
      graphs_(static_cast<std::size_t>(room.group)) {
  check_room(source, order, room, samples);
  for (const VertexGraph& graph : graphs_) packed_.push_back(&graph);
  const auto rows = static_cast<std::size_t>(room.group * room.vertices);
  tokens_.resize(rows);
  labels_.resize(rows);
  structure_.resize(rows * (static_cast<std::size_t>(room.children) + 1));
}

std::int64_t GraphBatches::held_bytes() const {
  // The group's graphs, the packer's scratch (agenda) and what is packed: of each row so many numbers.
  const std::int64_t of_graphs = 3 + room_.children, of_scratch = 9 + room_.children,
                     packed = 3 + room_.children;
  return source_.held_bytes() + 4 * room_.group * room_.vertices * (of_graphs + of_scratch + packed);
}

void GraphBatches::pack(Split split, std::int64_t first_sample) {
  for (std::size_t i = 0; i < graphs_.size(); ++i)
    source_.read(order().window_start(split, first_sample + static_cast<std::int64_t>(i)), graphs_[i]);
  packer_.pack(packed_, policy_, static_cast<int>(room_.children), {tokens_, labels_, structure_});
}

void GraphBatches::fill(Split split, std::int64_t first_sample, const StepSamples& samples,
                        std::span<const std::span<std::byte>> into) {
  assert(into.size() == 3 && samples.size() == 3 && "tokens, labels and structure");
  const std::array<std::span<const std::int32_t>, 3> made{tokens_, labels_, structure_};
  std::int64_t begin = samples[0].micro_batch_samples, end = 0;
  for (const InputSamples& own : samples)
    if (own.rows > 0) {
      begin = std::min(begin, own.first_row);
      end = std::max(end, own.first_row + own.rows);
    }
  for (std::int64_t m = 0; m < samples[0].micro_batches; ++m)
    for (std::int64_t group = begin / room_.group * room_.group; group < end; group += room_.group) {
      pack(split, first_sample + m * samples[0].micro_batch_samples + group);
      for (std::size_t input = 0; input < into.size(); ++input) {
        const InputSamples& own = samples[input];
        const std::int64_t from = std::max(group, own.first_row),
                           to = std::min(group + room_.group, own.first_row + own.rows);
        if (from >= to) continue;
        const std::span<const std::byte> rows =
            std::as_bytes(made[input])
                .subspan(static_cast<std::size_t>((from - group) * own.row_bytes),
                         static_cast<std::size_t>((to - from) * own.row_bytes));
        std::ranges::copy(rows, into[input].begin() + (m * own.rows + from - own.first_row) * own.row_bytes);
      }
    }
}

std::int64_t GraphBatches::target_count(Split split, std::int64_t first_sample, std::int64_t samples) const {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < samples; ++i)
    count += source_.labelled(order().window_start(split, first_sample + i));
  return std::max<std::int64_t>(count, 1);
}

void GraphBatches::count_group_rows(Split split, std::int64_t first_sample, std::int64_t samples,
                                    std::vector<std::int32_t>& into) const {
  into.assign(static_cast<std::size_t>(samples / room_.group), 0);
  for (std::int64_t i = 0; i < samples; ++i)
    into[static_cast<std::size_t>(i / room_.group)] +=
        source_.vertices(order().window_start(split, first_sample + i));
}

}  // namespace alpa
