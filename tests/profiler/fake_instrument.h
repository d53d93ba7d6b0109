#pragma once
#include <functional>
#include <string>
#include <vector>

#include "libalpa/profiler/instrument.h"

namespace alpa {

/// Answers without timing anything, and keeps what it was asked for. A call moves the clock by a second.
class FakeInstrument final : public Instrument {
 public:
  Timing time(const OperatorCase& each) override {
    asked.push_back(each.signature);
    return answer(operator_s ? operator_s(each) : 1e-3, each.signature);
  }

  Timing time(const CollectiveCase& each) override {
    asked.push_back(collective_name(each.kind) + (" " + std::to_string(each.bytes)));
    return answer(collective_s ? collective_s(each) : 1e-4, asked.back());
  }

  TimingBeside time_beside_sums(const OperatorCase& each, std::int64_t) override {
    asked.push_back(each.signature + " beside sums");
    const double alone_s = operator_s ? operator_s(each) : 1e-3;
    return {answer(alone_s, asked.back()), answer(slowdown * alone_s, asked.back())};
  }

  Timing time_moves(std::int64_t bytes) override {
    asked.push_back("moves");
    return answer(static_cast<double>(bytes) / moved_per_s, asked.back());
  }

  int largest(int mine) override { return std::max(mine, another_ranks); }

  std::function<double(const OperatorCase&)> operator_s;
  std::function<double(const CollectiveCase&)> collective_s;
  double slowdown = 1;  ///< of operators beside sums
  double moved_per_s = 1e9;
  std::string broken;     ///< what cannot be timed
  int another_ranks = 0;  ///< number that another rank gives
  int ranks = 2;
  std::vector<double> slowness;  ///< of each rank, as a factor

  std::vector<std::string> asked;
  double clock_s = 0;

 private:
  Timing answer(double seconds, const std::string& what) {
    clock_s += 1;
    if (what == broken) return {0, 0, {}, {}, "rank 1: no memory is left"};
    const auto count = static_cast<std::size_t>(ranks);
    Timing timing{seconds, seconds / 10, std::vector<double>(count, seconds),
                  std::vector<double>(count, seconds / 20), ""};
    for (std::size_t r = 0; r < slowness.size(); ++r) timing.rank_s[r] *= slowness[r];
    return timing;
  }
};

}  // namespace alpa
