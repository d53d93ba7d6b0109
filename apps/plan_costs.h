#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "libalpa/base/log.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// What the work of a plan costs, and what an answer says of it where the plan was made with other costs.
struct PlanCosts {
  CostModel costs;
  std::string remark;
  std::string warning = {};  ///< of a profile from a busy machine; ""
};

/// "'profile.h5': the machines were busy ..."; "" where they were not.
std::string warning_of(const std::filesystem::path& file, const Profile&);

/// These machines with the servers of a plan: where it has some, as many nodes compute as it says.
Cluster with_servers_of(const Plan&, Cluster machines);

/// From a profile; from the numbers of the plan's cluster alone where `profile` is "". Throws Error(input).
PlanCosts costs_of(const Plan&, const std::filesystem::path& profile);

/// The numbers to plan with.
struct PlanningCosts {
  CostModel costs;
  std::string profile_fingerprint = {};  ///< "": a cluster file's alone
  std::optional<Cluster> measured = {};  ///< what the profile is of
  bool are_other_machines = false;       ///< than the profile's

  /// Notes in a plan that was made with them where they come from: extrapolated are those of other machines,
  /// and of more than were measured.
  void state_origin(Plan&) const;
};

/// Logs what there is to know of it; nullopt where `file` is "". Throws Error(input).
std::optional<Profile> read_planning_profile(const std::filesystem::path& file, Log&);

/// Of a profile, of a cluster file (unless it is ""), or of both: a profile's machines in another number, or
/// others. Throws Error(usage) where there is neither, Error(input).
PlanningCosts planning_costs(const std::optional<Profile>&, const std::filesystem::path& cluster, Log&);

}  // namespace alpa
