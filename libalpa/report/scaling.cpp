#include "libalpa/report/scaling.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "libalpa/base/text_table.h"
#include "libalpa/base/units.h"
#include "libalpa/report/page.h"

namespace alpa {
namespace {

bool has_prices(const Scaling& scaling) {
  return std::ranges::all_of(scaling.clusters, [](const ClusterScaling& c) { return c.price_per_hour > 0; });
}

/// The end of a message, behind its last colon: "50.81 GiB short".
std::string few_words(const std::string& lacks) {
  const std::size_t at = lacks.rfind(": ");
  return at == std::string::npos ? lacks : lacks.substr(at + 2);
}

/// "measured", "extrapolated, 12 operators estimated"
std::string costs_text(const ScalingRow& row) {
  return row.estimated_operators == 0
             ? row.costs
             : fmt::format("{}, {} estimated", row.costs, count_text(row.estimated_operators, "operator"));
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string rate_of(const Scaling& scaling, const ScalingRow& row) {
  const bool has_tokens = scaling.tokens > 0;
  const std::string text =
      rate_text(static_cast<double>(has_tokens ? scaling.tokens : scaling.batch) / row.step_s, "");
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string cluster_table(const Scaling& scaling, const ClusterScaling& c, const ScalingRow* chosen) {
  const bool has_price = c.price_per_hour > 0;
  std::vector<std::string> titles{"devices",    "step",         scaling.tokens > 0 ? "tokens/s" : "samples/s",
                                  "efficiency", "gap to bound", "memory per device"};
  if (has_price) titles.emplace_back("price of 1000 steps");
  if (!scaling.measured_on.empty()) titles.emplace_back("costs");
  titles.emplace_back("plan");
  std::vector<std::vector<std::string>> rows{titles};
  for (const ScalingRow& row : c.rows) {
    std::vector<std::string> cells{std::to_string(row.devices)};
    if (!row.fits()) {
      cells.resize(titles.size(), "-");
      cells.back() = "does not fit: " + few_words(row.lacks);
      rows.push_back(cells);
      continue;
    }
    for (const std::string& cell :
         {seconds_text(row.step_s), rate_of(scaling, row), percent(c.efficiency(row)),
          row.gap ? percent(*row.gap) : "-", bytes_text(row.memory_bytes)})
      cells.push_back(cell);
    if (has_price) cells.push_back(fmt::format("{:.2f}", c.price_per_1000_steps(row)));
    if (!scaling.measured_on.empty()) cells.push_back(costs_text(row));
    cells.push_back(row.split + (row.cut_short ? ", search cut short" : "") +
                    (&row == chosen ? "  <- cheapest for the target" : ""));
    rows.push_back(cells);
  }
  std::vector<std::size_t> numbers;
  for (std::size_t column = 0; column + 1 < titles.size(); ++column) numbers.push_back(column);
  return text_table(rows, numbers);
}

std::string target_text(const Scaling& scaling) {
  if (scaling.target_step_s == 0) return "";
  const std::string target = fmt::format("the target of {} a step", seconds_text(scaling.target_step_s));
  const std::optional<ScalingChoice> choice = cheapest(scaling);
  if (!choice) return fmt::format("\nnone reaches {}\n", target);
  const auto [cluster, row] = *choice;
  std::string text = fmt::format(
      "\n{} for {}: {} of '{}', {}, {} a step", has_prices(scaling) ? "cheapest" : "fewest devices", target,
      count_text(row->devices, "device"), cluster->cluster.name, row->split, seconds_text(row->step_s));
  const double all_steps = static_cast<double>(scaling.steps);
  if (scaling.steps > 0) text += fmt::format("; {} in all", seconds_text(all_steps * row->step_s));
  if (has_prices(scaling))
    text += scaling.steps > 0
                ? fmt::format(" for {:.2f}", all_steps / 1000 * cluster->price_per_1000_steps(*row))
                : fmt::format(", {:.2f} for 1000 steps", cluster->price_per_1000_steps(*row));
  return text + "\n";
}

template <class Number>
void set_unless_0(JsonObject& json, std::string_view name, Number number) {
  number > 0 ? json.set(name, number) : json.set_null(name);
}

JsonObject row_json(const Scaling& scaling, const ClusterScaling& c, const ScalingRow& row) {
  JsonObject json;
  json.set("devices", row.devices).set("nodes", c.nodes(row)).set("fits", row.fits());
  if (!row.fits()) return json.set("lacks", row.lacks);
  json.set("step_s", row.step_s)
      .set("samples_per_s", static_cast<double>(scaling.batch) / row.step_s)
      .set("efficiency", c.efficiency(row))
      .set("costs", row.costs)
      .set("estimated_operators", row.estimated_operators)
      .set("split", row.split)
      .set("micro_batches", row.micro_batches)
      .set("memory_bytes", row.memory_bytes)
      .set("cut_short", row.cut_short)
      .set("reaches_target", scaling.reaches_target(row));
  set_unless_0(json, "tokens_per_s", static_cast<double>(scaling.tokens) / row.step_s);
  row.gap ? json.set("gap", *row.gap) : json.set_null("gap");
  set_unless_0(json, "price_per_1000_steps", c.price_per_1000_steps(row));
  return json;
}

}  // namespace

int ClusterScaling::nodes(const ScalingRow& row) const {
  return (row.devices + cluster.devices_per_node - 1) / cluster.devices_per_node;
}

double ClusterScaling::price_per_1000_steps(const ScalingRow& row) const {
  return price_per_hour * nodes(row) * 1000 * row.step_s / 3600;
}

double ClusterScaling::efficiency(const ScalingRow& row) const {
  const auto first = std::ranges::find_if(rows, &ScalingRow::fits);
  return first->step_s * first->devices / (row.step_s * row.devices);
}

bool Scaling::reaches_target(const ScalingRow& row) const {
  return row.fits() && target_step_s > 0 && row.step_s <= target_step_s;
}

std::optional<ScalingChoice> cheapest(const Scaling& scaling) {
  const bool by_price = has_prices(scaling);
  const auto rank = [&](const ScalingChoice& choice) {
    return std::tuple(by_price ? choice.cluster->price_per_1000_steps(*choice.row) : choice.row->devices,
                      choice.row->step_s);
  };
  std::optional<ScalingChoice> best;
  for (const ClusterScaling& cluster : scaling.clusters)
    for (const ScalingRow& row : cluster.rows) {
      const ScalingChoice choice{&cluster, &row};
      if (scaling.reaches_target(row) && (!best || rank(choice) < rank(*best))) best = choice;
    }
  return best;
}

std::string scaling_text(const Scaling& scaling) {
  const std::optional<ScalingChoice> choice = cheapest(scaling);
  std::string text =
      fmt::format("{}, {} a step{}\n", scaling.model, count_text(scaling.batch, "sample"),
                  scaling.tokens > 0 ? fmt::format(" ({})", count_text(scaling.tokens, "token")) : "");
  if (!scaling.measured_on.empty())
    text += fmt::format("costs were measured on {}, and are extrapolated to more or others\n",
                        scaling.measured_on);
  for (const ClusterScaling& c : scaling.clusters)
    text += fmt::format("\n'{}', nodes of {}: {} of {}{}\n{}", c.cluster.name,
                        count_text(c.cluster.devices_per_node, "device"), c.cluster.device,
                        bytes_text(c.cluster.memory_bytes),
                        c.price_per_hour > 0 ? fmt::format(", {} an hour each", c.price_per_hour) : "",
                        cluster_table(scaling, c, choice ? choice->row : nullptr));
  return text + target_text(scaling);
}

JsonObject scaling_json(const Scaling& scaling) {
  JsonArray clusters;
  for (const ClusterScaling& c : scaling.clusters) {
    JsonArray rows;
    for (const ScalingRow& row : c.rows) rows.add(row_json(scaling, c, row));
    JsonObject cluster;
    cluster.set("name", c.cluster.name)
        .set("device", c.cluster.device)
        .set("devices_per_node", c.cluster.devices_per_node)
        .set("memory_bytes", c.cluster.memory_bytes);
    set_unless_0(cluster, "price_per_node_hour", c.price_per_hour);
    clusters.add(cluster.set("rows", rows));
  }
  JsonObject json;
  json.set("format", "alpa-plan-sweep")
      .set("format_version", "1.0")
      .set("model", scaling.model)
      .set("batch_samples", scaling.batch);
  set_unless_0(json, "batch_tokens", scaling.tokens);
  set_unless_0(json, "target_step_s", scaling.target_step_s);
  set_unless_0(json, "steps", scaling.steps);
  scaling.measured_on.empty() ? json.set_null("measured_on") : json.set("measured_on", scaling.measured_on);
  json.set("clusters", clusters);
  if (const auto choice = cheapest(scaling))
    return json.set("cheapest", JsonObject()
                                    .set("cluster", choice->cluster - scaling.clusters.data())
                                    .set("devices", choice->row->devices));
  return json.set_null("cheapest");
}

std::string scaling_page(const std::string& skeleton, const Scaling& scaling) {
  return page_with(skeleton, scaling_json(scaling));
}

}  // namespace alpa
