#pragma once
#include <filesystem>
#include <optional>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/h5/provenance.h"
#include "libalpa/plan/plan.h"
#include "libalpa/planner/tuning/tuning_search.h"

namespace alpa {

/// The fault of a trial that is under way, also where another was before that did not end. Where a file has
/// it, the job ended during it.
inline constexpr const char *kTrialBegun = "begun", *kTrialBegunAgain = "begun again";

/// What is kept of a search in the file of the plan that it comes to.
struct TuningRecord {
  std::string job;  ///< job_of(): what the trials are of
  std::vector<Gene> genes;
  std::vector<std::string> features;
  std::vector<TuningTrial> trials;
  RankingModel model;  ///< of the score
  RankingAccuracy accuracy;
};

/// Names the plan that is tuned, what there is to choose, and what the simulator goes by.
std::string job_of(const TuningSpace&, const CostModel&);

/// All that a search knows.
TuningRecord record_of(const TuningSearch&, const std::string& job);

/// A plan file with a group /tuning beside what every plan has: genes, features, trials and model, one column
/// per fact.
void write_tuned_plan(const std::filesystem::path&, const Plan&, const Graph&, const TuningRecord&,
                      const Provenance&);

/// Of a file that anybody may have made. Throws Error(input), also where it is the file of a plan that was
/// not tuned.
TuningRecord read_tuning(const std::filesystem::path&);

/// Throws Error(input) that names `file` unless its trials are of this job and space.
void check_continues(const std::filesystem::path& file, const TuningRecord&, const TuningSpace&,
                     const std::string& job);

/// What a search of features with these names learns of an earlier one; throws Error(input) that names `file`
/// where that has others.
EarlierTrials earlier_trials(const std::filesystem::path& file, const TuningRecord&,
                             const std::vector<std::string>& features);

}  // namespace alpa
