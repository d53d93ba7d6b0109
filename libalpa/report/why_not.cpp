#include "libalpa/report/why_not.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "libalpa/base/text_table.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/facts/mesh_columns.h"
#include "libalpa/report/stage_rows.h"

namespace alpa {
namespace {

std::string signed_seconds(double s) { return (s >= 0 ? "+" : "") + seconds_text(s); }
std::string signed_bytes(std::int64_t b) { return (b >= 0 ? "+" : "") + bytes_text(b); }

/// Terms that explain most of a difference in that direction: at most three, and none that is small beside
/// it.
std::string reasons(const PlanDifference& d, double sign) {
  constexpr double least_share = 0.15;
  const double all_s = std::abs(d.other.step.step_s - d.plan.step.step_s);
  std::vector<std::string> words;
  for (const TermDifference& t : d.terms())
    if (sign * t.more_s > (words.empty() ? 0 : least_share * all_s) && words.size() < 3)
      words.push_back(fmt::format("{} ({})", step_term_name(t.term), signed_seconds(t.more_s)));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string time_verdict(const PlanDifference& d) {
  const double own_s = d.plan.step.step_s, other_s = d.other.step.step_s;
  if (std::abs(other_s / own_s - 1) < 5e-4)
    return fmt::format("takes as long: {} a step", seconds_text(own_s));
  const bool is_slower = other_s > own_s;
  return fmt::format("is {}: {} a step in place of {} ({}), the most by {}", is_slower ? "slower" : "faster",
                     seconds_text(other_s), seconds_text(own_s), relative_text(own_s, other_s),
                     reasons(d, is_slower ? 1 : -1));
}

/// Titles, a row for each term, and the step that they add up to.
std::string terms_table(const PlanDifference& d) {
  std::vector<std::vector<std::string>> rows{
      {"step, mean over devices", d.plan.name, d.other.name, "difference"}};
  for (const TermDifference& t : d.terms())
    rows.push_back({step_term_name(t.term), seconds_text(d.plan.step.mean[t.term]),
                    seconds_text(d.other.step.mean[t.term]), signed_seconds(t.more_s)});
  rows.push_back({"all", seconds_text(d.plan.step.step_s), seconds_text(d.other.step.step_s),
                  signed_seconds(d.other.step.step_s - d.plan.step.step_s)});
  return text_table(rows, {1, 2, 3});
}

std::string memory_table(const PlanDifference& d) {
  const MemoryUse &own = d.plan.step.fullest, &other = d.other.step.fullest;
  std::vector<MemoryColumn> kinds(std::begin(kMemoryColumns), std::end(kMemoryColumns));
  const auto more = [&](const MemoryColumn& kind) { return std::abs(other.*kind.bytes - own.*kind.bytes); };
  std::ranges::stable_sort(kinds, std::ranges::greater(), more);
  kinds.push_back(kTotalMemory);
  std::vector<std::vector<std::string>> rows{
      {"memory, fullest device", d.plan.name, d.other.name, "difference"}};
  for (const MemoryColumn& kind : kinds)
    rows.push_back({kind.word, bytes_text(own.*kind.bytes), bytes_text(other.*kind.bytes),
                    signed_bytes(other.*kind.bytes - own.*kind.bytes)});
  return text_table(rows, {1, 2, 3});
}

/// Less is what rounding leaves of sums.
bool has(const PricedStep& step, StepTerm term) { return step.mean[term] > 1e-9 * step.step_s; }

/// Of the terms that the plan has.
std::string stages_table(const ComparedPlan& plan) {
  std::vector<StepTerm> terms;
  for (const StepTerm term : step_terms())
    if (has(plan.step, term)) terms.push_back(term);
  std::vector<std::string> titles{"stage"};
  for (const StepTerm term : terms) titles.emplace_back(step_term_name(term));
  StageRows rows(titles);
  for (const MeshIndex m : plan.step.stages.indices()) {
    std::vector<std::string> cells;
    for (const StepTerm term : terms) cells.push_back(seconds_text(plan.step.terms[m][term]));
    rows.add(plan.step.stages[m], cells);
  }
  return fmt::format("{}: {}, {}\n{}", plan.name, plan.split, count_text(plan.micro_batches, "micro-batch"),
                     rows.text());
}

JsonObject plan_json(const ComparedPlan& plan) {
  return JsonObject()
      .set("file", plan.name)
      .set("split", plan.split)
      .set("micro_batches", plan.micro_batches)
      .set("step_s", plan.step.step_s)
      .set("fits", plan.step.fits())
      .set("spare_bytes", plan.step.spare_bytes())
      .set("mean", terms_json(plan.step.mean))
      .set("memory", memory_json(plan.step.fullest))
      .set("meshes", meshes_json(plan.step));
}

}  // namespace

std::vector<TermDifference> PlanDifference::terms() const {
  std::vector<TermDifference> differences;
  for (const StepTerm term : step_terms())
    if (has(plan.step, term) || has(other.step, term))
      differences.push_back({term, other.step.mean[term] - plan.step.mean[term]});
  std::ranges::stable_sort(differences, std::ranges::greater(),
                           [](const TermDifference& d) { return std::abs(d.more_s); });
  return differences;
}

std::string verdict(const PlanDifference& d) {
  const PricedStep& other = d.other.step;
  if (other.fits()) return fmt::format("{} {}", d.other.name, time_verdict(d));
  return fmt::format("{} does not fit: {} needs {} on each device, {} more than there are; otherwise it {}",
                     d.other.name, stages_text(other.fullest_stages), bytes_text(other.fullest.total),
                     bytes_text(-other.spare_bytes()), time_verdict(d));
}

std::string why_not_text(const PlanDifference& d) {
  return fmt::format("{}\n\n{}\n{}\n{}\n{}", verdict(d), terms_table(d), memory_table(d),
                     stages_table(d.plan), stages_table(d.other));
}

JsonObject why_not_json(const PlanDifference& d) {
  JsonArray differences;
  for (const TermDifference& t : d.terms())
    differences.add(JsonObject().set("term", step_term_name(t.term)).set("more_s", t.more_s));
  return JsonObject()
      .set("format", "alpa-plan-why-not")
      .set("format_version", "1.0")
      .set("verdict", verdict(d))
      .set("plan", plan_json(d.plan))
      .set("other", plan_json(d.other))
      .set("differences", differences)
      .set("step_more_s", d.other.step.step_s - d.plan.step.step_s);
}

}  // namespace alpa
