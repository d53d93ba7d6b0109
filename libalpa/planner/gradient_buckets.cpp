#include "libalpa/planner/gradient_buckets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "libalpa/base/infinity.h"
#include "libalpa/base/philox.h"
#include "libalpa/base/words.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/sum_turns.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"

namespace alpa {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

constexpr Word<BucketSizes> kBuckets[] = {
    {"each", {}, "every one by itself, as soon as its gradient is there"},
    {"ddp",
     {25 * kMiB, kMiB},
     "in buckets of 25 MiB, the first of 1 MiB, as PyTorch's DistributedDataParallel does"},
    {"horovod", {128 * kMiB, 0}, "in buckets of 128 MiB, as Horovod does"},
    {"count", {std::int64_t{1} << 62, 0, false, 128}, "128 at a time, as AutoDist's AllReduce does"},
    {"one", {std::int64_t{1} << 62, 0}, "all at once"},
    {"parts",
     {0, 0, false, 0, BucketSizes::Parts::of_rows},
     "every one by itself in the fewest equal parts of its rows, no more than devices, as AutoDist's "
     "PartitionedAR does"},
    {"drawn-parts",
     {0, 0, false, 0, BucketSizes::Parts::of_drawn_axis},
     "likewise of an axis that is drawn, as AutoDist's RandomAxisPartitionAR does"},
};

struct Bucket {
  std::vector<ReducedGradient> sums;
  std::int64_t bytes = 0;

  bool is_full(const ReducedGradient& next, std::int64_t most, const BucketSizes& sizes) const {
    if (sizes.sums > 0 && std::ssize(sums) >= static_cast<std::int64_t>(sizes.sums)) return true;
    return sizes.is_least ? bytes >= most : bytes + buffer_bytes(next.tile) > most;
  }
};

/// Those of a mesh, in the order in which they are full.
std::vector<Bucket> buckets_of(const std::vector<ReducedGradient>& sums, const BucketSizes& sizes) {
  std::vector<Bucket> full, open;  // of those open no two can share
  for (const ReducedGradient& sum : sums) {
    auto at = std::ranges::find_if(
        open, [&](const Bucket& bucket) { return can_share_bucket(bucket.sums.front(), sum); });
    const std::int64_t most = full.empty() && sizes.first_bytes > 0 ? sizes.first_bytes : sizes.bytes;
    if (at != open.end() && at->is_full(sum, most, sizes)) {
      full.push_back(std::move(*at));
      open.erase(at);
      at = open.end();
    }
    if (at == open.end()) at = open.insert(at, Bucket());
    at->sums.push_back(sum);
    at->bytes += buffer_bytes(sum.tile);
  }
  std::ranges::move(open, std::back_inserter(full));
  return full;
}

/// [mesh] When the gradient of each sum is there, where its collectives do not take turns with computation:
/// in a step of fewer micro-batches, of which the last are as those of the plan.
Indexed<MeshIndex, std::map<ValueIndex, double>> ready_times(const Plan& plan, const Graph& graph,
                                                             const CostModel& costs) {
  Indexed<MeshIndex, std::map<ValueIndex, double>> ready_s(plan.meshes.size());
  if (is_in_turn(LaneKind::collective, plan.overlap)) return ready_s;
  Plan shorter = plan;
  shorter.micro_batches = micro_batches_to_be_steady(plan);
  const Program program = lower(graph, shorter);
  for (const TimelineRow& row : simulate(program, costs, true).rows) {
    const MeshProgram& mesh = program.meshes[row.mesh];
    const Segment& segment = mesh.segments[row.segment];
    if (segment.kind == SegmentKind::update) continue;
    for (const BufferIndex b : buffers_written(segment.instructions[row.instruction])) {
      const Buffer& buffer = mesh.buffers[b];
      if (buffer.residence != Residence::step || buffer.value < 0) continue;
      double& ready = ready_s[row.mesh][buffer.value];
      ready = std::max(ready, row.start_s + row.duration_s);
    }
  }
  return ready_s;
}

/// Those of a mesh that can share, group by group.
std::vector<std::vector<ReducedGradient>> alike(std::vector<ReducedGradient> sums) {
  std::vector<std::vector<ReducedGradient>> groups;
  for (ReducedGradient& sum : sums) {
    const auto at =
        std::ranges::find_if(groups, [&](const auto& group) { return can_share_bucket(group.front(), sum); });
    (at == groups.end() ? groups.emplace_back() : *at).push_back(std::move(sum));
  }
  return groups;
}

/// What a bucket of such sums takes, by its bytes; of many layers alike it is asked for the same again and
/// again.
std::function<double(std::int64_t)> bucket_seconds(const ReducedGradient& any, const DeviceMesh& mesh,
                                                   const CostModel& costs) {
  return
      [&any, &mesh, &costs, known = std::unordered_map<std::int64_t, double>()](std::int64_t bytes) mutable {
        const auto [at, is_new] = known.try_emplace(bytes);
        if (!is_new) return at->second;
        const TensorType tile{any.tile.dtype, {bytes / byte_count({any.tile.dtype, {}})}};
        for (const ConversionStep& step : any.steps)
          at->second += step_seconds(step, tile, tile, mesh, costs);
        return at->second;
      };
}

/// Of buckets that have more than one sum.
class SyncOfPlan {
 public:
  void add(const std::vector<ReducedGradient>& bucket) {
    if (bucket.size() < 2) return;
    for (const ReducedGradient& sum : bucket) sync_.push_back({sum.sum, buckets_});
    ++buckets_;
  }
  std::vector<GradientSync> take() {
    std::ranges::sort(sync_, {}, &GradientSync::sum);
    return std::move(sync_);
  }

 private:
  std::vector<GradientSync> sync_;
  int buckets_ = 0;
};

/// The fewest equal parts of an extent, at most so many (AutoDist has as many as a prime extent is long); 1:
/// there are none.
int fewest_parts(std::int64_t extent, int most) {
  for (int parts = 2; parts <= most; ++parts)
    if (extent % parts == 0) return parts;
  return 1;
}

int parts_of(const ReducedGradient& sum, BucketSizes::Parts parts, const MeshShape& mesh) {
  const Shape& shape = sum.tile.shape;
  const ConversionStep& step = sum.steps.front();
  if (shape.empty() || step.wire_type) return 1;
  std::vector<std::int64_t> extents;  // that can be split
  for (const std::int64_t extent : shape)
    if (extent > 1) extents.push_back(extent);
  if (extents.empty()) return 1;
  constexpr std::uint64_t seed = 1;
  const bool draws = parts == BucketSizes::Parts::of_drawn_axis;
  const std::size_t drawn =
      philox(seed, static_cast<std::uint64_t>(static_cast<int>(sum.sum)), 0).word[0] % extents.size();
  return fewest_parts(draws ? extents[drawn] : shape[0], mesh[static_cast<std::size_t>(step.axis)]);
}

}  // namespace

std::span<const Word<BucketSizes>> bucket_words() { return kBuckets; }
BucketSizes find_buckets(const std::string& name) {
  return value_named(name, bucket_words(), "kind of synchronisation");
}

SumsForBuckets::SumsForBuckets(const Plan& plan, const GraphUses& uses) : uses_(uses) {
  const Placement placement(plan, uses);
  for (const MeshIndex m : plan.meshes.indices()) {
    shapes_.push_back(plan.meshes[m].shape);
    converted_.push_back(converted_gradients(placement, m, Conversions(plan.cluster, plan.meshes[m])));
    std::vector<ReducedGradient>& sums = sums_[sums_.push_back({})];
    std::ranges::copy_if(converted_[m], std::back_inserter(sums),
                         [](const ReducedGradient& sum) { return is_sum_alone(sum.steps); });
  }
}

std::vector<GradientSync> SumsForBuckets::in_buckets(const BucketSizes& sizes) const {
  if (sizes.parts != BucketSizes::Parts::none) return in_parts(sizes.parts);
  if (sizes.bytes == 0) return {};
  SyncOfPlan sync;
  for (const std::vector<ReducedGradient>& sums : sums_)
    for (const Bucket& bucket : buckets_of(sums, sizes)) sync.add(bucket.sums);
  return sync.take();
}

std::vector<GradientSync> SumsForBuckets::in_parts(BucketSizes::Parts parts) const {
  std::vector<GradientSync> sync;
  for (const MeshIndex m : sums_.indices())
    for (const ReducedGradient& sum : sums_[m])
      if (const int count = parts_of(sum, parts, shapes_[m]); count > 1)
        sync.push_back({sum.sum, -1, 0, {}, count});
  std::ranges::sort(sync, {}, &GradientSync::sum);
  return sync;
}

std::vector<GradientSync> SumsForBuckets::in_soonest_buckets(Plan plan, const CostModel& costs) const {
  plan.sync.clear();
  const auto ready_s = ready_times(plan, uses_.graph, costs);
  SyncOfPlan sync;
  for (const MeshIndex m : plan.meshes.indices())
    for (const std::vector<ReducedGradient>& group : alike(sums_[m])) {
      std::vector<ReadySum> ready;
      for (const ReducedGradient& sum : group) {
        const auto at = ready_s[m].find(sum.sum);
        ready.push_back({at == ready_s[m].end() ? 0 : at->second, buffer_bytes(sum.tile)});
      }
      const std::vector<int> bucket_of =
          soonest_buckets(ready, bucket_seconds(group.front(), plan.meshes[m], costs.on(plan.meshes[m])));
      std::vector<ReducedGradient> bucket;
      for (std::size_t i = 0; i < group.size(); ++i) {
        bucket.push_back(group[i]);
        if (i + 1 < group.size() && bucket_of[i + 1] == bucket_of[i]) continue;
        sync.add(bucket);
        bucket.clear();
      }
    }
  return sync.take();
}

std::vector<GradientSync> SumsForBuckets::in_turns(Plan plan, const CostModel& costs) const {
  for (GradientSync& sync : plan.sync)
    sync.turn = 0, sync.owners.clear();  // whose updates may be at any time
  std::erase_if(plan.sync, [](const GradientSync& sync) { return sync.is_by_itself_when_ready(); });
  const auto ready_s = ready_times(plan, uses_.graph, costs);
  struct Together {  // a bucket, or a sum by itself
    std::vector<const ReducedGradient*> sums;
    int bucket = -1;
  };
  std::vector<GradientSync> all;
  for (const MeshIndex m : plan.meshes.indices()) {
    std::map<std::vector<int>, std::vector<Together>> of_axes;  // which take the same lanes
    for (const ReducedGradient& sum : converted_[m]) {
      std::vector<int> axes;
      for (const ConversionStep& step : sum.steps) axes.push_back(step.axis);
      std::vector<Together>& of = of_axes[axes];
      const int bucket = plan.bucket_of(sum.sum);
      const auto known = bucket < 0 ? of.end() : std::ranges::find(of, bucket, &Together::bucket);
      (known == of.end() ? of.emplace_back(Together{{}, bucket}) : *known).sums.push_back(&sum);
    }
    for (const auto& [axes, together] : of_axes) {
      std::vector<WaitingSum> waiting;
      for (const Together& each : together) {
        WaitingSum& now = waiting.emplace_back(WaitingSum{0, seconds(each.sums, plan.meshes[m], costs), -1});
        for (const ReducedGradient* sum : each.sums) {
          const auto ready = ready_s[m].find(sum->sum);
          if (ready != ready_s[m].end()) now.ready_s = std::max(now.ready_s, ready->second);
          const int first_use = first_use_after(uses_, sum->sum);
          now.first_use = now.first_use < 0 ? first_use : std::min(now.first_use, first_use);
        }
      }
      const std::vector<int> turns = turns_by_first_use(waiting);
      for (std::size_t i = 0; i < together.size(); ++i)
        for (const ReducedGradient* sum : together[i].sums)
          all.push_back({sum->sum, together[i].bucket, turns[i], {}, plan.sync_of(sum->sum).parts});
    }
  }
  std::ranges::sort(all, {}, &GradientSync::sum);
  return all;
}

/// One after another, or of more than one as a bucket.
double SumsForBuckets::seconds(const std::vector<const ReducedGradient*>& sums, const DeviceMesh& mesh,
                               const CostModel& costs) const {
  const ReducedGradient& first = *sums.front();
  if (sums.size() > 1) {
    std::int64_t bytes = 0;
    for (const ReducedGradient* sum : sums) bytes += buffer_bytes(sum->tile);
    return bucket_seconds(first, mesh, costs.on(mesh))(bytes);
  }
  double all_s = 0;
  TensorType before = first.tile;
  for (const ConversionStep& step : first.steps) {
    const TensorType after = tile_type(value_of(uses_.graph, first.sum).type, step.after, mesh.shape);
    all_s += step_seconds(step, before, after, mesh, costs.on(mesh));
    before = after;
  }
  return all_s;
}

std::vector<int> soonest_buckets(const std::vector<ReadySum>& sums,
                                 const std::function<double(std::int64_t)>& seconds) {
  const std::size_t count = sums.size();
  std::vector<double> finish(count + 1, infinity);  // of the first so many
  std::vector<std::size_t> begin(count + 1, 0);     // of the last bucket of these
  finish[0] = 0;
  for (std::size_t end = 1; end <= count; ++end) {
    std::int64_t bytes = 0;
    double ready = 0;
    for (std::size_t first = end; first-- > 0;) {
      bytes += sums[first].bytes;
      ready = std::max(ready, sums[first].ready_s);
      const double done = std::max(finish[first], ready) + seconds(bytes);
      if (done < finish[end]) finish[end] = done, begin[end] = first;
    }
  }
  std::vector<int> bucket(count);
  int number = 0;
  for (std::size_t end = count; end > 0; end = begin[end], ++number)
    std::fill(bucket.begin() + static_cast<std::ptrdiff_t>(begin[end]),
              bucket.begin() + static_cast<std::ptrdiff_t>(end), number);
  for (int& of : bucket) of = number - 1 - of;  // they were found from the last
  return bucket;
}

}  // namespace alpa
