#include "libalpa/report/run_history.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/median.h"
#include "libalpa/base/unreadable_file.h"

namespace alpa {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

constexpr RunColumn columns[] = {{"step", &RunHistory::step},
                                 {"loss", &RunHistory::loss},
                                 {"evaluation_loss", &RunHistory::evaluation_loss},
                                 {"gradient_norm", &RunHistory::gradient_norm},
                                 {"learning_rate", &RunHistory::learning_rate},
                                 {"step_s", &RunHistory::step_s},
                                 {"predicted_step_s", &RunHistory::predicted_step_s},
                                 {"data_s", &RunHistory::data_s},
                                 {"checkpoint_s", &RunHistory::checkpoint_s},
                                 {"saved_bytes", &RunHistory::saved_bytes, true},
                                 {"saved_s", &RunHistory::saved_s, true},
                                 {"samples", &RunHistory::samples, true},
                                 {"tokens", &RunHistory::tokens, true},
                                 {"memory_bytes", &RunHistory::memory_bytes}};

double number(const nlohmann::json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : unknown;
}

void add(RunHistory& run, const nlohmann::json& line) {
  for (const RunColumn& column : columns) (run.*column.values).push_back(number(line, column.name));
  const double step = run.step.back();
  if (run.step.size() == 1 || line.contains("first_of_job")) run.first_of_job.push_back(step);
  run.emulated = run.emulated || line.contains("emulated");
}

/// Of the known numbers of rows [begin, end).
double together(const std::vector<double>& values, std::size_t begin, std::size_t end, bool adds_up) {
  double sum = 0;
  int known = 0;
  for (std::size_t i = begin; i < end; ++i)
    if (!std::isnan(values[i])) {
      sum += values[i];
      ++known;
    }
  return known == 0 ? unknown : adds_up ? sum : sum / known;
}

}  // namespace

double known_sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::isnan(value) ? 0 : value;
  return sum;
}

double known_median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return values.empty() ? unknown : median(std::move(values));
}

std::span<const RunColumn> run_columns() { return columns; }

RunHistory RunHistory::thinned(std::size_t most) const {
  const std::size_t rows = step.size(), width = std::max<std::size_t>(1, (rows + most - 1) / most);
  RunHistory thin;
  thin.first_of_job = first_of_job;
  thin.emulated = emulated;
  for (std::size_t begin = 0; begin < rows; begin += width) {
    const std::size_t end = std::min(rows, begin + width);
    for (const RunColumn& column : columns)
      (thin.*column.values).push_back(together(this->*column.values, begin, end, column.adds_up));
    thin.step.back() = step[end - 1];
  }
  return thin;
}

RunHistory read_run_history(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw unreadable_file(path, std::strerror(errno));
  RunHistory run;
  std::string text;
  for (std::int64_t row = 1; std::getline(in, text); ++row) {
    if (in.eof()) break;  // no end of line: it is being written
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    const double step = line.is_object() ? number(line, "step") : unknown;
    if (std::isnan(step) || (!run.step.empty() && step <= run.step.back()))
      throw Error(ErrorKind::input,
                  fmt::format("'{}' line {}: expected an object with a \"step\" above the one before",
                              path.string(), row),
                  "the file as alpa-train wrote it");
    add(run, line);
  }
  if (run.step.empty())
    throw Error(ErrorKind::input, fmt::format("'{}' has no step yet", path.string()),
                "again once the run has made one");
  return run;
}

}  // namespace alpa
