#include "libalpa/planner/gradient_owners.h"

#include <algorithm>
#include <map>

#include "libalpa/base/words.h"
#include "libalpa/plan/owned_updates.h"

namespace alpa {
namespace {

constexpr Word<OwnerRule> kOwners[] = {
    {"none", OwnerRule::none, "no: every device updates all of it"},
    {"first", OwnerRule::first, "the first device updates everything, as AutoDist's PS does"},
    {"balanced", OwnerRule::balanced,
     "each parameter whole, at the device that has the fewest bytes so far, as AutoDist's PSLoadBalancing "
     "does"},
    {"parts", OwnerRule::parts, "likewise each in the fewest equal parts, as AutoDist's PartitionedPS does"},
    {"uneven", OwnerRule::uneven,
     "likewise each in the fewest parts that are not equal, as AutoDist's UnevenPartitionedPS does"},
    {"searched", OwnerRule::searched,
     "likewise each in --owner-parts, or the number of parts that is the fastest for all, as Parallax "
     "searches it"},
    {"even", OwnerRule::even, "rows of each bucket in shares of as many bytes"},
};

/// An update that can be shared out, and between how many.
struct Ownable {
  OwnableUpdate update;
  MeshIndex mesh;
  int places = 0;
  std::int64_t bytes() const { return update.rows * update.row_bytes; }
};

class Owners {
 public:
  Owners(OwnerRule rule, int parts) : rule_(rule), parts_(parts) {}

  /// [update] of one bucket, along one axis.
  std::vector<std::vector<OwnedRows>> of(const std::vector<Ownable>& updates) {
    std::vector<std::vector<OwnedRows>> owners;
    if (rule_ == OwnerRule::even) return even_shares(updates);
    for (const Ownable& each : updates) {
      std::vector<OwnedRows>& parts = owners.emplace_back();
      const std::int64_t rows = each.update.rows, count = parts_of(each);
      for (std::int64_t part = 0; part < count; ++part) {
        const std::int64_t own = rows * (part + 1) / count - rows * part / count;
        parts.push_back({own, take(each, own * each.update.row_bytes)});
      }
    }
    return owners;
  }

 private:
  std::int64_t parts_of(const Ownable& each) const {
    if (rule_ == OwnerRule::searched)
      return std::min<std::int64_t>(parts_ > 0 ? parts_ : each.places, each.update.rows);
    if (rule_ == OwnerRule::parts || rule_ == OwnerRule::uneven)
      for (std::int64_t parts = 2; parts <= std::min<std::int64_t>(each.places, each.update.rows); ++parts)
        if ((each.update.rows % parts == 0) == (rule_ == OwnerRule::parts)) return parts;
    return 1;
  }

  int take(const Ownable& each, std::int64_t bytes) {
    std::vector<std::int64_t>& taken = taken_[{each.mesh, each.update.axis}];
    taken.resize(static_cast<std::size_t>(each.places));
    const auto at = rule_ == OwnerRule::first ? taken.begin() : std::ranges::min_element(taken);
    *at += bytes;
    return static_cast<int>(at - taken.begin());
  }

  /// A row is of the device in whose share its middle lies.
  static std::vector<std::vector<OwnedRows>> even_shares(const std::vector<Ownable>& updates) {
    double all = 0, before = 0;
    for (const Ownable& each : updates) all += static_cast<double>(each.bytes());
    std::vector<std::vector<OwnedRows>> owners;
    for (const Ownable& each : updates) {
      std::vector<OwnedRows>& parts = owners.emplace_back();
      const auto row_bytes = static_cast<double>(each.update.row_bytes);
      std::int64_t first = 0;
      for (int place = 0; place < each.places; ++place) {
        const double end_bytes = all * (place + 1) / each.places;
        const auto end = place + 1 == each.places
                             ? each.update.rows
                             : std::clamp(static_cast<std::int64_t>((end_bytes - before) / row_bytes + 0.5),
                                          first, each.update.rows);
        if (end > first) parts.push_back({end - first, place});
        first = end;
      }
      before += static_cast<double>(each.bytes());
    }
    return owners;
  }

  OwnerRule rule_;
  int parts_;
  std::map<std::pair<MeshIndex, int>, std::vector<std::int64_t>> taken_;  ///< by mesh and axis, [place]
};

/// Larger ones are split between servers; the others go whole to the one that has the least so far.
constexpr std::int64_t kWholeBytes = 1 << 16;

/// The rows of an update that each server has; puts their bytes to its load.
std::vector<OwnedRows> at_servers(const OwnableUpdate& update, std::vector<std::int64_t>& load) {
  const bool is_whole = update.rows * update.row_bytes <= kWholeBytes || update.rows < std::ssize(load);
  const std::int64_t each = is_whole ? 0 : update.rows / std::ssize(load),
                     at_once = is_whole ? update.rows : 1;
  std::vector<std::int64_t> shares(load.size(), each);
  for (std::int64_t& of : load) of += each * update.row_bytes;
  for (std::int64_t left = update.rows - each * std::ssize(load); left > 0; left -= at_once) {
    const auto least = std::ranges::min_element(load);
    *least += at_once * update.row_bytes;
    shares[static_cast<std::size_t>(least - load.begin())] += at_once;
  }
  std::vector<OwnedRows> owners;
  for (std::size_t server = 0; server < shares.size(); ++server)
    if (shares[server] > 0) owners.push_back({shares[server], static_cast<int>(server)});
  return owners;
}

/// Those of a bucket that have owners and those that have none make a bucket each, or are by themselves.
std::vector<GradientSync> with_whole_buckets(std::map<ValueIndex, GradientSync> all) {
  std::map<std::pair<int, bool>, std::vector<GradientSync*>>
      buckets;  // by number, and whether they have owners
  for (auto& [sum, sync] : all)
    if (sync.bucket >= 0) buckets[{sync.bucket, !sync.owners.empty()}].push_back(&sync);
  int number = 0;
  for (const auto& [key, sums] : buckets) {
    const int bucket = sums.size() > 1 ? number++ : -1;
    for (GradientSync* sync : sums) sync->bucket = bucket;
  }
  std::vector<GradientSync> sync;
  for (auto& [sum, each] : all) {
    if (!each.owners.empty()) each.parts = 1;
    if (!each.is_by_itself_when_ready()) sync.push_back(std::move(each));
  }
  return sync;
}

/// plan.sync with the owners [update] that `choose` has of updates whose last sums are one bucket's, as those
/// are added up together, or of one whose last sum is by itself.
template <typename Choose>
std::vector<GradientSync> with_chosen_owners(const Plan& plan, const GraphUses& uses, Choose&& choose) {
  std::map<ValueIndex, GradientSync> all;
  int buckets = 0;
  for (const GradientSync& sync : plan.sync) {
    all[sync.sum] = {sync.sum, sync.bucket, sync.turn, {}, sync.parts};
    buckets = std::max(buckets, sync.bucket + 1);
  }
  const Placement placement(plan, uses);
  for (const MeshIndex m : plan.meshes.indices()) {
    std::vector<std::pair<int, std::vector<Ownable>>> together;  // by bucket
    int alone = buckets;
    for (OwnableUpdate& update : ownable_updates(placement, m, Conversions(plan.cluster, plan.meshes[m]))) {
      const int of_last = plan.bucket_of(update.sums.back()), bucket = of_last >= 0 ? of_last : alone++;
      auto at = std::ranges::find(together, bucket, [](const auto& each) { return each.first; });
      if (at == together.end()) at = together.insert(at, {bucket, {}});
      const int places = plan.meshes[m].shape[update.axis];
      at->second.push_back({std::move(update), m, places});
    }
    for (const auto& [bucket, updates] : together) {
      const std::vector<std::vector<OwnedRows>> owners = choose(updates);
      for (std::size_t i = 0; i < updates.size(); ++i)
        for (const ValueIndex sum : updates[i].update.sums) {
          all[sum].sum = sum;
          all[sum].owners = owners[i];
        }
    }
  }
  return with_whole_buckets(std::move(all));
}

}  // namespace

std::span<const Word<OwnerRule>> owner_words() { return kOwners; }
OwnerRule find_owner_rule(const std::string& name) {
  return value_named(name, owner_words(), "way to share updates out");
}

std::vector<GradientSync> with_owners(const Plan& plan, const GraphUses& uses, OwnerRule rule, int parts) {
  Owners owners(rule, parts);
  return with_chosen_owners(plan, uses, [&](const std::vector<Ownable>& updates) {
    return rule == OwnerRule::none ? std::vector<std::vector<OwnedRows>>(updates.size()) : owners.of(updates);
  });
}

std::vector<GradientSync> with_rows_at_servers(const Plan& plan, const GraphUses& uses) {
  std::vector<std::int64_t> load(static_cast<std::size_t>(plan.cluster.server_devices()));
  return with_chosen_owners(plan, uses, [&](const std::vector<Ownable>& updates) {
    std::vector<std::vector<OwnedRows>> owners;
    for (const Ownable& each : updates) owners.push_back(at_servers(each.update, load));
    return owners;
  });
}

std::vector<GradientSync> with_owners_of(const std::vector<GradientSync>& planned, const Plan& plan,
                                         const GraphUses& uses) {
  return with_chosen_owners(plan, uses, [&](const std::vector<Ownable>& updates) {
    std::vector<std::vector<OwnedRows>> owners;
    for (const Ownable& each : updates) {
      const auto known = std::ranges::find(planned, each.update.sums.back(), &GradientSync::sum);
      owners.push_back(known == planned.end() ? std::vector<OwnedRows>{} : known->owners);
    }
    return owners;
  });
}

}  // namespace alpa
