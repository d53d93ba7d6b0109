#include "apps/report_run.h"

#include <fmt/core.h>

#include <chrono>
#include <fstream>
#include <numeric>

#include "apps/page_skeleton.h"
#include "apps/report_plans.h"
#include "libalpa/base/columns.h"
#include "libalpa/base/error.h"
#include "libalpa/base/json.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/report/event_file.h"
#include "libalpa/report/run_page.h"

namespace alpa {
namespace {

std::filesystem::path metrics_of(const std::filesystem::path& run_dir) {
  for (const char* name : {"metrics.jsonl", "emulated.jsonl"})
    if (std::filesystem::exists(run_dir / name)) return run_dir / name;
  throw Error(ErrorKind::input, fmt::format("'{}' has no metrics.jsonl", run_dir.string()),
              "the folder of a run, as alpa-train was given it with --run-dir");
}

std::optional<PageEntry> planned(const RunReport& report, Log& log) {
  const std::filesystem::path beside = report.run_dir / "timeline" / "plan.h5";
  if (report.plan.empty() && !std::filesystem::exists(beside)) return std::nullopt;
  std::string warning;
  PageEntry entry = page_entry(report.plan.empty() ? beside : report.plan, report.profile, warning);
  if (!warning.empty()) log.warning(warning);
  return entry;
}

/// Of the row with that number.
std::vector<Column<std::size_t>> columns_of(const RunHistory& run) {
  std::vector<Column<std::size_t>> columns;
  for (const RunColumn& each : run_columns())
    columns.push_back({each.name, [&values = run.*each.values](std::size_t row) { return values[row]; }});
  return columns;
}

std::vector<std::size_t> rows_of(const RunHistory& run) {
  std::vector<std::size_t> rows(run.step.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

std::string csv_of(const RunHistory& run) { return csv_table<std::size_t>(columns_of(run), rows_of(run)); }

std::string json_of(const RunHistory& run) {
  const std::vector<Column<std::size_t>> columns = columns_of(run);
  JsonArray steps;
  for (const std::size_t row : rows_of(run)) steps.add(json_of<std::size_t>(columns, row));
  return JsonObject().set("format", "alpa-run").set("format_version", "1.0").set("steps", steps).text() +
         "\n";
}

/// When the last step ended, by the file's time: steps do not say when they were made.
double seconds_of(const std::filesystem::path& metrics) {
  const auto written = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(metrics));
  return std::chrono::duration<double>(written.time_since_epoch()).count();
}

void write_report(const RunReport& report, Log& log) {
  if (report.page.empty() && report.csv.empty() && report.json.empty() && report.tensorboard.empty())
    throw Error(ErrorKind::usage, "there is nothing to write",
                "--out run.html for a page to look at, --csv, --json or --tensorboard");
  for (const std::filesystem::path& written : {report.page, report.csv, report.json})
    if (!written.empty()) AtomicFile{written};  // a folder that cannot be written is noticed before the work
  const std::filesystem::path metrics = metrics_of(report.run_dir);
  const RunHistory run = read_run_history(metrics);
  if (!report.csv.empty()) publish_text(report.csv, csv_of(run));
  if (!report.json.empty()) publish_text(report.json, json_of(run));
  if (!report.tensorboard.empty()) {
    const double begin_s = seconds_of(metrics) - known_sum(run.step_s);
    std::filesystem::create_directories(report.tensorboard);
    publish_text(report.tensorboard / fmt::format("events.out.tfevents.{:010.0f}.alpa", begin_s),
                 event_file(run, begin_s));
  }
  if (report.page.empty()) return;
  const std::string name =
      std::filesystem::weakly_canonical(std::filesystem::absolute(report.run_dir)).filename().string();
  publish_text(report.page, run_page(page_skeleton({"plan_section.js", "run.js"}), "Run " + name, run,
                                     planned(report, log)));
}

}  // namespace

void add_report(App& app, RunReport& report) {
  app.subcommand("report", "write a page of a run to look at, or its metrics for other programs")
      .argument("RUN_DIR", report.run_dir, "folder of the run; it may still be trained into")
      .reads([&report] {  // a page may lie in it
        return std::vector{report.run_dir / "metrics.jsonl", report.run_dir / "emulated.jsonl"};
      })
      .option("--plan", report.plan,
              "plan to show with it; without: that of RUN_DIR/timeline, where there is one")
      .option("--profile", report.profile,
              "profile to take the costs of the plan's timeline from; without: the cluster's numbers")
      .option("--out", report.page, "page to write (HTML; opens without a network)")
      .writes()
      .option("--csv", report.csv, "table of all steps to write (CSV; what is not known is empty)")
      .writes()
      .option("--json", report.json, "the same as JSON (what is not known is null)")
      .writes()
      .option("--tensorboard", report.tensorboard,
              "folder to write an event file of TensorBoard into (scalars)")
      .example("alpa-train report run --plan plan.h5 --out run.html",
               "loss, learning rate, rates, predicted and measured steps, memory, the plan")
      .example("alpa-train report run --tensorboard tb && tensorboard --logdir tb", "beside other runs")
      .runs([&app, &report] { write_report(report, app.log()); });
}

}  // namespace alpa
