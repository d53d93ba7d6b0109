#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "libalpa/base/fingerprint.h"
#include "libalpa/solver/selection/selection_problem.h"

namespace alpa {

/// Of all that a solution by effort alone depends on: the problem to the last bit, and the options but for
/// the time, threads and reports.
Fingerprint selection_key(const SelectionProblem&, const SelectionOptions&);

/// Solutions by their keys. solve_selection() looks here first, and what it finds is what it would come to by
/// solving. Threads may share one.
class SelectionCache {
 public:
  struct Entry {
    SelectionSolution solution;
    double seconds = 0;          ///< that solving took
    std::int64_t last_used = 0;  ///< by the caller's calendar
  };
  /// What became of it since it was made.
  struct Use {
    std::int64_t found = 0, added = 0;
    double saved_s = 0;  ///< that solving what was found took
  };

  /// `now`: when what is found or kept from here on counts as used.
  explicit SelectionCache(std::int64_t now = 0) : now_(now) {}

  std::optional<SelectionSolution> find(const Fingerprint& key);
  void keep(const Fingerprint& key, SelectionSolution, double seconds);

  /// Adds what others found; of what both know, the last use counts.
  void add(const Fingerprint& key, Entry);
  /// All there is; nobody else may use it meanwhile.
  const std::map<Fingerprint, Entry>& entries() const { return entries_; }
  Use use() const;

 private:
  mutable std::mutex mutex_;
  std::map<Fingerprint, Entry> entries_;
  Use use_;
  std::int64_t now_;
};

}  // namespace alpa
