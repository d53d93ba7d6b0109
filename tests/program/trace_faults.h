#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace alpa {

/// What is wrong with a trace: lanes whose slices overlap, leave time out or end elsewhere than others', and
/// memory that is not of the arena. "": nothing.
inline std::string trace_faults(const nlohmann::json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;  // by rank and lane
  std::map<int, double> arena;
  std::string faults;
  double end_us = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const int rank = event.at("pid");
    if (event.at("ph") == "X") {
      const double start_us = event.at("ts"), duration_us = event.at("dur");
      if (start_us < 0 || duration_us < 0) faults += fmt::format("rank {}: less than no time\n", rank);
      slices[{rank, event.at("tid")}].emplace_back(start_us, start_us + duration_us);
      end_us = std::max(end_us, start_us + duration_us);
    }
    if (event.at("ph") == "C") {
      const double live = event.at("args").at("live_bytes"), free = event.at("args").at("free_bytes");
      const double all = arena.try_emplace(rank, live + free).first->second;
      if (live < 0 || free < 0 || live + free != all)
        faults += fmt::format("rank {}: {} bytes live and {} free of {}\n", rank, live, free, all);
    }
  }
  const double rounding_us = 1e-9 * end_us;
  for (auto& [lane, of_lane] : slices) {
    std::ranges::sort(of_lane);
    double until_us = 0;
    for (const auto& [start, end] : of_lane) {
      if (std::abs(start - until_us) > rounding_us)
        faults += fmt::format("rank {} lane {}: {} after {}\n", lane.first, lane.second, start, until_us);
      until_us = end;
    }
    if (std::abs(until_us - end_us) > rounding_us)
      faults +=
          fmt::format("rank {} lane {}: ends at {}, not {}\n", lane.first, lane.second, until_us, end_us);
  }
  if (slices.empty()) faults += "no slices\n";
  return faults;
}

}  // namespace alpa
