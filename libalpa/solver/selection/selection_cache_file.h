#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "libalpa/h5/provenance.h"
#include "libalpa/solver/selection/selection_cache.h"

namespace alpa {

/// What a file of solutions may take. Those that were not used for longest are left out beyond that.
inline constexpr std::int64_t kMostCacheBytes = std::int64_t{64} << 20;

/// What solves here: "version 1, CBC 2.10.8". Another one may come to other solutions.
std::string solver_text();

/// Adds the solutions of a file, where there is one and they are of this solver. Returns what solver they are
/// of instead; "" where it is this one, or there is no file. Throws Error(input) for a file that is damaged
/// or no file of solutions.
std::string read_solutions(const std::filesystem::path&, SelectionCache& into,
                           const std::string& solver = solver_text());

/// Writes the solutions, with those that another command has put there meanwhile. Throws Error as H5Writer
/// does, and as read_solutions().
void write_solutions(const std::filesystem::path&, SelectionCache&, const Provenance&,
                     std::int64_t most_bytes = kMostCacheBytes, const std::string& solver = solver_text());

}  // namespace alpa
