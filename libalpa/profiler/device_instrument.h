#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"
#include "libalpa/profiler/instrument.h"
#include "libalpa/profiler/rank_exchange.h"
#include "libalpa/profiler/sample_memory.h"

namespace alpa {

/// Processor time that all threads of this process have taken, in seconds.
double process_time_s();

struct InstrumentOptions {
  int repetitions = 5;                 ///< of which the median is taken
  double warm_up_s = 0;                ///< an operator is called for so long before its first sample
  double least_sample_s = 1e-3;        ///< calls are repeated within one until it takes that long
  std::int64_t cold_bytes = 64 << 20;  ///< see SampleMemory; above the caches that a device has to itself
  std::int64_t most_bytes = 0;         ///< a sample may take, per device

  /// Cores for each rank where ranks outnumber cores, e.g. 0.5; 0: where they do not. How long an operator of
  /// such a rank has to wait for a core is a matter of luck within a short sample, so it is taken to last as
  /// long as the share of the cores needs for its processor time.
  double cores_of_rank = 0;
  double (*processor_s)() = process_time_s;  ///< the clock of processor time
};

/// What suits devices of that kind. A GPU's clock and power follow its load within milliseconds, its queue
/// takes some microseconds to fill and to wait for, and its caches have up to 126 MiB.
InstrumentOptions usual_options(DeviceKind);

/// Times operators and collectives on real devices. All ranks run a sample at the same time, so that what
/// they share (memory bandwidth, power, cores) is shared as in training.
class DeviceInstrument final : public Instrument {
 public:
  /// Collective over `world`, whose ranks stand in order of their nodes, `ranks_per_node` on each. Keeps
  /// references.
  DeviceInstrument(Device&, Communicator& world, int ranks_per_node, const InstrumentOptions&);

  Timing time(const OperatorCase&) override;
  Timing time(const CollectiveCase&) override;
  TimingBeside time_beside_sums(const OperatorCase&, std::int64_t bytes) override;
  Timing time_moves(std::int64_t bytes) override;
  int largest(int mine) override;

 private:
  using Work = std::function<void(int call)>;
  struct Repeated {
    double median_s = 0, spread_s = 0;  ///< spread: interquartile range
  };
  static Repeated repeated(std::vector<double> seconds);

  /// Seconds of one call of `work`, over repetitions.
  Repeated sample(const Work& work);
  /// The operator on memory of its own for each call; valid until the next request of memory.
  Work operator_work(const OperatorCase&);
  int calls_per_sample(double one_call_s) const;
  double seconds_of(const Work& work, int calls);
  Communicator* group(GroupShape);
  Work collective_work(const CollectiveCase&, Communicator&, const std::vector<SampleMemory::Message>&);

  /// What the ranks' answers make together. `mine` is empty where this rank could not run the sample.
  Timing together(Repeated mine, const std::string& why);

  Device& device_;
  Communicator& world_;
  int ranks_per_node_;
  InstrumentOptions options_;
  std::unique_ptr<Stream> stream_;
  RankExchange exchange_;
  SampleMemory memory_;
  std::map<GroupShape, std::unique_ptr<Communicator>> groups_;
};

}  // namespace alpa
