#include "libalpa/profiler/device_instrument.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <new>
#include <optional>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/median.h"
#include "libalpa/graph/vertex_rows.h"
#include "libalpa/kernels/kernel.h"
#include "libalpa/kernels/make_kernel.h"
#include "libalpa/profiler/sums_beside.h"

namespace alpa {
namespace {

constexpr double kNone = -1;  // a rank that took no part
constexpr double kFailed = -2;
constexpr int kMostCalls = 10'000;

// Beside what is timed communication has to last until the end, though that takes longer than alone.
constexpr double kTimesAsLong = 2;
constexpr int kLeastRounds = 5;  // few as they are, they are compared with what they differ by

Timing timing_of(std::vector<double> rank_s, std::vector<double> rank_spread_s) {
  std::vector<double> took_part;
  for (const double seconds : rank_s)
    if (seconds != kNone) took_part.push_back(seconds);
  const auto [fastest, slowest] = std::minmax_element(took_part.begin(), took_part.end());
  return {median(took_part), *slowest - *fastest, std::move(rank_s), std::move(rank_spread_s), ""};
}

/// RunPoint::group_rows of typical data.
std::vector<std::int32_t> typical_group_rows(const OperatorCase& each) {
  const std::optional<VertexRows> rows = vertex_rows_of(each.attributes);
  if (!rows) return {};
  const auto operand = static_cast<std::size_t>(rows->operand);
  const Shape& whole = each.operand_places[operand].whole;
  const std::int64_t samples = whole.empty() ? each.operands[operand].shape[0] : whole[0];
  return std::vector<std::int32_t>(static_cast<std::size_t>(samples / rows->group),
                                   static_cast<std::int32_t>(rows->typical));
}

}  // namespace

double process_time_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

InstrumentOptions usual_options(DeviceKind kind) {
  InstrumentOptions options;
  if (kind != DeviceKind::cuda) return options;
  options.warm_up_s = 20e-3;
  options.least_sample_s = 10e-3;
  options.cold_bytes = 256 << 20;
  return options;
}

DeviceInstrument::DeviceInstrument(Device& device, Communicator& world, int ranks_per_node,
                                   const InstrumentOptions& options)
    : device_(device),
      world_(world),
      ranks_per_node_(ranks_per_node),
      options_(options),
      stream_(device.make_stream()),
      exchange_(device, world),
      memory_(device, *stream_, options.cold_bytes, options.most_bytes) {
  world.set_nodes(consecutive_nodes(world.size(), ranks_per_node));
}

DeviceInstrument::Repeated DeviceInstrument::repeated(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t last = seconds.size() - 1;
  return {seconds[seconds.size() / 2], seconds[last - last / 4] - seconds[last / 4]};
}

double DeviceInstrument::seconds_of(const Work& work, int calls) {
  const double begin = monotonic_s();
  for (int call = 0; call < calls; ++call) work(call);
  stream_->synchronize();
  return monotonic_s() - begin;
}

int DeviceInstrument::calls_per_sample(double one_call_s) const {
  return static_cast<int>(
      std::clamp(std::ceil(options_.least_sample_s / std::max(one_call_s, 1e-9)), 1.0, 1.0 * kMostCalls));
}

DeviceInstrument::Repeated DeviceInstrument::sample(const Work& work) {
  seconds_of(work, 1);  // what the first call alone pays for
  int calls = calls_per_sample(seconds_of(work, 1));
  for (double warm_s = 0; warm_s < options_.warm_up_s;) {
    const double batch_s = seconds_of(work, calls);
    warm_s += batch_s;
    calls = calls_per_sample(batch_s / calls);  // without the wait that a single call is followed by
  }
  std::vector<double> seconds;
  int done = 0;
  for (int r = 0; r < options_.repetitions; ++r, done += calls) {
    const double processor_begin = options_.processor_s();
    double elapsed = seconds_of([&](int call) { work(done + call); }, calls);
    if (options_.cores_of_rank > 0)
      elapsed = (options_.processor_s() - processor_begin) / options_.cores_of_rank;
    seconds.push_back(elapsed / calls);
  }
  return repeated(std::move(seconds));
}

Timing DeviceInstrument::together(Repeated mine, const std::string& why) {
  std::vector<double> rank_s, rank_spread_s;
  bool failed = false;
  const double numbers[] = {mine.median_s, mine.spread_s};
  for (const std::vector<double>& each : exchange_.gather(numbers)) {
    rank_s.push_back(each[0]);
    rank_spread_s.push_back(each[1]);
    failed = failed || each[0] == kFailed;
  }
  if (!failed) return timing_of(std::move(rank_s), std::move(rank_spread_s));
  Timing timing;
  const std::vector<std::string> reasons = exchange_.gather(why);
  for (std::size_t r = reasons.size(); r-- > 0;)
    if (rank_s[r] == kFailed) timing.why = "rank " + std::to_string(r) + ": " + reasons[r];
  return timing;
}

DeviceInstrument::Work DeviceInstrument::operator_work(const OperatorCase& each) {
  const std::shared_ptr<Kernel> kernel =  // a std::function can be copied
      make_kernel(device_, *each.op, {each.operands, each.results, each.attributes});
  return [this, kernel, calls = memory_.calls(each), group_rows = typical_group_rows(each)](int number) {
    const SampleMemory::Call& call = calls[static_cast<std::size_t>(number) % calls.size()];
    RunPoint point{1, 0, 0};
    point.group_rows = group_rows;
    kernel->run(*stream_, call.operands, call.results, call.workspace, false, point);
  };
}

Timing DeviceInstrument::time(const OperatorCase& each) {
  Repeated mine{kFailed};
  std::string why;
  exchange_.barrier();  // all ranks at once
  try {
    mine = sample(operator_work(each));
  } catch (const Error& error) {
    why = error.happened();
  } catch (const std::bad_alloc&) {
    why = "no memory is left";
  }
  return together(mine, why);
}

TimingBeside DeviceInstrument::time_beside_sums(const OperatorCase& each, std::int64_t bytes) {
  Work work;
  std::optional<SumsBeside> sums;
  std::string why;
  try {
    work = operator_work(each);
    sums.emplace(device_, world_, bytes);
    sample(work);  // a device that was idle has another clock
  } catch (const Error& error) {
    why = error.happened();
  } catch (const std::bad_alloc&) {
    why = "no memory is left";
  }
  if (largest(why.empty() ? 0 : 1) > 0) {
    const Timing failed = together({why.empty() ? 0 : kFailed}, why);
    return {failed, failed};
  }
  const auto seconds_of_sums = [&](int calls) {
    exchange_.barrier();
    const double begin = monotonic_s();
    sums->start(calls);
    sums->finish();
    return monotonic_s() - begin;
  };
  const int calls = calls_per_sample(seconds_of(work, 1));
  seconds_of_sums(1);
  const int all_sums = largest(static_cast<int>(std::clamp(
      std::ceil(kTimesAsLong * seconds_of(work, calls) / seconds_of_sums(1)), 1.0, 1.0 * kMostCalls)));
  std::vector<double> alone, beside;
  for (int r = 0; r < std::max(options_.repetitions, kLeastRounds); ++r) {
    exchange_.barrier();
    alone.push_back(seconds_of(work, calls) / calls);
    exchange_.barrier();
    sums->start(all_sums);
    beside.push_back(seconds_of(work, calls) / calls);
    sums->finish();
  }
  return {together(repeated(std::move(alone)), ""), together(repeated(std::move(beside)), "")};
}

Timing DeviceInstrument::time_moves(std::int64_t bytes) {
  Repeated mine{kFailed};
  std::string why;
  exchange_.barrier();
  try {
    const auto in = device_.allocate(bytes), out = device_.allocate(bytes);
    const auto from = device_.allocate_staging(bytes), to = device_.allocate_staging(bytes);
    const std::unique_ptr<Stream> leaving = device_.make_stream();
    const std::unique_ptr<Event> has_left = leaving->record();
    stream_->fill_zero(out->data(), bytes);
    stream_->synchronize();
    leaving->copy_to_host(from->data(), out->data(), bytes);
    leaving->synchronize();
    mine = sample([&](int) {
      leaving->copy_to_host(to->data(), out->data(), bytes);
      leaving->record(*has_left);
      stream_->copy_to_device(in->data(), from->data(), bytes);
      stream_->wait(*has_left);
    });
  } catch (const Error& error) {
    why = error.happened();
  } catch (const std::bad_alloc&) {
    why = "no memory is left";
  }
  return together(mine, why);
}

/// Ranks stand in order of their nodes; those that fill no whole group have none.
Communicator* DeviceInstrument::group(GroupShape shape) {
  const auto found = groups_.find(shape);
  if (found != groups_.end()) return found->second.get();
  const int nodes = world_.size() / ranks_per_node_;
  const int across = nodes / shape.nodes, along = ranks_per_node_ / shape.per_node;
  const auto color_of = [&](int rank) {
    const int node = rank / ranks_per_node_ / shape.nodes, place = rank % ranks_per_node_ / shape.per_node;
    return node < across && place < along ? node * along + place : -1;
  };
  std::map<int, std::vector<int>> members;
  for (int rank = 0; rank < world_.size(); ++rank)
    if (const int color = color_of(rank); color >= 0) members[color].push_back(rank);
  std::vector<RankPair> next;  // for shifts, and for messages there and back
  for (const auto& [unused, ranks] : members)
    for (std::size_t r = 0; r < ranks.size(); ++r) next.emplace_back(ranks[r], ranks[(r + 1) % ranks.size()]);
  world_.connect(next);
  return groups_.emplace(shape, world_.split(color_of(world_.rank()))).first->second.get();
}

DeviceInstrument::Work DeviceInstrument::collective_work(const CollectiveCase& each, Communicator& ranks,
                                                         const std::vector<SampleMemory::Message>& messages) {
  const auto at = [&messages](int call) {
    return messages[static_cast<std::size_t>(call) % messages.size()];
  };
  const std::int64_t share = std::max<std::int64_t>(each.bytes / 4 / ranks.size(), 1);  // elements
  switch (each.kind) {
    case CollectiveKind::all_reduce:
      return [this, &ranks, at, bytes = each.bytes](int call) {
        ranks.all_reduce(*stream_, at(call).from, bytes / 4, DType::f32, Reduction::sum);
      };
    case CollectiveKind::all_gather:
      return [this, &ranks, at, share](int call) {
        ranks.all_gather(*stream_, at(call).from, at(call).to, 4 * share);
      };
    case CollectiveKind::reduce_scatter:
      return [this, &ranks, at, share](int call) {
        ranks.reduce_scatter(*stream_, at(call).from, at(call).to, share, DType::f32, Reduction::sum);
      };
    case CollectiveKind::all_to_all:
      return [this, &ranks, at, share](int call) {
        ranks.all_to_all(*stream_, at(call).from, at(call).to, 4 * share);
      };
    case CollectiveKind::shift:
      return [this, &ranks, at, bytes = each.bytes](int call) {
        const ShiftBuffer tensor{at(call).from, at(call).to, bytes};
        shift(ranks, *stream_, {&tensor, 1});
      };
    case CollectiveKind::send:
      break;
  }
  return [this, &ranks, at, bytes = each.bytes](int call) {  // there and back
    const int other = 1 - ranks.rank();
    if (ranks.rank() == 0) ranks.send(*stream_, at(call).from, bytes, other);
    ranks.receive(*stream_, at(call).to, bytes, other);
    if (ranks.rank() == 1) ranks.send(*stream_, at(call).from, bytes, other);
    ranks.wait_sends(*stream_);
  };
}

Timing DeviceInstrument::time(const CollectiveCase& each) {
  std::vector<SampleMemory::Message> messages;
  std::string why;
  try {
    messages = memory_.messages(each.bytes);
  } catch (const Error& error) {
    why = error.happened();
  }
  if (largest(why.empty() ? 0 : 1) > 0) return together({why.empty() ? 0 : kFailed}, why);

  Communicator* const groups = group(each.group);
  // A message is priced as having its link to itself, so of pairs that are on the same nodes one sends.
  const bool is_beside = world_.rank() % ranks_per_node_ >= each.group.per_node;
  Communicator* const ranks = each.kind == CollectiveKind::send && is_beside ? nullptr : groups;
  const Work work = ranks ? collective_work(each, *ranks, messages) : Work([](int) {});
  seconds_of(work, 1);
  const double one_call = seconds_of(work, 1);
  const int calls = largest(calls_per_sample(one_call) * (ranks ? 1 : 0));
  const int ways = each.kind == CollectiveKind::send ? 2 : 1;
  std::vector<double> seconds;
  for (int r = 0; r < options_.repetitions; ++r) {
    exchange_.barrier();
    seconds.push_back(seconds_of([&](int call) { work(r * calls + call); }, calls) / (ways * calls));
  }
  // A collective lasts as long as on its slowest rank.
  const std::vector<std::vector<double>> all = exchange_.gather(seconds);
  std::vector<double> slowest(seconds.size(), 0);
  for (const std::vector<double>& rank : all)
    for (std::size_t r = 0; r < slowest.size(); ++r) slowest[r] = std::max(slowest[r], rank[r]);
  Timing timing = together(ranks ? repeated(seconds) : Repeated{kNone}, "");
  timing.median_s = median(slowest);
  return timing;
}

int DeviceInstrument::largest(int mine) {
  const double value = mine;
  double most = value;
  for (const std::vector<double>& each : exchange_.gather(std::span(&value, 1)))
    most = std::max(most, each[0]);
  return static_cast<int>(most);
}

}  // namespace alpa
