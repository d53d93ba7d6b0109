#include "libalpa/planner/tuning/tuning_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/h5/file.h"
#include "libalpa/plan/plan_columns.h"
#include "libalpa/plan/plan_file.h"

namespace alpa {
namespace {

constexpr std::size_t kFastestKept = 3;  ///< of earlier trials, to be tried again elsewhere

void write_genes(H5Writer& file, const std::vector<Gene>& genes) {
  std::vector<std::string> name, kind, words;
  for (const Gene& gene : genes) {
    name.push_back(gene.name);
    kind.push_back(gene.kind);
    words.push_back(fmt::format("{}", fmt::join(gene.words, " ")));
  }
  file.column("/tuning/genes/name", name);
  file.column("/tuning/genes/kind", kind);
  file.column("/tuning/genes/words", words);
}

void write_trials(H5Writer& file, const TuningRecord& record) {
  const auto rows = std::ssize(record.trials), genes = std::ssize(record.genes),
             columns = std::ssize(record.features);
  std::vector<std::int64_t> choice, memory, runs;
  std::vector<std::string> origin, fault, identity;
  std::vector<double> predicted, measured, spread, features;
  for (const TuningTrial& trial : record.trials) {
    choice.insert(choice.end(), trial.choice.begin(), trial.choice.end());
    origin.push_back(trial.origin);
    fault.push_back(trial.fault);
    identity.push_back(fingerprint_text(trial.known.identity));
    predicted.push_back(trial.known.predicted_s);
    measured.push_back(trial.measured_s);
    spread.push_back(trial.spread_s);
    memory.push_back(trial.known.memory_bytes);
    runs.push_back(trial.runs);
    features.insert(features.end(), trial.known.features.begin(), trial.known.features.end());
  }
  file.array("/tuning/trials/choice", choice, {rows, genes}, "1");
  file.column("/tuning/trials/origin", origin);
  file.column("/tuning/trials/fault", fault);
  file.column("/tuning/trials/identity", identity);
  file.column("/tuning/trials/predicted", predicted, "s");
  file.column("/tuning/trials/measured", measured, "s");
  file.column("/tuning/trials/spread", spread, "s");
  file.column("/tuning/trials/memory", memory, "byte");
  file.column("/tuning/trials/runs", runs, "1");
  file.array("/tuning/trials/features", features, {rows, columns}, "1");
}

class TuningReader {
 public:
  explicit TuningReader(const std::filesystem::path& path)
      : path_(path), file_(path, kPlanFormat, kPlanVersion) {
    if (!file_.has("/tuning"))
      throw Error(ErrorKind::input, fmt::format("plan '{}' was not tuned", path.string()),
                  "a file that alpa-train tune has written");
  }

  TuningRecord read() const {
    TuningRecord record;
    record.job = file_.text_attribute("/tuning", "job");
    read_genes(record);
    record.features = file_.strings("/tuning/features");
    read_trials(record);
    record.model.weights = file_.doubles("/tuning/model/weights");
    if (!record.model.weights.empty() && record.model.weights.size() != record.features.size())
      refuse(fmt::format("/tuning/model/weights has {} rows, expected {} or none",
                         record.model.weights.size(), record.features.size()));
    record.accuracy = {file_.double_attribute("/tuning/model", "simulator_accuracy"),
                       file_.double_attribute("/tuning/model", "residual_accuracy"),
                       file_.double_attribute("/tuning/model", "linear_accuracy"),
                       static_cast<int>(file_.int64_attribute("/tuning/model", "held_out_pairs"))};
    return record;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::input, fmt::format("tuned plan '{}': {}", path_.string(), what),
                "remove the file, and tune the plan again");
  }

  void read_genes(TuningRecord& record) const {
    const auto name = file_.strings("/tuning/genes/name");
    const Shape rows{std::ssize(name)};
    const auto kind = file_.strings("/tuning/genes/kind", rows),
               words = file_.strings("/tuning/genes/words", rows);
    for (std::size_t g = 0; g < name.size(); ++g) {
      Gene gene{name[g], {}, kind[g]};
      for (std::size_t begin = 0; begin < words[g].size();) {
        const std::size_t end = std::min(words[g].find(' ', begin), words[g].size());
        gene.words.push_back(words[g].substr(begin, end - begin));
        begin = end + 1;
      }
      if (gene.words.empty()) refuse(fmt::format("/tuning/genes/words, row {}: there are none", g));
      record.genes.push_back(std::move(gene));
    }
  }

  void read_trials(TuningRecord& record) const {
    const auto origin = file_.strings("/tuning/trials/origin");
    const auto rows = std::ssize(origin), genes = std::ssize(record.genes),
               columns = std::ssize(record.features);
    const auto choice = file_.int64s("/tuning/trials/choice", {rows, genes}),
               memory = file_.int64s("/tuning/trials/memory", {rows}),
               runs = file_.int64s("/tuning/trials/runs", {rows});
    const auto fault = file_.strings("/tuning/trials/fault", {rows}),
               identity = file_.strings("/tuning/trials/identity", {rows});
    const auto predicted = file_.doubles("/tuning/trials/predicted", {rows}),
               measured = file_.doubles("/tuning/trials/measured", {rows}),
               spread = file_.doubles("/tuning/trials/spread", {rows}),
               features = file_.doubles("/tuning/trials/features", {rows, columns});
    for (std::int64_t t = 0; t < rows; ++t) {
      TuningTrial trial;
      for (std::int64_t g = 0; g < genes; ++g) {
        const std::int64_t word = choice[t * genes + g];
        if (word < 0 || word >= std::ssize(record.genes[g].words))
          refuse(fmt::format("/tuning/trials/choice, row {}: {} of gene '{}', which has {} words", t, word,
                             record.genes[g].name, record.genes[g].words.size()));
        trial.choice.push_back(static_cast<int>(word));
      }
      trial.origin = origin[t];
      trial.fault = fault[t];
      trial.known = {"", predicted[t], memory[t], {}, identity_of_row(identity[t], t)};
      trial.known.features.assign(features.begin() + t * columns, features.begin() + (t + 1) * columns);
      trial.measured_s = measured[t];
      trial.spread_s = spread[t];
      trial.runs = static_cast<int>(std::clamp<std::int64_t>(runs[t], 1, 1'000'000));
      const bool is_possible = [&] {
        for (const double v : trial.known.features)
          if (!std::isfinite(v)) return false;
        return std::isfinite(measured[t]) && measured[t] >= 0 && std::isfinite(spread[t]) &&
               std::isfinite(predicted[t]) && (predicted[t] > 0 || !trial.is_measured());
      }();
      if (!is_possible) refuse(fmt::format("/tuning/trials, row {}: a time or a feature that cannot be", t));
      record.trials.push_back(std::move(trial));
    }
  }

  Fingerprint identity_of_row(const std::string& text, std::int64_t row) const {
    try {
      return fingerprint_of_text(text);
    } catch (const std::invalid_argument&) {
      refuse(fmt::format("/tuning/trials/identity, row {}: '{}', expected 32 hexadecimal digits", row, text));
    }
  }

  std::filesystem::path path_;
  H5Reader file_;
};

}  // namespace

std::string job_of(const TuningSpace& space, const CostModel& costs) {
  const Assessment first = space.assess(space.presets.front().choice);
  std::string text = fingerprint_text(first.identity) + cluster_fingerprint(costs.cluster());
  for (const Gene& gene : space.genes) text += fmt::format("\n{}: {}", gene.name, fmt::join(gene.words, " "));
  text += fmt::format("\n{}\n{}", fmt::join(space.features, ", "), first.predicted_s);
  return fingerprint(text);
}

TuningRecord record_of(const TuningSearch& search, const std::string& job) {
  return {
      job, search.space().genes, search.space().features, search.trials(), search.model(), search.accuracy()};
}

void write_tuned_plan(const std::filesystem::path& path, const Plan& plan, const Graph& graph,
                      const TuningRecord& record, const Provenance& provenance) {
  write_plan(path, plan, graph, provenance, [&](H5Writer& file) {
    file.group("/tuning");
    file.attribute("/tuning", "job", record.job);
    write_genes(file, record.genes);
    file.column("/tuning/features", record.features);
    write_trials(file, record);
    file.column("/tuning/model/weights", record.model.weights, "1");
    file.attribute("/tuning/model", "simulator_accuracy", record.accuracy.simulator);
    file.attribute("/tuning/model", "residual_accuracy", record.accuracy.residual);
    file.attribute("/tuning/model", "linear_accuracy", record.accuracy.linear);
    file.attribute("/tuning/model", "held_out_pairs", record.accuracy.pairs);
  });
}

TuningRecord read_tuning(const std::filesystem::path& path) {
  return in_step(fmt::format("reading the trials in '{}'", path.string()),
                 [&] { return TuningReader(path).read(); });
}

void check_continues(const std::filesystem::path& file, const TuningRecord& record, const TuningSpace& space,
                     const std::string& job) {
  if (record.job == job && record.genes == space.genes && record.features == space.features) return;
  throw Error(ErrorKind::input,
              fmt::format("'{}' has trials of another plan, or with other costs", file.string()),
              "--anew to replace them and learn from them, or another --out");
}

EarlierTrials earlier_trials(const std::filesystem::path& file, const TuningRecord& record,
                             const std::vector<std::string>& features) {
  if (record.features != features)
    throw Error(ErrorKind::input,
                fmt::format("'{}' has trials with other features than this version takes", file.string()),
                "without --transfer-from");
  EarlierTrials earlier;
  earlier.genes = record.genes;
  std::vector<const TuningTrial*> by_time;
  for (const TuningTrial& trial : record.trials) {
    if (!trial.is_measured()) continue;
    earlier.trials.push_back({trial.known.predicted_s, trial.measured_s, trial.known.features, 0});
    by_time.push_back(&trial);
  }
  std::ranges::stable_sort(by_time, {}, &TuningTrial::measured_s);
  for (std::size_t t = 0; t < std::min(by_time.size(), kFastestKept); ++t)
    earlier.fastest.push_back(by_time[t]->choice);
  return earlier;
}

}  // namespace alpa
