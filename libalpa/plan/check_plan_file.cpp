#include "libalpa/plan/check_plan_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "libalpa/plan/plan_columns.h"
#include "libalpa/plan/reduced_gradients.h"

namespace alpa {
namespace {

/// Where another machine or compiler may round otherwise.
constexpr double kRounding = 1e-9;

bool is_near(double a, double b) { return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b)); }

class Checker {
 public:
  explicit Checker(const std::filesystem::path& path) : path_(path) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::input, fmt::format("plan '{}': {}", path_.string(), what),
                "the file was altered; make the plan again with alpa-plan");
  }
  template <class Found, class Expected>
  void refuse(const std::string& column, std::size_t row, const Found& found,
              const Expected& expected) const {
    refuse(fmt::format("{}, row {}: {}, expected {}", column, row, found, expected));
  }
  void same(const std::string& column, std::size_t row, std::int64_t found, std::int64_t expected) const {
    if (found != expected) refuse(column, row, found, expected);
  }
  void near(const std::string& column, std::size_t row, double found, double expected) const {
    if (!is_near(found, expected)) refuse(column, row, found, expected);
  }
  void near(const std::string& group, std::size_t row, const MeshTime& found,
            const MeshTime& expected) const {
    std::vector<double> wanted;
    visit_time(expected, [&](const char*, double s) { wanted.push_back(s); });
    std::size_t i = 0;
    visit_time(found, [&](const char* name, double s) { near(group + name, row, s, wanted[i++]); });
  }

 private:
  const std::filesystem::path& path_;
};

/// The candidate that was chosen is the plan itself.
void check_chosen(const Checker& checker, const Plan& plan) {
  const Prediction& p = plan.prediction;
  if (std::ranges::count_if(p.candidates, &Candidate::is_chosen) != 1)
    checker.refuse("/candidates/verdict: expected one row that begins with 'chosen'");
  const auto at = std::ranges::find_if(p.candidates, &Candidate::is_chosen);
  const std::size_t row = static_cast<std::size_t>(at - p.candidates.begin());
  if (!at->method.starts_with(plan.method))
    checker.refuse("/candidates/method", row, at->method, "the method of /stages: " + plan.method);
  std::int64_t fullest = 0;
  for (const MeshPrediction& mesh : p.meshes) fullest = std::max(fullest, mesh.memory.total);
  if (!at->schedule.empty() && at->schedule != plan.schedule)
    checker.refuse("/candidates/schedule", row, at->schedule, "the schedule of /stages: " + plan.schedule);
  checker.near("/candidates/step_s", row, at->step_s, p.step_s);
  checker.same("/candidates/memory", row, at->memory_bytes, fullest);
  checker.near("/candidates/busiest_mesh/", row, at->busiest, p.meshes[busiest_mesh(p)]);
}

}  // namespace

void check_told_columns(const std::filesystem::path& path, const Plan& plan, const Graph& graph) {
  const H5Reader file(path, kPlanFormat, kPlanVersion);
  const bool has_sync = file.has("/sync");  // plans of earlier releases have none
  if (has_sync) {
    const std::vector<ValueIndex> sums = sums_of_gradients(graph);
    const std::vector<std::int64_t> found = file.int64s("/sync/value", {std::ssize(sums)});
    for (std::size_t row = 0; row < found.size(); ++row)
      Checker(path).same("/sync/value", row, found[row], sums[row]);
  }
  for (const DerivedColumn& column : derived_columns(plan, graph)) {
    if (column.path.starts_with("/sync/") && !has_sync) continue;
    const std::vector<std::string> found =
        file.strings(column.path, {static_cast<std::int64_t>(column.rows.size())});
    for (std::size_t row = 0; row < found.size(); ++row)
      if (found[row] != column.rows[row])
        Checker(path).refuse(column.path, row, "'" + found[row] + "'", "'" + column.rows[row] + "'");
  }
}

void check_prediction(const std::filesystem::path& path, const Plan& plan, const Prediction& again) {
  const Checker checker(path);
  const Prediction& p = plan.prediction;
  const bool from_cluster = plan.profile_fingerprint.empty();
  if (p.meshes.size() != again.meshes.size())
    checker.refuse(
        fmt::format("/prediction has {} meshes, expected {}", p.meshes.size(), again.meshes.size()));
  if (from_cluster) checker.near("/prediction/step_s", 0, p.step_s, again.step_s);
  if (from_cluster) checker.near("/prediction/step_error_s", 0, p.step_error_s, 0);
  for (const MeshIndex m : p.meshes.indices()) {
    const MeshPrediction &found = p.meshes[m], &expected = again.meshes[m];
    std::vector<std::int64_t> bytes;
    visit_prediction(
        expected, [](const char*, double) {}, [&](const char*, std::int64_t b) { bytes.push_back(b); });
    std::size_t i = 0;
    visit_prediction(
        found, [](const char*, double) {},
        [&](const char* name, std::int64_t b) {
          checker.same(std::string("/prediction/memory/") + name, m, b, bytes[i++]);
        });
    checker.same("/prediction/in_flight", m, found.in_flight, expected.in_flight);
    if (from_cluster) checker.near("/prediction/time/", m, found, expected);
    const double sum = found.compute_s + found.collective_s + found.transfer_s + found.idle_s;
    if (!is_near(sum, p.step_s))
      checker.refuse(fmt::format("/prediction/time, row {}: the times of the mesh add up to {}, expected {}",
                                 m, sum, p.step_s));
  }
  for (std::size_t t = 0; t < std::min(p.transfers.size(), again.transfers.size()); ++t) {
    const TransferPrediction &found = p.transfers[t], &expected = again.transfers[t];
    checker.same("/prediction/transfers/sent", t, found.bytes, expected.bytes);
    checker.same("/prediction/transfers/sent_between_nodes", t, found.bytes_between_nodes,
                 expected.bytes_between_nodes);
    if (from_cluster) checker.near("/prediction/transfers/time", t, found.seconds, expected.seconds);
  }
  if (p.lower_bound_s > p.step_s * (1 + kRounding))
    checker.refuse("/prediction/lower_bound_s", 0, p.lower_bound_s,
                   fmt::format("at most step_s: {}", p.step_s));
  check_chosen(checker, plan);
}

}  // namespace alpa
