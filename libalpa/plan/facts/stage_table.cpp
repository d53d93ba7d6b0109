#include "libalpa/plan/facts/stage_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "libalpa/base/text_table.h"
#include "libalpa/base/units.h"

namespace alpa {
namespace {

constexpr std::size_t kMostGroups = 10;
using Cells = std::vector<std::string>;

/// Neighbours of which a line says the same, but for figures, which become ranges.
bool are_alike(const StageFacts& a, const StageFacts& b) {
  return a.layers() == b.layers() && a.devices() == b.devices() && a.has_figures == b.has_figures &&
         recomputed_layers_text(a.plan) == recomputed_layers_text(b.plan) && a.split.text() == b.split.text();
}

/// "3.20 GiB", "3.20 GiB .. 4.10 GiB"
template <class Words>
std::string range_text(double least, double most, Words words) {
  const std::string from = words(least), to = words(most);
  return from == to ? from : from + " .. " + to;
}

Cells cells_of(std::span<const StageFacts> group, const Cluster& cluster) {
  const StageFacts &first = group.front(), &last = group.back();
  const bool alone = group.size() == 1;
  Cells cells(7);
  cells[0] = alone ? fmt::format("{}", first.stage) : fmt::format("{} - {}", first.stage, last.stage);
  const std::string& begin = first.first_layer;
  const std::string& end = last.last_layer;
  cells[1] = fmt::format("{}{}: {}", first.layers(), alone ? "" : " each",
                         begin == end ? begin : begin + " .. " + end);
  const int first_device = first.mesh.first_device, last_device = last.mesh.first_device + last.devices() - 1;
  cells[2] = fmt::format("{}{}: {}", first.devices(), alone ? "" : " each",
                         first_device == last_device ? fmt::format("{}", first_device)
                                                     : fmt::format("{} - {}", first_device, last_device));
  cells[3] = first.split.text();
  cells[4] = recomputed_layers_text(first.plan);
  if (!first.has_figures) {
    cells[5] = first.figures_at == first.stage ? "" : fmt::format("as stage {}", first.figures_at);
    return cells;
  }
  const auto extremes = [&](auto figure) {
    const auto [least, most] = std::ranges::minmax(group, {}, figure);
    return std::pair{figure(least), figure(most)};
  };
  const auto [least, most] =
      extremes([](const StageFacts& s) { return static_cast<double>(s.figures.memory.total); });
  const double all = static_cast<double>(cluster.memory_bytes) / 100;
  cells[5] = fmt::format(
      "{} ({} %)", range_text(least, most, [](double bytes) { return bytes_text(bytes); }),
      range_text(least / all, most / all, [](double share) { return fmt::format("{:.0f}", share); }));
  const auto [shortest, longest] = extremes([](const StageFacts& s) {
    return s.figures.compute_s + s.figures.collective_s + s.figures.transfer_s;
  });
  cells[6] = range_text(shortest, longest, [](double s) { return seconds_text(s); });
  return cells;
}

}  // namespace

std::string stage_table(const PlanFacts& facts) {
  std::vector<Cells> lines{{"stage", "layers", "devices", "split", "recompute",
                            fmt::format("memory of {} per device", bytes_text(facts.cluster.memory_bytes)),
                            "work"}};
  const std::span<const StageFacts> stages = facts.stages;
  std::size_t begin = 0;
  while (begin < stages.size() && lines.size() <= kMostGroups) {
    std::size_t end = begin + 1;
    while (end < stages.size() && are_alike(stages[begin], stages[end])) ++end;
    lines.push_back(cells_of(stages.subspan(begin, end - begin), facts.cluster));
    begin = end;
  }
  std::string text = text_table(lines);
  if (begin < stages.size())
    text += fmt::format("and {} more (--full)\n", count_text(std::ssize(stages) - begin, "stage"));
  return text;
}

}  // namespace alpa
