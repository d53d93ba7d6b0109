#include "libalpa/profiler/measure.h"

#include <algorithm>
#include <set>

namespace alpa {
namespace {

constexpr int kGoesOn = 0, kTimeIsUp = 1, kStopped = 2;

/// How fast one kind of sample goes, for the estimate of the time left.
struct Pace {
  double weight_done = 0, weight_left = 0, elapsed_s = 0;

  void add(double weight, double seconds) {
    weight_done += weight;
    weight_left -= weight;
    elapsed_s += seconds;
  }
  double left_s() const {
    const double first_guess_s = 0.01;
    return std::max(weight_left, 0.0) * (weight_done > 0 ? elapsed_s / weight_done : first_guess_s);
  }
};

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// As many ranks on each node.
std::vector<NodeTime> on_nodes(const Timing& timing, const std::vector<int>& nodes) {
  if (timing.has_failed() || nodes.empty()) return {};
  std::vector<NodeTime> times(static_cast<std::size_t>(*std::max_element(nodes.begin(), nodes.end())) + 1);
  const std::size_t ranks = timing.rank_s.size() / nodes.size();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    std::vector<double> took_part;
    NodeTime& time = times[nodes[n]];
    for (std::size_t r = n * ranks; r < (n + 1) * ranks; ++r) {
      if (timing.rank_s[r] < 0) continue;
      took_part.push_back(timing.rank_s[r]);
      time.spread_s = std::max(time.spread_s, timing.rank_spread_s[r]);
    }
    std::sort(took_part.begin(), took_part.end());
    if (!took_part.empty()) time.median_s = took_part[took_part.size() / 2];
  }
  return times;
}

class Measuring {
 public:
  Measuring(Profile known, Instrument& instrument, const MeasureOptions& options,
            const MeasureSurroundings& around)
      : instrument_(instrument),
        options_(options),
        around_(around),
        begin_s_(around.now_s()),
        published_s_(begin_s_),
        reported_s_(begin_s_) {
    result_.profile = std::move(known);
    if (const auto& reference = result_.profile.reference; !reference.empty())
      run_ = reference.back().run + 1;
  }

  MeasureResult run(const Workload& work) {
    std::vector<const CollectiveCase*> collectives;
    std::vector<const OperatorCase*> operators;
    for (const CollectiveCase& each : work.collectives)
      if (!is_known(each)) collectives.push_back(&each);
    for (const OperatorCase& each : work.operators)
      if (!is_known(each)) operators.push_back(&each);
    result_.reused = static_cast<int>(work.collectives.size() + work.operators.size() - collectives.size() -
                                      operators.size());
    progress_.total = static_cast<int>(collectives.size() + operators.size());
    for (const OperatorCase* each : operators) operators_.weight_left += weight(*each);
    collectives_.weight_left = static_cast<double>(collectives.size());

    if (progress_.total > 0) {
      take_reference(work);
      begin_s_ = around_.now_s();  // so that a short time is not all spent on it
    }
    for (const CollectiveCase* each : collectives)
      if (goes_on()) take(*each);
    if (!collectives.empty()) take_reference(work);
    for (std::size_t i = 0; i < operators.size(); ++i) {
      if (goes_on()) take(*operators[i]);
      if (quarter(i + 1, operators.size()) > quarter(i, operators.size())) take_reference(work);
    }
    result_.left = progress_.total - progress_.done;
    if (around_.publish) around_.publish(result_.profile);
    return std::move(result_);
  }

 private:
  bool is_known(const OperatorCase& each) const {
    const auto found = result_.profile.operators.find(each.signature);
    return found != result_.profile.operators.end() && found->second.status == SampleStatus::measured;
  }

  bool is_known(const CollectiveCase& each) const {
    return std::any_of(result_.profile.collectives.begin(), result_.profile.collectives.end(),
                       [&](const CollectiveSample& sample) {
                         return sample.kind == each.kind && sample.group == each.group &&
                                sample.bytes == each.bytes;
                       });
  }

  /// A sample has a least duration, and grows with its operator.
  double weight(const OperatorCase& each) const {
    return 1 + 1e3 * each.least_seconds(result_.profile.cluster);
  }

  /// Asked alike by all ranks, so that none waits for one that has stopped.
  bool goes_on() {
    if (is_over_) return false;
    const bool time_is_up =
        options_.time_budget_s > 0 && around_.now_s() - begin_s_ >= options_.time_budget_s;
    const int reason =
        instrument_.largest(around_.wants_stop() ? kStopped : (time_is_up ? kTimeIsUp : kGoesOn));
    is_over_ = reason != kGoesOn;
    result_.was_stopped = reason == kStopped;
    return !is_over_;
  }

  static std::size_t quarter(std::size_t done, std::size_t all) { return 4 * done / all; }

  void take_reference(const Workload& work) {
    if (!work.reference || !goes_on()) return;
    const double at_s = around_.now_s() - begin_s_;
    const Timing timing = instrument_.time(*work.reference);
    if (timing.has_failed()) return;
    result_.profile.reference.push_back(
        {work.reference->signature, run_, at_s, timing.median_s, largest(timing.rank_spread_s)});
  }

  void take(const OperatorCase& each) {
    const double begin = around_.now_s();
    const Timing timing = instrument_.time(each);
    OperatorSample& sample = result_.profile.operators[each.signature];
    sample = {.flops = each.flops,
              .bytes = each.bytes,
              .low_precision = each.is_low_precision(),
              .status = SampleStatus::failed};
    if (!timing.has_failed()) {
      sample.median_s = timing.median_s;
      sample.spread_s = timing.spread_s;
      sample.sample_spread_s = largest(timing.rank_spread_s);
      sample.on_nodes = on_nodes(timing, around_.nodes);
      sample.status = SampleStatus::measured;
    }
    operators_.add(weight(each), around_.now_s() - begin);
    settle(timing, each.signature);
  }

  void take(const CollectiveCase& each) {
    const double begin = around_.now_s();
    const Timing timing = instrument_.time(each);
    if (!timing.has_failed()) {
      const CollectiveSample sample{each.kind,
                                    each.group,
                                    each.bytes,
                                    timing.median_s,
                                    timing.spread_s,
                                    largest(timing.rank_spread_s),
                                    on_nodes(timing, around_.nodes)};
      auto& all = result_.profile.collectives;
      all.insert(std::upper_bound(all.begin(), all.end(), sample,
                                  [](const auto& a, const auto& b) { return a.key() < b.key(); }),
                 sample);
    }
    collectives_.add(1, around_.now_s() - begin);
    settle(timing, collective_name(each.kind) + (" of " + std::to_string(each.bytes) + " bytes"));
  }

  void settle(const Timing& timing, const std::string& what) {
    ++(timing.has_failed() ? result_.failed : result_.measured);
    if (timing.has_failed() && around_.failed) around_.failed(what, timing.why);
    ++progress_.done;
    const double now = around_.now_s();
    if (around_.progress && now - reported_s_ >= options_.progress_every_s) {
      reported_s_ = now;
      progress_.elapsed_s = now - begin_s_;
      progress_.left_s = collectives_.left_s() + operators_.left_s();
      around_.progress(progress_);
    }
    if (around_.publish && now - published_s_ >= options_.publish_every_s) {
      published_s_ = now;
      around_.publish(result_.profile);
    }
  }

  Instrument& instrument_;
  const MeasureOptions& options_;
  const MeasureSurroundings& around_;
  MeasureResult result_;
  MeasureProgress progress_;
  double begin_s_, published_s_, reported_s_;
  int run_ = 0;
  Pace collectives_, operators_;
  bool is_over_ = false;
};

}  // namespace

MeasureResult measure(const Workload& work, Profile known, Instrument& instrument,
                      const MeasureOptions& options, const MeasureSurroundings& around) {
  return Measuring(std::move(known), instrument, options, around).run(work);
}

Workload only(Workload work, const std::vector<std::string>& signatures) {
  const std::set<std::string> wanted(signatures.begin(), signatures.end());
  std::erase_if(work.operators, [&](const OperatorCase& each) { return !wanted.contains(each.signature); });
  return work;
}

}  // namespace alpa
