#include "libalpa/solver/selection/selection_cache_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "libalpa/solver/selection/strategy_selection.h"

namespace alpa {
namespace {

constexpr std::string_view kSolutionsFormat = "alpa-solutions", kSolutionsVersion = "1.0";

constexpr const char* kRemedy =
    "another file; this one, if it is of no use, can be removed: it is made again";

/// Columns of one row for each solution, and the choices of all of them in one.
struct SolutionColumns {
  std::vector<std::string> key, proof;
  std::vector<std::int64_t> feasible, peak_memory, least_memory, last_used, end_choice;
  std::vector<double> cost, lower_bound, certified_bound, seconds;
  std::vector<std::int32_t> choices;

  std::size_t rows() const { return key.size(); }

  void add(const Fingerprint& of, const SelectionCache::Entry& entry) {
    // Every member is named, so that this does not compile where a new one is not stored.
    const auto& [is_feasible, choice, its_cost, bound, certified, peak, its_proof, hit_time_limit,
                 by_effort_alone, least] = entry.solution;
    key.push_back(fingerprint_text(of));
    feasible.push_back(is_feasible);
    cost.push_back(its_cost);
    lower_bound.push_back(bound);
    certified_bound.push_back(certified);
    peak_memory.push_back(peak);
    least_memory.push_back(least);
    proof.push_back(its_proof);
    seconds.push_back(entry.seconds);
    last_used.push_back(entry.last_used);
    choices.insert(choices.end(), choice.begin(), choice.end());
    end_choice.push_back(std::ssize(choices));
  }
};

/// In the file; a text takes as much as the longest of its column.
std::int64_t bytes_of(const SelectionCache::Entry& entry) {
  constexpr std::int64_t other_columns = 33 + 9 * 8 + 64;
  return other_columns + std::ssize(entry.solution.choice) * static_cast<std::int64_t>(sizeof(std::int32_t));
}

/// By their keys, without those that were not used for longest where all take too much.
SolutionColumns columns_of(const SelectionCache& cache, std::int64_t most_bytes) {
  using Known = std::map<Fingerprint, SelectionCache::Entry>::const_pointer;
  std::vector<Known> known;
  for (const auto& each : cache.entries()) known.push_back(&each);
  std::ranges::stable_sort(known, std::ranges::greater(), [](Known each) { return each->second.last_used; });
  std::int64_t bytes = 0;
  const auto beyond =
      std::ranges::find_if(known, [&](Known each) { return (bytes += bytes_of(each->second)) > most_bytes; });
  known.erase(beyond, known.end());
  std::ranges::sort(known, {}, [](Known each) { return each->first; });
  SolutionColumns columns;
  for (const Known each : known) columns.add(each->first, each->second);
  return columns;
}

}  // namespace

std::string solver_text() { return fmt::format("version {}, CBC {}", kSolverVersion, ALPA_CBC_VERSION); }

std::string read_solutions(const std::filesystem::path& path, SelectionCache& into,
                           const std::string& solver) {
  std::error_code not_there;
  if (!std::filesystem::exists(path, not_there)) return "";
  try {
    const H5Reader file(path, kSolutionsFormat, kSolutionsVersion);
    if (const std::string other = file.text_attribute("/", "solver"); other != solver) return other;
    file.verify();
    const std::vector<std::string> key = file.strings("/solutions/key");
    const Shape rows{std::ssize(key)};
    const std::vector<std::string> proof = file.strings("/solutions/proof", rows);
    const auto feasible = file.int64s("/solutions/feasible", rows),
               peak_memory = file.int64s("/solutions/peak_memory", rows),
               least_memory = file.int64s("/solutions/least_memory", rows),
               last_used = file.int64s("/solutions/last_used", rows),
               end_choice = file.int64s("/solutions/end_choice", rows), choices = file.int64s("/choices");
    const auto cost = file.doubles("/solutions/cost", rows),
               lower_bound = file.doubles("/solutions/lower_bound", rows),
               certified_bound = file.doubles("/solutions/certified_bound", rows),
               seconds = file.doubles("/solutions/seconds", rows);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < key.size(); ++i) {
      const std::int64_t end = end_choice[i];
      if (end < first || end > std::ssize(choices)) throw std::invalid_argument("choices that are not there");
      SelectionCache::Entry entry;
      SelectionSolution& solution = entry.solution;
      solution.feasible = feasible[i] != 0;
      solution.choice.assign(choices.begin() + first, choices.begin() + end);
      solution.cost = cost[i];
      solution.lower_bound = lower_bound[i];
      solution.certified_bound = certified_bound[i];
      solution.peak_memory = peak_memory[i];
      solution.least_memory = least_memory[i];
      solution.proof = proof[i];
      entry.seconds = seconds[i];
      entry.last_used = last_used[i];
      into.add(fingerprint_of_text(key[i]), std::move(entry));
      first = end;
    }
  } catch (const Error& error) {
    throw Error(ErrorKind::input, error.happened(), kRemedy);
  } catch (const std::invalid_argument& fault) {
    throw Error(ErrorKind::input, fmt::format("'{}': /solutions: {}", path.string(), fault.what()), kRemedy);
  }
  return "";
}

void write_solutions(const std::filesystem::path& path, SelectionCache& cache, const Provenance& provenance,
                     std::int64_t most_bytes, const std::string& solver) {
  H5Writer file(path, kSolutionsFormat, kSolutionsVersion);
  read_solutions(path, cache, solver);
  const SolutionColumns columns = columns_of(cache, most_bytes);
  file.attribute("/", "solver", solver);
  file.column("/solutions/key", columns.key);
  file.column("/solutions/feasible", columns.feasible, "1");
  file.column("/solutions/cost", columns.cost, "s");
  file.column("/solutions/lower_bound", columns.lower_bound, "s");
  file.column("/solutions/certified_bound", columns.certified_bound, "s");
  file.column("/solutions/peak_memory", columns.peak_memory, "byte");
  file.column("/solutions/least_memory", columns.least_memory, "byte");
  file.column("/solutions/proof", columns.proof);
  file.column("/solutions/seconds", columns.seconds, "s");
  file.column("/solutions/last_used", columns.last_used, "s");
  file.column("/solutions/end_choice", columns.end_choice, "1");
  file.column("/choices", columns.choices, "1");
  file.provenance(provenance);
  file.publish();
}

}  // namespace alpa
