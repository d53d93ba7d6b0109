#include "libalpa/plan/facts/facts_difference.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "libalpa/base/text_table.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/facts/mesh_columns.h"

namespace alpa {
namespace {

using Figure = FactsDifference::Figure;

Figure figure_of_seconds(const std::string& title, const std::string& name, double first, double second) {
  return {title, name, "s", seconds_text(first), seconds_text(second), first, second};
}
Figure figure_of_bytes(const std::string& title, const std::string& name, std::int64_t first,
                       std::int64_t second) {
  const auto a = static_cast<double>(first), b = static_cast<double>(second);
  return {title, name, "B", bytes_text(first), bytes_text(second), a, b};
}
Figure figure_of_count(const std::string& title, const std::string& name, std::int64_t first,
                       std::int64_t second) {
  const auto a = static_cast<double>(first), b = static_cast<double>(second);
  return {title, name, "", std::to_string(first), std::to_string(second), a, b};
}
Figure figure_of_words(const std::string& name, const std::string& first, const std::string& second) {
  return {name, name, "", first, second, std::nan(""), std::nan("")};
}

/// Of the fullest device.
MemoryUse fullest_memory(const PlanFacts& facts) {
  MemoryUse most;
  for (const StageFacts& stage : facts.stages)
    if (stage.has_figures && stage.figures.memory.total > most.total) most = stage.figures.memory;
  return most;
}

/// By name and type: the layouts of all stages, each once.
std::map<std::pair<std::string, std::string>, std::string> layouts_of(const PlanFacts& facts) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> all;
  for (const StageFacts& stage : facts.stages)
    for (const ParameterGroup& group : stage.tensors.parameters) {
      std::vector<std::string>& of = all[{group.name, group.type}];
      if (std::ranges::find(of, group.layout) == of.end()) of.push_back(group.layout);
    }
  std::map<std::pair<std::string, std::string>, std::string> joined;
  for (const auto& [name, layouts] : all) joined[name] = fmt::format("{}", fmt::join(layouts, "; "));
  return joined;
}

std::string change_text(const Figure& figure) {
  if (std::isnan(figure.first_number)) return figure.first == figure.second ? "the same" : "";
  if (figure.first_number == figure.second_number) return "the same";
  if (figure.first_number == 0) return "";
  return fmt::format("{:+.1f} %", 100 * (figure.second_number / figure.first_number - 1));
}

Cell cell_of(const std::string& words, double number) {
  return std::isnan(number) ? Cell(words) : Cell(number);
}

std::span<const Column<Figure>> figure_columns() {
  static const std::vector<Column<Figure>> columns{
      {"figure", [](const Figure& f) { return Cell(f.name); }},
      {"unit", [](const Figure& f) { return Cell(f.unit); }},
      {"first", [](const Figure& f) { return cell_of(f.first, f.first_number); }},
      {"second", [](const Figure& f) { return cell_of(f.second, f.second_number); }}};
  return columns;
}

}  // namespace

FactsDifference facts_difference(const PlanFacts& a, const PlanFacts& b) {
  FactsDifference difference;
  const MemoryUse first = fullest_memory(a), second = fullest_memory(b);
  const auto samples = [](const PlanFacts& facts) { return facts.micro_batches * facts.micro_batch_samples; };
  std::vector<Figure>& figures = difference.figures;
  figures.push_back(figure_of_seconds("step", "step_s", a.prediction.step_s, b.prediction.step_s));
  for (const TimeColumn& time : kTimeColumns)
    figures.push_back(figure_of_seconds(std::string("  ") + time.word, time.name, a.mean.*time.seconds,
                                        b.mean.*time.seconds));
  figures.push_back(figure_of_bytes("memory of the fullest device", kTotalMemory.name,
                                    first.*kTotalMemory.bytes, second.*kTotalMemory.bytes));
  for (const MemoryColumn& kind : kMemoryColumns)
    figures.push_back(
        figure_of_bytes(std::string("  ") + kind.word, kind.name, first.*kind.bytes, second.*kind.bytes));
  figures.insert(
      figures.end(),
      {figure_of_count("samples of a step", "step_samples", samples(a), samples(b)),
       figure_of_count("devices", "devices", a.devices, b.devices),
       figure_of_words("split", a.split, b.split),
       figure_of_count("stages", "stages", std::ssize(a.stages), std::ssize(b.stages)),
       figure_of_count("micro-batches", "micro_batches", a.micro_batches, b.micro_batches),
       figure_of_words("schedule", a.schedule, b.schedule), figure_of_words("overlap", a.overlap, b.overlap),
       figure_of_words("costs", a.costs(), b.costs()), figure_of_words("method", a.method, b.method)});
  const auto of_first = layouts_of(a), of_second = layouts_of(b);
  for (const auto& [name, layout] : of_first) {
    const auto other = of_second.find(name);
    const std::string in_second = other == of_second.end() ? "" : other->second;
    if (layout == in_second)
      ++difference.same_layouts;
    else
      difference.layouts.push_back({name.first, name.second, layout, in_second});
  }
  for (const auto& [name, layout] : of_second)
    if (!of_first.contains(name)) difference.layouts.push_back({name.first, name.second, "", layout});
  return difference;
}

std::string difference_text(const FactsDifference& difference, const std::string& first,
                            const std::string& second) {
  std::vector<std::vector<std::string>> rows{{"", first, second, "change"}};
  for (const Figure& each : difference.figures)
    rows.push_back({each.title, each.first, each.second, change_text(each)});
  std::string text = text_table(rows, {3});
  text += fmt::format("\nparameters laid out differently: {}; the same: {}\n", difference.layouts.size(),
                      difference.same_layouts);
  rows.clear();
  const auto shown = [](const std::string& layout) { return layout.empty() ? "not there" : layout; };
  for (const FactsDifference::Layout& each : difference.layouts)
    rows.push_back({"  " + each.parameter, each.type, shown(each.first), shown(each.second)});
  return text + text_table(rows);
}

JsonObject difference_json(const FactsDifference& difference) {
  JsonArray figures, layouts;
  for (const Figure& each : difference.figures) figures.add(json_of(figure_columns(), each));
  for (const FactsDifference::Layout& each : difference.layouts)
    layouts.add(JsonObject()
                    .set("parameter", each.parameter)
                    .set("type", each.type)
                    .set("first", each.first)
                    .set("second", each.second));
  return JsonObject()
      .set("format", "alpa-plan-compare")
      .set("format_version", "1.0")
      .set("figures", figures)
      .set("layouts", layouts)
      .set("same_layouts", difference.same_layouts);
}

std::string difference_csv(const FactsDifference& difference) {
  std::vector<Figure> rows = difference.figures;
  for (const FactsDifference::Layout& each : difference.layouts)
    rows.push_back(
        figure_of_words(fmt::format("layout of {} {}", each.parameter, each.type), each.first, each.second));
  return csv_table(figure_columns(), rows);
}

}  // namespace alpa
