#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

// What benches between emulated hosts have in common.
namespace alpa {

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// What rows come to.
struct Tally {
  int reached = 0, all = 0;
  /// A mark for the row.
  const char* hold(bool is_reached) {
    ++all;
    reached += is_reached;
    return is_reached ? " " : "*";
  }
  int missed() const { return all - reached; }
  /// The last line, and the status of the bench.
  int finish(bool check) const {
    fmt::print("{} of {} targets reached\n", reached, all);
    return check && missed() > 0 ? 1 : 0;
  }
};

/// What a program of the ranks prints; none where hosts cannot be emulated. `settings`: environment, of
/// emulated_hosts.sh. Ends this process where ranks fail.
inline std::optional<std::vector<std::string>> lines_on_hosts(std::int64_t hosts, std::int64_t ranks_on_host,
                                                              const std::string& mbit,
                                                              const std::string& program,
                                                              const std::string& settings = {}) {
  const std::string command =
      fmt::format("OMP_NUM_THREADS=1 MPIEXEC='{}' PRELOAD='{}' {} '{}/emulated_hosts.sh' {} {} {} {}",
                  MPIEXEC, KEEP_CONNECTIONS, settings, NETWORK_TESTS, mbit, hosts, ranks_on_host, program);
  std::vector<std::string> lines;
  FILE* const output = popen(command.c_str(), "r");
  char line[4096];
  while (output && std::fgets(line, sizeof line, output)) lines.emplace_back(line);
  const int status = output ? pclose(output) : -1;
  if (status == 0) return lines;
  for (const std::string& each : lines) std::fputs(each.c_str(), stdout);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return std::nullopt;
  fmt::print("the ranks have failed\n");
  std::exit(1);
}

}  // namespace alpa
