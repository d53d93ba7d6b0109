#include "libalpa/plan/explain.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libalpa/base/text_table.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_facts.h"
#include "libalpa/plan/facts/mesh_columns.h"
#include "libalpa/plan/facts/stage_table.h"

namespace alpa {
namespace {

std::string share_text(double part_s, double step_s) {
  return fmt::format("{:.1f} %", step_s > 0 ? 100 * part_s / step_s : 0);
}

std::string time_text(const PlanFacts& f) {
  const double step_s = f.prediction.step_s;
  std::string text =
      fmt::format("predicted step time {} ({}): {}\n", step_time_text(step_s, f.prediction.step_error_s),
                  !f.is_measured()              ? "from data sheets"
                  : f.extrapolated_from.empty() ? "from a profile"
                                                : "extrapolated from a profile",
                  times_text(f.mean, [&](double part_s) { return share_text(part_s, step_s); }));
  if (!f.vertices.empty()) text += f.vertices + "\n";
  if (f.cluster.overlap_slowdown != 1)
    text += fmt::format("computation takes {:.2f} times as long alongside communication\n",
                        f.cluster.overlap_slowdown);
  return text;
}

std::string binding_text(const PlanFacts& f) {
  const Binding& b = f.binding;
  std::string text = binding_name(b);
  constexpr double uneven = 1.05;
  if (b.busiest_s > uneven * b.mean_busy_s)
    text +=
        fmt::format(" ({} of work, {} on average)", seconds_text(b.busiest_s), seconds_text(b.mean_busy_s));
  if (!b.nearly_full.empty())
    text += fmt::format("; memory on {} (up to {:.0f} % full)", stages_text(b.nearly_full), 100 * b.fullest);
  if (!b.recomputes.empty()) text += fmt::format("; recomputation on {}", stages_text(b.recomputes));
  if (!b.offloads.empty()) text += fmt::format("; activations on the host of {}", stages_text(b.offloads));
  return text;
}

std::string sureness_text(const PlanFacts& f) {
  const Prediction& p = f.prediction;
  std::string text = "no lower bound is known";
  if (p.gap())
    text = fmt::format("at most {:.2f} % above the best of {} (bound {})", 100 * *p.gap(),
                       p.bound_covers.starts_with(kOwnStages) ? kOwnStages : "what the search covers",
                       seconds_text(p.lower_bound_s));
  if (p.hit_time_limit) text += "; the search was cut short: another run may find what this one did not";
  text += !f.extrapolated_from.empty()
              ? fmt::format("; costs are extrapolated from measurements on {}", f.extrapolated_from)
          : f.is_measured()
              ? "; costs are measured"
              : fmt::format("; every cost is estimated from the numbers of cluster '{}'", f.cluster.name);
  if (f.is_measured() && p.estimated_operators > 0)
    text += fmt::format(", but for {}{}", count_text(p.estimated_operators, "operator"),
                        p.estimated_share ? fmt::format(": {:.1f} % of the computing time is estimated",
                                                        100 * *p.estimated_share)
                                          : "");
  if (!f.cluster.parts.empty() && !f.is_pinned())
    text += "; the search took all nodes for the slowest, and gave faster ones more layers afterwards";
  return text;
}

/// What else was tried. A plan that was asked for has no runner-up, but may be compared.
std::string runner_up_line(const PlanFacts& f) {
  const Candidate* c = f.runner_up();
  const double step_s = f.prediction.step_s,
               share = c != nullptr && step_s > 0 ? 100 * (c->step_s / step_s - 1) : 0;
  std::string text = "none: no other plan that was tried fits";
  if (c != nullptr && share < 0)
    text = fmt::format("{}: {}, {:.1f} % less than this plan, which was asked for", c->method,
                       seconds_text(c->step_s), -share);
  else if (c != nullptr)
    text = fmt::format("{}{}: {} ({:+.1f} %), {}", f.is_pinned() ? "this plan; next " : "", c->method,
                       seconds_text(c->step_s), share, c->verdict);
  return fmt::format("{:<10} {}\n", f.is_pinned() || share < 0 ? "best tried" : "runner-up", text);
}

/// What the same stages take under the schedules that were tried beside the plan's.
std::string schedule_line(const PlanFacts& f) {
  std::vector<std::string> slower, none;
  for (const Candidate& c : f.prediction.candidates)
    if (c.schedule.empty() || c.is_chosen())
      continue;
    else if (c.step_s == 0)
      none.push_back(c.schedule);
    else
      slower.push_back(fmt::format("{} {} ({:+.1f} %)", c.schedule, seconds_text(c.step_s),
                                   100 * (c.step_s / f.prediction.step_s - 1)));
  if (slower.empty() && none.empty()) return "";
  if (!none.empty()) slower.push_back(fmt::format("none as fast under {}", fmt::join(none, ", ")));
  return fmt::format("{:<10} {}; the same stages: {}\n", "schedule", f.schedule, fmt::join(slower, ", "));
}

/// Commands that may be worth it, what the plan lacks first.
std::string suggestions(const PlanFacts& f, const std::string& plan_file) {
  std::vector<std::vector<std::string>> lines;
  const auto add = [&](const std::string& command, const std::string& what) {
    lines.push_back({fmt::format("{:<9}", lines.empty() ? "try" : ""), command, what});
  };
  if (!f.is_measured()) add("alpa-profile MODEL.toml", "then plan with --profile: measured costs");
  constexpr double worth_searching = 0.05;
  if (!f.is_pinned() && f.prediction.gap().value_or(0) > worth_searching)
    add("alpa-plan MODEL.toml --effort thorough", "the bound leaves room for a better plan");
  add("alpa-plan explain " + plan_file + " --full", "layouts, memory by kind, all candidates");
  add("alpa-plan report " + plan_file + " --out plan.html", "a page: timeline, memory over time");
  return text_table(lines);
}

std::string figures_text(const PlanFacts& f, const StageFacts& s) {
  if (s.figures_at != s.stage)
    return fmt::format("  time and memory: see stage {}, on the same devices\n", s.figures_at);
  if (!s.has_figures) return "";
  const MeshPrediction& p = s.figures;
  const auto share = [&](double part_s) {
    return fmt::format("{} ({})", seconds_text(part_s), share_text(part_s, f.prediction.step_s));
  };
  std::string text = fmt::format("  time    {}\n", times_text(p, share));
  if (p.hidden != HiddenTime{})
    text += fmt::format("          alongside computation: collectives {}, transfers {}\n",
                        share(p.hidden.collective_s), share(p.hidden.transfer_s));
  text += fmt::format(
      "  memory  {} of {} per device: parameters {}, optimizer {}, gradients {}, activations {} x {} in "
      "flight, "
      "workspace {}\n",
      bytes_text(p.memory.total), bytes_text(s.device_memory_bytes), bytes_text(p.memory.parameters),
      bytes_text(p.memory.optimizer), bytes_text(p.memory.gradients), p.in_flight,
      bytes_text(p.memory.activations / std::max<std::int64_t>(1, p.in_flight)),
      bytes_text(p.memory.workspace));
  if (p.memory.host > 0)
    text += fmt::format("          on its host {}, {}\n", bytes_text(p.memory.host),
                        f.stale.empty() ? "moved to the device for updates and back"
                                        : "of messages to servers and from them");
  if (const std::int64_t reserved = reserved_bytes(f.cluster.kind); reserved > 0)
    text += fmt::format("          beside it {} of each GPU are kept for CUDA and its libraries\n",
                        bytes_text(reserved));
  return text;
}

/// "a, b and 3 more"
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t most_named = 4;
  const std::size_t named = std::min(most_named, names.size());
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  return names.size() > named ? text + fmt::format(" and {} more", names.size() - named) : text;
}

std::string layouts_text(const char* title, const std::vector<LayoutGroup>& groups) {
  if (groups.empty()) return "";
  std::string text = fmt::format("  {}\n", title);
  for (const LayoutGroup& group : groups) {
    text += fmt::format("    {:>3} x {}: {}\n", group.count, group.layout, names_text(group.names));
  }
  return text;
}

std::string arrivals_text(const StageFacts& s) {
  std::string text;
  for (const ArrivalGroup& a : s.arrivals) {
    text += text.empty() ? "  what comes from other stages, each time\n" : "";
    text +=
        fmt::format("    {:>3} x {} from stage {}, {} -> {}, {}: {}, {}{}: {}\n", a.names.size(), a.type,
                    a.from_stage, a.from, a.to, a.way, seconds_text(a.each.seconds), bytes_text(a.each.bytes),
                    a.each.bytes_between_nodes > 0
                        ? fmt::format(", {} of it between nodes", bytes_text(a.each.bytes_between_nodes))
                        : "",
                    names_text(a.names));
  }
  return text;
}

std::string stage_text(const PlanFacts& f, const StageFacts& s) {
  std::string text = fmt::format(
      "\nstage {}: layers {} to {} ({}) on {} {} to {}{}, mesh {}: {}, {}\n", s.stage, s.plan.first_layer,
      s.plan.end_layer - 1, s.layers() == 1 ? s.first_layer : s.first_layer + " .. " + s.last_layer,
      count_text(s.devices(), "device"), s.mesh.first_device, s.mesh.first_device + s.devices() - 1,
      s.parts.empty() ? "" : fmt::format(" of {}", fmt::join(s.parts, " + ")), mesh_text(s.mesh.shape),
      s.split.text(), spared_layers_text(s.plan));
  text += figures_text(f, s) + "  parameters (S<axes>: split, R: whole)\n";
  for (const ParameterGroup& p : s.tensors.parameters)
    text += fmt::format("    {:>3} x {:<36} {:<18} {:<6} {}\n", p.count, p.name, p.type, p.spec, p.layout);
  text +=
      layouts_text("optimizer state laid out differently from its parameter", s.tensors.optimizer) +
      layouts_text("sums of gradients laid out differently from their parameter", s.tensors.gradients) +
      (s.devices() > 1 ? layouts_text("how sums of gradients get to their updates", s.tensors.synchronisation)
                       : "") +
      layouts_text("activations, saved for the backward, that are split", s.tensors.activations) +
      arrivals_text(s) + "  forward work (factor:axis that is split)\n";
  for (const WorkGroup& work : s.forward_work)
    text += fmt::format("    {:>3} x {:<20} {}\n", work.count, work.op, work.how);
  return text;
}

std::string candidates_text(const std::vector<Candidate>& candidates) {
  if (candidates.empty()) return "";
  std::size_t width = 0;
  for (const Candidate& c : candidates) width = std::max(width, c.method.size());
  std::string text = "\ncandidates (step time, memory of the fullest device)\n";
  for (const Candidate& c : candidates)
    text += fmt::format("  {:<{}} {:>10} {:>12}  {}\n", c.method, width,
                        c.step_s > 0 ? seconds_text(c.step_s) : "-",
                        c.memory_bytes > 0 ? bytes_text(c.memory_bytes) : "-", c.verdict);
  return text;
}

/// "+3.2 %", "free"
std::string price_text(double with_s, double without_s) {
  constexpr double free = 5e-5;  // no digit of it would show
  if (without_s <= 0) return "not known";
  const double price = with_s / without_s - 1;
  return price < free ? "free" : fmt::format("{:+.2f} %", 100 * price);
}

std::string overview(const PlanFacts& f) {
  std::string text = plan_heading(f) + time_text(f) + "\n" + stage_table(f) + "\n";
  if (!f.prediction.meshes.empty()) text += fmt::format("{:<10} {}\n", "binds", binding_text(f));
  if (!f.lossy.empty()) text += fmt::format("{:<10} {}\n", "lossy", f.lossy);
  if (!f.stale.empty()) text += fmt::format("{:<10} {}\n", "stale", f.stale);
  return text + fmt::format("{:<10} {}\n", "sure", sureness_text(f)) + schedule_line(f) + runner_up_line(f);
}

}  // namespace

std::string plan_heading(const PlanFacts& f) {
  const bool overlaps = f.overlap != overlap_name(Overlap::none);
  const bool updates_early = f.updates != update_order_name(UpdateOrder::after_norm);
  const int servers = f.cluster.servers;
  return fmt::format("{} on {}{} of '{}': {}, {} of {}, schedule {}{}{}{}, by {}\n", f.model,
                     count_text(f.devices, "device"),
                     servers > 0 ? " and " + count_text(servers, "server") : "", f.cluster.name, f.split,
                     count_text(f.micro_batches, "micro-batch"), count_text(f.micro_batch_samples, "sample"),
                     f.schedule, overlaps ? ", overlap " + f.overlap : "",
                     updates_early ? ", updates " + f.updates : "",
                     f.buckets > 0 ? ", gradients in " + count_text(f.buckets, "bucket") : "", f.method);
}

std::string gap_text(const Prediction& p) {
  if (!p.gap()) return "no lower bound is known";
  return fmt::format("{}: the predicted step is at most {:.2f} % above the best of {}",
                     seconds_text(p.lower_bound_s), 100 * *p.gap(), p.bound_covers);
}

std::string plan_summary(const PlanFacts& f, const std::string& plan_file) {
  return overview(f) + suggestions(f, plan_file);
}

std::string constraint_table(const PlanFacts& f) {
  const Prediction& p = f.prediction;
  if (p.constraints.empty()) return "";
  std::size_t width = 0, where_width = 0;
  for (const ConstraintPrice& c : p.constraints) {
    width = std::max(width, c.text.size());
    where_width = std::max(where_width, c.where.size());
  }
  const auto line = [&](const std::string& text, const std::string& where, double without_s) {
    return fmt::format("  {:<{}}  {:<{}}  {:>10}  {}\n", text, width, where, where_width,
                       without_s > 0 ? seconds_text(without_s) : "-", price_text(p.step_s, without_s));
  };
  std::string text =
      "\nconstraints that the plan meets: step time found without each, with the same effort, and its "
      "price\n";
  for (const ConstraintPrice& c : p.constraints) text += line(c.text, c.where, c.step_without_s);
  return p.constraints.size() > 1 ? text + line("all of them", "", p.unconstrained_s) : text;
}

std::string plan_details(const PlanFacts& f) {
  std::string text = overview(f);
  if (f.prediction.gap()) text += fmt::format("{:<10} {}\n", "bound", gap_text(f.prediction));
  text += constraint_table(f);
  for (const StageFacts& s : f.stages) text += stage_text(f, s);
  return text + candidates_text(f.prediction.candidates);
}

}  // namespace alpa
