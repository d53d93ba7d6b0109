#include "libalpa/planner/tuning/tuning_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libalpa/base/error.h"
#include "libalpa/plan/plan_file.h"
#include "tests/h5/temporary_folder.h"
#include "tests/planner/tuning/hidden_costs.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

class TuningFile : public testing::Test {
 protected:
  TuningFile() {
    run_trials(search_, 12, [&](const TuningChoice& choice) { return hidden_.measured_s(choice); });
  }
  std::filesystem::path file(const char* name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  Tunable of_{[](std::int64_t samples) { return tiny_gpt(samples, 1); }, 8, small_cluster(4)};
  TuningSpace space_ = of_.choices.space();
  HiddenCosts hidden_{of_.choices, of_.graph, of_.cluster, 3};
  TuningSearch search_{space_, {.explored = 20}};
};

TEST_F(TuningFile, HasThePlanAndAllThatTheSearchKnows) {
  const TuningRecord record = record_of(search_, job_of(space_, of_.costs));
  write_tuned_plan(file("tuned.h5"), of_.plan, of_.graph, record, {});
  EXPECT_EQ(read_plan(file("tuned.h5")), of_.plan);
  const TuningRecord read = read_tuning(file("tuned.h5"));
  EXPECT_EQ(read.job, record.job);
  EXPECT_EQ(read.genes, record.genes);
  EXPECT_EQ(read.features, record.features);
  EXPECT_EQ(read.model.weights, record.model.weights);
  EXPECT_EQ(read.accuracy.residual, record.accuracy.residual);
  ASSERT_EQ(read.trials.size(), 12u);
  for (std::size_t t = 0; t < read.trials.size(); ++t) {
    EXPECT_EQ(read.trials[t].choice, record.trials[t].choice);
    EXPECT_EQ(read.trials[t].origin, record.trials[t].origin);
    EXPECT_EQ(read.trials[t].measured_s, record.trials[t].measured_s);
    EXPECT_EQ(read.trials[t].known.features, record.trials[t].known.features);
    EXPECT_EQ(read.trials[t].known.identity, record.trials[t].known.identity);
  }
}

TEST_F(TuningFile, NamesItsJobByPlanChoicesAndCosts) {
  const std::string job = job_of(space_, of_.costs);
  EXPECT_EQ(job_of(of_.choices.space(), of_.costs), job);
  EXPECT_NE(job_of(space_, CostModel(small_cluster(8))), job);
  const Tunable larger([](std::int64_t samples) { return tiny_gpt(samples, 2); }, 8, small_cluster(4));
  EXPECT_NE(job_of(larger.choices.space(), of_.costs), job);
}

// Whoever has made the file: its trials are of what there is to choose, and no other.
TEST_F(TuningFile, IsOnlyGoneOnWithWhereItIsOfTheSameSpace) {
  const std::string job = job_of(space_, of_.costs);
  const TuningRecord record = record_of(search_, job);
  EXPECT_NO_THROW(check_continues("tuned.h5", record, space_, job));
  const auto is_refused = [&](const TuningRecord& other) {
    EXPECT_THAT([&] { check_continues("tuned.h5", other, space_, job); },
                ThrowsMessage<Error>(HasSubstr("'tuned.h5' has trials of another plan")));
  };
  TuningRecord other = record;
  other.job += "0";
  is_refused(other);
  other = record;
  other.genes.pop_back();
  is_refused(other);
  other = record;
  other.genes.front().words.push_back("zero-9");
  is_refused(other);
  other = record;
  other.features.pop_back();
  is_refused(other);
}

TEST_F(TuningFile, WarmsUpAnotherSearch) {
  write_tuned_plan(file("old.h5"), of_.plan, of_.graph, record_of(search_, "job"), {});
  const EarlierTrials earlier = earlier_trials(file("old.h5"), read_tuning(file("old.h5")), space_.features);
  EXPECT_EQ(earlier.trials.size(), 12u);
  ASSERT_EQ(earlier.fastest.size(), 3u);
  EXPECT_EQ(earlier.fastest[0], search_.trials()[search_.fastest()].choice);
  TuningSearch warm(space_, {}, earlier);
  EXPECT_EQ(warm.next()->choice, earlier.fastest[0]);
  EXPECT_THAT([&] { earlier_trials("old.h5", read_tuning(file("old.h5")), {"another"}); },
              ThrowsMessage<Error>(HasSubstr("'old.h5' has trials with other features")));
}

TEST_F(TuningFile, RefusesAPlanThatWasNotTuned) {
  write_plan(file("plan.h5"), of_.plan, of_.graph, {});
  EXPECT_THAT([&] { read_tuning(file("plan.h5")); }, ThrowsMessage<Error>(HasSubstr("was not tuned")));
}

TEST_F(TuningFile, RefusesChoicesThatThereAreNot) {
  TuningRecord record = record_of(search_, "job");
  record.trials[2].choice[1] = 9;
  write_tuned_plan(file("bad.h5"), of_.plan, of_.graph, record, {});
  EXPECT_THAT([&] { read_tuning(file("bad.h5")); },
              ThrowsMessage<Error>(HasSubstr("/tuning/trials/choice, row 2: 9 of gene")));
  record.trials[2].choice[1] = 0;
  record.trials[2].measured_s = -1;
  write_tuned_plan(file("bad.h5"), of_.plan, of_.graph, record, {});
  EXPECT_THAT([&] { read_tuning(file("bad.h5")); }, ThrowsMessage<Error>(HasSubstr("row 2: a time")));
}

}  // namespace
}  // namespace alpa
