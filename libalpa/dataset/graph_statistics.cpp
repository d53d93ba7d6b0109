#include "libalpa/dataset/graph_statistics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>

#include "libalpa/base/checked.h"
#include "libalpa/base/error.h"
#include "libalpa/dataset/graph_formats.h"
#include "libalpa/h5/rows.h"
#include "libalpa/h5/rows_writer.h"

namespace alpa {
namespace {

constexpr const char* vertices_by_height_path = "/statistics/vertices_by_height";
constexpr const char* samples_by_height_path = "/statistics/samples_by_height";
constexpr const char* sizes_path = "/statistics/sizes";
constexpr const char* samples_by_size_path = "/statistics/samples_by_size";
constexpr const char* labelled_path = "/statistics/labelled";
constexpr const char* leave_out_statistics =
    "leave out the group /statistics, which is then computed, or convert the data again";

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// The sum of a[i] * b[i]; nothing where it is no number of vertices that there can be.
std::optional<std::int64_t> checked_dot(const std::vector<std::int64_t>& a,
                                        const std::vector<std::int64_t>& b) {
  std::optional<std::int64_t> sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum = checked_sum(sum, checked_product(a[i], b[i]));
  return sum && *sum <= kMostElements ? sum : std::nullopt;
}

std::optional<std::int64_t> checked_total(const std::vector<std::int64_t>& values) {
  return checked_dot(values, std::vector<std::int64_t>(values.size(), 1));
}

H5Rows open_statistics_column(const std::filesystem::path& path, const char* dataset) {
  H5Rows rows(path, dataset, leave_out_statistics);
  if (!rows.is_integer() || rows.extent().size() != 1) throw rows.error("expected one dimension of integers");
  return rows;
}

/// A column of counts, none of which is negative.
std::vector<std::int64_t> counts_of(const H5Rows& rows) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rows.extent()[0]));
  rows.read(0, std::ssize(counts), counts.data());
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < 0) throw rows.error(fmt::format("element {} is {}, expected a count", i, counts[i]));
  return counts;
}

}  // namespace

std::int64_t GraphStatistics::samples() const { return sum_of(samples_by_size); }
std::int64_t GraphStatistics::vertices() const { return sum_of(vertices_by_height); }
std::int64_t GraphStatistics::most_vertices() const { return sizes.empty() ? 0 : sizes.back(); }

double GraphStatistics::mean_vertices() const {
  return static_cast<double>(vertices()) / static_cast<double>(std::max<std::int64_t>(samples(), 1));
}

double GraphStatistics::mean_height() const {
  double sum = 0;
  for (std::size_t height = 0; height < samples_by_height.size(); ++height)
    sum += static_cast<double>(height) * static_cast<double>(samples_by_height[height]);
  return sum / static_cast<double>(std::max<std::int64_t>(samples(), 1));
}

double GraphStatistics::level_share(std::int64_t height) const {
  if (height < 0 || height > greatest_height()) return 0;
  return static_cast<double>(vertices_by_height[height]) / static_cast<double>(vertices());
}

double GraphStatistics::mean_rounds(std::int64_t group) const {
  double rounds = samples_by_height.empty() ? 0 : 1;
  std::int64_t as_low = 0;  // samples of no greater height
  for (const std::int64_t count : samples_by_height) {
    as_low += count;
    const double share = static_cast<double>(as_low) / static_cast<double>(samples());
    rounds += 1 - std::pow(share, static_cast<double>(group));
  }
  return rounds;
}

std::int64_t GraphStatistics::largest(std::int64_t group) const {
  const std::int64_t all = samples();
  if (all == 0) return 0;
  std::int64_t sum = group / all * vertices(), left = group % all;
  for (std::size_t i = sizes.size(); i-- > 0 && left > 0;) {
    const std::int64_t taken = std::min(left, samples_by_size[i]);
    sum += taken * sizes[i];
    left -= taken;
  }
  return sum;
}

std::int64_t GraphStatistics::largest_in_run(std::int64_t group) const {
  // The more samples of one epoch are taken, the less each adds, so two halves have the most.
  const auto of_two_epochs = [&](std::int64_t count) {
    return largest(count / 2) + largest(count - count / 2);
  };
  const std::int64_t all = samples();
  if (all == 0 || group <= all) return of_two_epochs(group);
  return group / all * of_two_epochs(all) + of_two_epochs(group % all);
}

void GraphCounts::add(const VertexGraph& graph) {
  heights_.resize(static_cast<std::size_t>(graph.vertices()));
  const std::int32_t greatest = find_heights(graph, heights_);
  if (greatest > so_far_.greatest_height()) {
    so_far_.vertices_by_height.resize(static_cast<std::size_t>(greatest) + 1);
    so_far_.samples_by_height.resize(static_cast<std::size_t>(greatest) + 1);
  }
  for (const std::int32_t height : heights_) ++so_far_.vertices_by_height[height];
  ++so_far_.samples_by_height[greatest];
  ++samples_by_size_[graph.vertices()];
  so_far_.labelled += std::ranges::count_if(graph.labels, [](std::int32_t label) { return label >= 0; });
}

GraphStatistics GraphCounts::statistics() const {
  GraphStatistics statistics = so_far_;
  for (const auto& [size, samples] : samples_by_size_) {
    statistics.sizes.push_back(size);
    statistics.samples_by_size.push_back(samples);
  }
  return statistics;
}

GraphStatistics graph_statistics(GraphSource& source) {
  GraphCounts counts;
  VertexGraph graph;
  for (std::int64_t sample = 0; sample < source.samples(); ++sample) {
    source.read(sample, graph);
    counts.add(graph);
  }
  return counts.statistics();
}

GraphStatistics size_statistics(const GraphSource& source) {
  std::map<std::int64_t, std::int64_t> counts;
  for (std::int64_t i = 0; i < source.samples(); ++i) ++counts[source.vertices(i)];
  GraphStatistics statistics;
  for (const auto& [size, samples] : counts) {
    statistics.sizes.push_back(size);
    statistics.samples_by_size.push_back(samples);
  }
  return statistics;
}

std::int64_t largest_group(const GraphSource& source, std::int64_t group, BatchingPolicy policy) {
  const GraphStatistics sizes = size_statistics(source);
  return policy == BatchingPolicy::padded ? group * sizes.most_vertices() : sizes.largest_in_run(group);
}

void write_statistics(H5RowsWriter& file, const GraphStatistics& statistics) {
  assert(statistics.samples() > 0);
  file.column(vertices_by_height_path, statistics.vertices_by_height);
  file.column(samples_by_height_path, statistics.samples_by_height);
  file.column(sizes_path, statistics.sizes);
  file.column(samples_by_size_path, statistics.samples_by_size);
  file.column(labelled_path, std::span(&statistics.labelled, 1));
  const auto attribute = [&](const char* name, auto value) { file.attribute("/statistics", name, value); };
  attribute("samples", statistics.samples());
  attribute("vertices", statistics.vertices());
  attribute("most_vertices", statistics.most_vertices());
  attribute("mean_vertices", statistics.mean_vertices());
  attribute("leaves", statistics.leaves());
  attribute("greatest_height", statistics.greatest_height());
  attribute("mean_height", statistics.mean_height());
}

std::optional<GraphStatistics> stored_statistics(const std::filesystem::path& path) {
  if (!has_dataset(path, sizes_path)) return std::nullopt;
  GraphStatistics statistics;
  statistics.vertices_by_height = counts_of(open_statistics_column(path, vertices_by_height_path));
  const H5Rows by_height = open_statistics_column(path, samples_by_height_path);
  statistics.samples_by_height = counts_of(by_height);
  const H5Rows sizes = open_statistics_column(path, sizes_path);
  statistics.sizes = counts_of(sizes);
  const H5Rows by_size = open_statistics_column(path, samples_by_size_path);
  statistics.samples_by_size = counts_of(by_size);
  const H5Rows labelled = open_statistics_column(path, labelled_path);
  if (labelled.extent()[0] != 1) throw labelled.error("expected one count");
  statistics.labelled = counts_of(labelled)[0];

  if (statistics.samples_by_height.size() != statistics.vertices_by_height.size())
    throw by_height.error(fmt::format("has {} heights, but '{}' has {}", statistics.samples_by_height.size(),
                                      vertices_by_height_path, statistics.vertices_by_height.size()));
  if (statistics.samples_by_size.size() != statistics.sizes.size())
    throw by_size.error(fmt::format("has {} sizes, but '{}' has {}", statistics.samples_by_size.size(),
                                    sizes_path, statistics.sizes.size()));
  if (statistics.sizes.empty() || statistics.sizes.front() < 1 ||
      !std::ranges::is_sorted(statistics.sizes, std::less_equal<>()))
    throw sizes.error("expected ascending numbers of vertices, from 1 on");
  const auto samples = checked_total(statistics.samples_by_size);
  if (!samples || *samples < 1 || samples != checked_total(statistics.samples_by_height))
    throw by_size.error(fmt::format("expected as many samples as '{}' has", samples_by_height_path));
  const auto vertices = checked_dot(statistics.sizes, statistics.samples_by_size);
  if (!vertices || vertices != checked_total(statistics.vertices_by_height) ||
      statistics.labelled > *vertices)
    throw sizes.error(fmt::format("expected as many vertices as '{}' has", vertices_by_height_path));
  return statistics;
}

GraphStatistics statistics_of_data(const std::string& data, const GraphLimits& limits) {
  if (!names_drawn_graphs(data))
    if (auto stored = stored_statistics(data)) return *std::move(stored);
  return graph_statistics(*open_graphs(data, limits));
}

}  // namespace alpa
