#include "libalpa/solver/selection/selection_cache.h"

#include <algorithm>
#include <utility>

namespace alpa {

// Every member is named, so that with a new one this does not compile until it is said whether it counts.
Fingerprint selection_key(const SelectionProblem& problem, const SelectionOptions& options) {
  RunningFingerprint key;
  const auto& [nodes, edges, memory_limit] = problem;
  key.add(memory_limit);
  key.add(nodes.size());
  for (const auto& [cost, memory] : nodes) {
    key.add(cost);
    key.add(memory.size());
    for (const auto& [begin, end, bytes] : memory) {
      key.add(begin);
      key.add(end);
      key.add(bytes);
    }
  }
  key.add(edges.size());
  for (const auto& [from, to, cost] : edges) {
    key.add(from);
    key.add(to);
    key.add(cost);
  }
  const auto& [gap, effort, time_limit_s, most_cbc_cells, start, cutoff, enough, gap_of_enough, stop, threads,
               certify, cache, progress] = options;
  key.add(gap);
  key.add(effort);
  key.add(most_cbc_cells);
  key.add(start);
  key.add(cutoff);
  key.add(enough);
  key.add(gap_of_enough);
  key.add(certify);
  return key.value();
}

std::optional<SelectionSolution> SelectionCache::find(const Fingerprint& key) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return std::nullopt;
  at->second.last_used = now_;
  ++use_.found;
  use_.saved_s += at->second.seconds;
  return at->second.solution;
}

void SelectionCache::keep(const Fingerprint& key, SelectionSolution solution, double seconds) {
  const std::lock_guard lock(mutex_);
  if (entries_.try_emplace(key, Entry{std::move(solution), seconds, now_}).second) ++use_.added;
}

void SelectionCache::add(const Fingerprint& key, Entry entry) {
  const std::lock_guard lock(mutex_);
  const std::int64_t used = entry.last_used;
  std::int64_t& last_used = entries_.try_emplace(key, std::move(entry)).first->second.last_used;
  last_used = std::max(last_used, used);
}

SelectionCache::Use SelectionCache::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

}  // namespace alpa
