#include "libalpa/trainer/graph_batches.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "libalpa/base/batching_policy.h"
#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/graph_statistics.h"
#include "libalpa/dataset/padded_chains.h"

namespace alpa {

GraphBatches::GraphBatches(GraphSource& source, const SampleOrder& order, const GraphRoom& room,
                           const GraphBatching& batching, const TrainingOptions& options, std::int64_t steps)
    : BatchReader(order),
      source_(source),
      room_(room),
      policy_(batching.policy.value_or(BatchingPolicy::frontier)),
      graphs_(static_cast<std::size_t>(room.group)) {
  if (policy_ == BatchingPolicy::padded) check_chains(source);
  if (batching.by_height) heights_.emplace(source);
  check_room((steps > 0 ? steps : options.steps) * options.batch, options.batch);
  for (const VertexGraph& graph : graphs_) packed_.push_back(&graph);
  const auto rows = static_cast<std::size_t>(room.rows());
  tokens_.resize(rows);
  labels_.resize(rows);
  structure_.resize(rows * (static_cast<std::size_t>(room.limits.children) + 1));
}

std::int64_t GraphBatches::held_bytes() const {
  // The group's graphs, the packer's scratch (agenda) and what is packed: of each row so many numbers.
  const std::int64_t children = room_.limits.children, of_graphs = 3 + children, of_scratch = 9 + children,
                     packed = 3 + children;
  return source_.held_bytes() + (heights_ ? heights_->held_bytes() : 0) +
         4 * room_.rows() * (of_graphs + of_scratch + packed);
}

void GraphBatches::arrange(Split split, std::int64_t first_sample, std::int64_t count, Arranged& into) const {
  into.samples.clear();
  for (std::int64_t i = 0; i < count; ++i)
    into.samples.push_back(order().window_start(split, first_sample + i));
  if (heights_) heights_->arrange(into.samples, room_.group, into.scratch);
}

GraphBatches::GroupSize GraphBatches::size_of(std::span<const std::int64_t> group) const {
  GroupSize size{0, group[0]};
  for (const std::int64_t sample : group) {
    size.rows += source_.vertices(sample);
    if (source_.vertices(sample) > source_.vertices(size.largest_sample)) size.largest_sample = sample;
  }
  if (policy_ == BatchingPolicy::padded)
    size.rows = source_.vertices(size.largest_sample) * std::ssize(group);
  return size;
}

/// The largest group of the run, in training and in evaluations.
GraphBatches::GroupSize GraphBatches::most_of_run(std::int64_t samples, std::int64_t batch) const {
  GroupSize most;
  Arranged step;
  const auto look_through = [&](Split split, std::int64_t count) {
    for (std::int64_t first = 0; first < count; first += batch) {
      arrange(split, first, batch, step);
      for (std::int64_t group = 0; group < batch; group += room_.group) {
        const GroupSize size = size_of(std::span(step.samples).subspan(group, room_.group));
        if (size.rows > most.rows) most = size;
      }
    }
  };
  if (order().windows(Split::training) > 0) look_through(Split::training, samples);
  const std::int64_t held_out = order().windows(Split::held_out);  // evaluations take whole batches
  if (held_out > 0) look_through(Split::held_out, held_out - held_out % batch);
  return most;
}

/// Where not all orders of the samples fit, that of the run has to. What that takes is known before the first
/// step, and said.
void GraphBatches::check_room(std::int64_t samples, std::int64_t batch) const {
  constexpr std::int64_t kMostLookedThrough = 100'000'000;  // some seconds
  const std::int64_t fit = room_.rows(), most = largest_group(source_, room_.group, policy_);
  if (most <= fit) return;
  const auto per_sample = [&](std::int64_t vertices) { return (vertices + room_.group - 1) / room_.group; };
  const std::string has = fmt::format(
      "and the model has room for {} ([graphs] vertices = {}, [training] "
      "group_samples = {})",
      fit, room_.vertices, room_.group);
  if (samples > kMostLookedThrough && order().windows(Split::training) > 0)
    throw Error(ErrorKind::input,
                fmt::format("{}: {} samples that may come together have {} vertices, {}",
                            source_.description(), room_.group, most, has),
                fmt::format("[graphs] vertices = {}", per_sample(most)));
  const GroupSize of_run = most_of_run(samples, batch);
  if (of_run.rows <= fit) return;
  throw Error(
      ErrorKind::input,
      fmt::format("{}: {} samples that come together in this run have {} vertices, {}; the largest of "
                  "them, sample {}, has {}",
                  source_.description(), room_.group, of_run.rows, has, of_run.largest_sample,
                  source_.vertices(of_run.largest_sample)),
      fmt::format("[graphs] vertices = {} for this run, {} for any order of its samples",
                  per_sample(of_run.rows), per_sample(most)));
}

std::string GraphBatches::description() const {
  return fmt::format("{}, of {} together by {}", source_.description(), count_text(room_.group, "sample"),
                     batching_name(policy_));
}

void GraphBatches::pack(std::span<const std::int64_t> group) {
  for (std::size_t i = 0; i < graphs_.size(); ++i) source_.read(group[i], graphs_[i]);
  if (policy_ == BatchingPolicy::padded) pad_chains(graphs_);
  packer_.pack(packed_, policy_, static_cast<int>(room_.limits.children), {tokens_, labels_, structure_});
}

void GraphBatches::fill(Split split, std::int64_t first_sample, const StepSamples& samples,
                        std::span<const std::span<std::byte>> into) {
  assert(into.size() == 3 && samples.size() == 3 && "tokens, labels and structure");
  const std::array<std::span<const std::int32_t>, 3> made{tokens_, labels_, structure_};
  const std::int64_t micro_batch = samples[0].micro_batch_samples;
  std::int64_t begin = micro_batch, end = 0;
  for (const InputSamples& own : samples)
    if (own.rows > 0) {
      begin = std::min(begin, own.first_row);
      end = std::max(end, own.first_row + own.rows);
    }
  arrange(split, first_sample, samples[0].micro_batches * micro_batch, filled_);
  for (std::int64_t m = 0; m < samples[0].micro_batches; ++m)
    for (std::int64_t group = begin / room_.group * room_.group; group < end; group += room_.group) {
      pack(std::span(filled_.samples).subspan(m * micro_batch + group, room_.group));
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
  arrange(split, first_sample, samples, counted_);
  into.clear();
  for (std::int64_t group = 0; group < samples; group += room_.group)
    into.push_back(
        static_cast<std::int32_t>(size_of(std::span(counted_.samples).subspan(group, room_.group)).rows));
}

}  // namespace alpa
