#include "apps/plan_costs.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/cluster/noise.h"
#include "libalpa/cluster/profile_file.h"

namespace alpa {

std::string warning_of(const std::filesystem::path& file, const Profile& profile) {
  const std::string warning = noise_warning(noise_of(profile));
  return warning.empty() ? "" : fmt::format("'{}': {}", file.string(), warning);
}

Cluster with_servers_of(const Plan& plan, Cluster machines) {
  machines.servers = plan.cluster.servers;
  if (machines.servers > 0) machines.nodes = plan.cluster.nodes;
  return machines;
}

PlanCosts costs_of(const Plan& plan, const std::filesystem::path& profile_path) {
  const bool from_profile = !plan.profile_fingerprint.empty();
  const std::string origin = from_profile ? "the profile that the plan was made from (" +
                                                plan.profile_fingerprint + "; give it with --profile)"
                                          : "the cluster's numbers, which the plan was made from";
  const auto remark = [&](const std::string& costs) {
    const Prediction& own = plan.prediction;
    return fmt::format(" with {}; {} with {}", costs, step_time_text(own.step_s, own.step_error_s), origin);
  };
  if (profile_path.empty())
    return {CostModel(plan.cluster),
            from_profile ? remark("costs estimated from the numbers of cluster '" + plan.cluster.name + "'")
                         : ""};
  const Profile profile = read_profile(profile_path);
  const std::string fingerprint = profile_fingerprint(profile);
  if (fingerprint == plan.profile_fingerprint)
    return {CostModel(profile).extrapolated(plan.cluster), "", warning_of(profile_path, profile)};
  return {CostModel(profile).extrapolated(with_servers_of(plan, profile.cluster)),
          remark(fmt::format("the costs of '{}' ({})", profile_path.string(), fingerprint)),
          warning_of(profile_path, profile)};
}

std::optional<Profile> read_planning_profile(const std::filesystem::path& file, Log& log) {
  if (file.empty()) return std::nullopt;
  Profile profile = read_profile(file);
  if (const std::string warning = warning_of(file, profile); !warning.empty()) log.warning(warning);
  if (!profile.corrections.empty())
    log.info(fmt::format("'{}' is calibrated by run '{}'", file.string(), profile.corrections.back().run));
  return profile;
}

PlanningCosts planning_costs(const std::optional<Profile>& profile, const std::filesystem::path& cluster_file,
                             Log& log) {
  if (!profile && cluster_file.empty())
    throw Error(ErrorKind::usage, "neither --profile nor --cluster is given",
                "--profile profile.h5 of alpa-profile, or --cluster configs/clusters/NAME.toml");
  if (!profile) return {CostModel(read_cluster(cluster_file))};
  const std::string fingerprint = profile_fingerprint(*profile);
  if (cluster_file.empty()) return {CostModel(*profile), fingerprint, profile->cluster};
  const auto [cluster, differences] = read_cluster_beside(profile->cluster, cluster_file);
  if (!differences.empty())
    log.warning(
        fmt::format("'{}' is not of the machines that the profile was measured on ({}): measured costs are "
                    "extrapolated, each by as much as its estimate changes",
                    cluster_file.string(), differences));
  return {CostModel(*profile).extrapolated(cluster), fingerprint, profile->cluster, !differences.empty()};
}

void PlanningCosts::state_origin(Plan& plan) const {
  plan.profile_fingerprint = profile_fingerprint;
  if (!measured) return;
  const int on_node = std::min(plan.devices(), plan.cluster.devices_per_node);
  const int nodes = (plan.devices() + on_node - 1) / on_node + plan.cluster.servers;
  if (are_other_machines || nodes > measured->nodes || on_node > measured->devices_per_node)
    plan.extrapolated_from = machines_text(*measured);
}

}  // namespace alpa
