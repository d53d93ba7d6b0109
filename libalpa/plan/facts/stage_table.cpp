#include "libalpa/plan/facts/stage_table.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

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
         a.parts == b.parts && recomputed_layers_text(a.plan) == recomputed_layers_text(b.plan) &&
         a.split.text() == b.split.text();
}

/// "3.20 GiB", "3.20 GiB .. 4.10 GiB"
template <class Words>
std::string range_text(double least, double most, Words words) {
  const std::string from = words(least), to = words(most);
  return from == to ? from : from + " .. " + to;
}

Cells cells_of(std::span<const StageFacts> group) {
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
  if (!first.parts.empty()) cells[2] += fmt::format(" ({})", fmt::join(first.parts, " + "));
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
  const double all = static_cast<double>(first.device_memory_bytes) / 100;
  const std::string of = first.parts.empty() ? "" : " of " + bytes_text(first.device_memory_bytes);
  cells[5] = fmt::format(
      "{}{} ({} %)", range_text(least, most, [](double bytes) { return bytes_text(bytes); }), of,
      range_text(least / all, most / all, [](double share) { return fmt::format("{:.0f}", share); }));
  const auto [shortest, longest] = extremes([](const StageFacts& s) {
    return s.figures.compute_s + s.figures.collective_s + s.figures.transfer_s;
  });
  cells[6] = range_text(shortest, longest, [](double s) { return seconds_text(s); });
  return cells;
}

}  // namespace

std::string stage_table(const PlanFacts& facts) {
  const std::string of =
      facts.cluster.parts.empty() ? fmt::format(" of {}", bytes_text(facts.cluster.memory_bytes)) : "";
  std::vector<Cells> lines{
      {"stage", "layers", "devices", "split", "recompute/offload", "memory" + of + " per device", "work"}};
  const std::span<const StageFacts> stages = facts.stages;
  std::size_t begin = 0;
  while (begin < stages.size() && lines.size() <= kMostGroups) {
    std::size_t end = begin + 1;
    while (end < stages.size() && are_alike(stages[begin], stages[end])) ++end;
    lines.push_back(cells_of(stages.subspan(begin, end - begin)));
    begin = end;
  }
  std::string text = text_table(lines);
  if (begin < stages.size())
    text += fmt::format("and {} more (--full)\n", count_text(std::ssize(stages) - begin, "stage"));
  return text;
}

}  // namespace alpa
