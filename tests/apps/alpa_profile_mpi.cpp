#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/cluster/profile_file.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class AlpaProfile : public testing::Test {
 protected:
  /// On so many ranks, with samples as short as can be.
  CommandResult run(int ranks, const std::string& arguments) {
    return run_command(std::string("env OMP_NUM_THREADS=1 " MPIEXEC " -n ") + std::to_string(ranks) +
                       " " ALPA_PROFILE " --repetitions 1 --least-sample-ms 0.01 --cold-mib 1 " + arguments);
  }

  /// On nodes of these names, with one rank each.
  CommandResult run_on_nodes(const std::vector<std::string>& names, const std::string& arguments) {
    std::string hosts, ranks;
    for (std::size_t n = 0; n < names.size(); ++n) {
      hosts += (n ? ",host" : "host") + std::to_string(n);
      ranks += std::string(n ? " : " : " ") + "-n 1 env OMP_NUM_THREADS=1 SLURMD_NODENAME=" + names[n] +
               " " ALPA_PROFILE " --repetitions 1 --least-sample-ms 0.01 --cold-mib 1 " + arguments;
    }
    return run_command(MPIEXEC " -launcher fork -hosts " + hosts + ranks);
  }

  std::string out(const std::string& name = "profile.h5") const {
    return " --out " + (folder_.path() / name).string();
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }

  TemporaryFolder folder_;
  const std::string model_ = ALPA_SOURCE_DIR "/tests/data/tiny_gpt.toml";
};

TEST_F(AlpaProfile, MeasuresOnTwoRanksAndIsReadByH5Tools) {
  const CommandResult result = run(2, model_ + out() + " --micro-batch-samples 4 --check --name box");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("GFLOP/s f32"), HasSubstr(", 0 known before, 0 failed, 0 left"),
                                   Not(HasSubstr("\r"))));

  const std::string file = (folder_.path() / "profile.h5").string();
  const CommandResult listing = run_command("h5ls -r " + file);
  EXPECT_EQ(listing.status, 0);
  for (const char* name :
       {"/operators/signature", "/operators/median_s", "/operators/spread_s", "/operators/sample_spread_s",
        "/operators/status", "/collectives/kind", "/collectives/bytes", "/provenance"})
    EXPECT_THAT(listing.output, HasSubstr(name));
  EXPECT_THAT(run_command("h5dump -d /collectives/kind -s 0 -c 1 " + file).output, HasSubstr("all-reduce"));
  EXPECT_THAT(run_command("h5dump -a /cluster/name " + file).output, HasSubstr("\"box\""));

  const Profile profile = read_profile(file);
  EXPECT_EQ(profile.cluster.nodes, 1);
  EXPECT_EQ(profile.cluster.devices_per_node, 2);
  EXPECT_THAT(profile.cluster.device, HasSubstr("CPU, 1 thread"));
  for (const auto& [signature, sample] : profile.operators) EXPECT_GT(sample.median_s, 0) << signature;
  // The share of a four-head attention that one of two devices has.
  EXPECT_TRUE(profile.operators.contains("attention causal=1 f32[4x16x2x8] f32[4x16x2x8] f32[4x16x2x8]"));
}

TEST_F(AlpaProfile, AddsToAProfileWhatItLacks) {
  const CommandResult first = run(2, model_ + out() + " --micro-batch-samples 2 --time-budget 0.001");
  ASSERT_EQ(first.status, 0) << first.output;
  EXPECT_THAT(first.output, Not(HasSubstr(" 0 left")));
  const std::size_t before = read_profile(folder_.path() / "profile.h5").collectives.size();
  EXPECT_GE(before, 1u);
  const CommandResult second = run(2, model_ + out() + " --micro-batch-samples 2");
  EXPECT_THAT(second.output,
              AllOf(HasSubstr(std::to_string(before) + " known before"), HasSubstr(" 0 left")));
  EXPECT_THAT(run(2, model_ + out() + " --micro-batch-samples 2").output,
              HasSubstr("profile.h5: 0 measured"));
}

TEST_F(AlpaProfile, SurvivesSamplesThatNoMachineHasTheMemoryFor) {
  // Activations of terabytes, as many as may be, beside weights of some bytes: nothing in between, which some
  // machine might try.
  std::ofstream(folder_.path() / "long.toml")
      << "base = \"" ALPA_SOURCE_DIR
         "/tests/data/tiny_mlp.toml\"\n"
         "name = \"long\"\n[dimensions]\nvocabulary = 4\nmodel = 4\ninner = 4\n[training]\n"
         "sequence = 1000000000\nbatch = 1000\n";
  const CommandResult result =
      run(2, (folder_.path() / "long.toml").string() + out() + " --micro-batch-samples 1000");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output,
              AllOf(ContainsRegex("warning: bias_gelu f32[^\n]* failed: rank 0: the sample takes "
                                  "[0-9.]+ TiB, and a device has "),
                    ContainsRegex("profile.h5: [1-9][0-9]* measured, 0 known before, "
                                  "[1-9][0-9]* failed, 0 left")));
  for (const auto& [signature, sample] : read_profile(folder_.path() / "profile.h5").operators)
    EXPECT_EQ(sample.status == SampleStatus::failed, signature.find("x1000000000") != std::string::npos ||
                                                         signature.find("x500000000") != std::string::npos)
        << signature;
}

TEST_F(AlpaProfile, HoldsTheTimesOfEachNode) {
  const CommandResult result =
      run_on_nodes({"left", "right"}, model_ + out() + " --micro-batch-samples 4 --check");
  ASSERT_EQ(result.status, 0) << result.output;
  // Both tables have a line of each node.
  EXPECT_THAT(result.output, AllOf(ContainsRegex("left +[0-9.]+ +[0-9.]+ +[0-9.]+"),
                                   ContainsRegex("node +compared +slower +typical +worst"),
                                   ContainsRegex("right +[0-9]+ +[0-9]+ +[0-9.]+ x")));
  const Profile profile = read_profile(folder_.path() / "profile.h5");
  EXPECT_EQ(profile.cluster.nodes, 2);
  for (const auto& [signature, sample] : profile.operators)
    EXPECT_THAT(sample.on_nodes, AllOf(SizeIs(2), Each(Field(&NodeTime::median_s, Gt(0))))) << signature;
  for (const CollectiveSample& sample : profile.collectives)
    EXPECT_THAT(sample.on_nodes, AllOf(SizeIs(2), Each(Field(&NodeTime::median_s, Gt(0)))));
}

TEST_F(AlpaProfile, AddsWhatItMeasuresOnOtherNodesBesideTheOldOnes) {
  ASSERT_EQ(run_on_nodes({"a", "b"}, model_ + out() + " --micro-batch-samples 4").status, 0);
  const Profile before = read_profile(folder_.path() / "profile.h5");
  const CommandResult result = run_on_nodes({"c", "b"}, model_ + out() + " --micro-batch-samples 2,4");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("was measured on other nodes of this kind; c is added to them"));
  const Profile after = read_profile(folder_.path() / "profile.h5");
  EXPECT_EQ(after.cluster, before.cluster);
  EXPECT_THAT(after.nodes,
              ElementsAre(before.nodes[0], Field(&NodeSample::name, "b"), Field(&NodeSample::name, "c")));
  for (const auto& [signature, sample] : after.operators) {
    const bool is_old = before.operators.contains(signature);
    ASSERT_THAT(sample.on_nodes, SizeIs(3));
    EXPECT_EQ(sample.on_nodes[0].median_s > 0, is_old) << signature;
    EXPECT_EQ(sample.on_nodes[2].median_s > 0, !is_old) << signature;
  }
}

TEST_F(AlpaProfile, MeasuresTheOperatorsThatAPlanMissed) {
  std::ofstream(folder_.path() / "missing.txt") << "bias_gelu f32[4x16x128] f32[128]\nno such thing\n";
  const CommandResult result = run(
      1, model_ + out() + " --micro-batch-samples 4 --missing " + (folder_.path() / "missing.txt").string());
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(read_profile(folder_.path() / "profile.h5").operators.size(), 1u);
}

TEST_F(AlpaProfile, OnlyChecksWithoutAFileToWrite) {
  const CommandResult result = run(2, model_ + " --check");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("GB/s"), Not(HasSubstr("measured"))));
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(AlpaProfile, RefusesAProfileOfOtherMachines) {
  ASSERT_EQ(run(1, model_ + out() + " --time-budget 0.001").status, 0);
  const CommandResult result = run(2, model_ + out());
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("was measured on 1 x 1 CPU, 1 thread"),
                    HasSubstr("this job has 1 x 2 CPU, 1 thread"), HasSubstr("try: another file for --out")));
}

TEST_F(AlpaProfile, RefusesBadInputOnceWithItsStatusAndWritesNothing) {
  const struct {
    std::string arguments;
    int status;
    const char* message;
  } table[] = {
      {model_, 2, "--out is missing"},
      {model_ + out() + " --micro-batch-samples 3", 2,
       "a batch of 8 does not divide into micro-batches of 3"},
      {"no_such_model.toml" + out(), 3, "no_such_model.toml"},
      {model_ + out("no/such/folder/profile.h5"), 3, "no/such/folder"},
      {model_ + out() + " --missing no_such_list.txt", 3, "no_such_list.txt"},
      {model_ + out() + " --device cuda", 5, "CUDA"},
  };
  for (const auto& row : table) {
    const CommandResult result = run(2, row.arguments);
    EXPECT_EQ(result.status, row.status) << result.output;
    EXPECT_THAT(result.output, HasSubstr(row.message));
    EXPECT_EQ(result.output.find("error: "), result.output.rfind("error: ")) << result.output;
  }
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(AlpaProfile, RefusesToMeasureAloneWhereTheJobHasSeveralTasks) {
  const CommandResult result =
      run_command("env -u PMI_SIZE SLURM_NTASKS=4 " ALPA_PROFILE " " + model_ + out());
  EXPECT_EQ(result.status, 5);
  EXPECT_THAT(result.output, HasSubstr("srun --mpi=list"));
}

}  // namespace
}  // namespace alpa
