#include "apps/kept_solutions.h"

#include <fmt/core.h>

#include <ctime>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/solver/selection/selection_cache_file.h"

namespace alpa {
namespace {

void keep(const std::filesystem::path& file, const Provenance& provenance, SelectionCache& cache, Log& log) {
  const SelectionCache::Use use = cache.use();
  if (use.found + use.added == 0) return;  // it did not come to that
  log.info(fmt::format("'{}': {} found, which had taken {}; {} new", file.string(),
                       count_text(use.found, "solution"), seconds_text(use.saved_s), use.added));
  try {
    write_solutions(file, cache, provenance);
  } catch (const Error& error) {
    log.warning(fmt::format("the solutions are not kept: {}", error.happened()));
  }
}

}  // namespace

int with_kept_solutions(const std::filesystem::path& file, const Provenance& provenance, Log& log,
                        const std::function<int(SelectionCache&)>& plan) {
  SelectionCache cache(std::time(nullptr));
  if (file.empty()) return plan(cache);
  AtomicFile{file};  // a folder that cannot be written is noticed before the work
  if (const std::string other = read_solutions(file, cache); !other.empty())
    log.info(fmt::format("'{}' is of another solver ({}): it is started over", file.string(), other));
  try {
    const int status = plan(cache);
    keep(file, provenance, cache, log);
    return status;
  } catch (...) {
    keep(file, provenance, cache, log);
    throw;
  }
}

}  // namespace alpa
