#include "libalpa/cluster/profile_file.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <cmath>
#include <fstream>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::ThrowsMessage;

Profile example() {
  Profile profile;
  profile.cluster = {"pair", "CPU, 1 thread", 1,          2, 1ll << 31, 6e10, 3e10, 0, 8e9,
                     1e-6,   {5e-6, 3e9},     {6e-6, 2e9}};
  profile.nodes = {{"left", 6e10, 3e10, 8e9}, {"right", 5.9e10, 3e10, 7.9e9}};
  profile.operators["einsum equation='m k, k n -> m n' f32[8x16] f32[16x32]"] = {
      1.25e-5, 1e-7, 2e-7, 8192, 3584, false, SampleStatus::measured, {{1.25e-5, 2e-7}, {1.5e-5, 1e-7}}};
  profile.operators["gelu bf16[8x32]"] = {0, 0, 0, 5120, 1024, true, SampleStatus::failed, {{}, {}}};
  profile.collectives = {
      {CollectiveKind::all_reduce, {1, 2}, 1024, 4e-6, 1e-7, 3e-7, {{4e-6, 3e-7}, {5e-6, 1e-7}}},
      {CollectiveKind::all_reduce, {1, 2}, 4096, 6e-6, 2e-7, 1e-7, {{6e-6, 1e-7}, {7e-6, 0}}},
      {CollectiveKind::send, {1, 2}, 1024, 2e-6, 0, 0, {{}, {2e-6, 0}}}};
  profile.reference = {{"gelu f32[8x32]", 0, 0.5, 1e-3, 2e-5}, {"gelu f32[8x32]", 0, 1500, 1.5e-3, 0}};
  return profile;
}

class ProfileFile : public testing::Test {
 protected:
  void write(const Profile& profile) {
    write_profile(path_, profile, provenance_here("alpa-profile m.toml", "test", ""));
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "profile.h5";
};

TEST_F(ProfileFile, GivesBackWhatWasWritten) {
  const Profile written = example();
  write(written);
  const Profile read = read_profile(path_);
  EXPECT_EQ(read.cluster, written.cluster);
  EXPECT_EQ(read.nodes, written.nodes);
  EXPECT_EQ(read.operators, written.operators);
  EXPECT_EQ(read.collectives, written.collectives);
  EXPECT_EQ(read.reference, written.reference);
  EXPECT_EQ(profile_fingerprint(read), profile_fingerprint(written));
}

// Profiles are expensive, so those of before are still read: the device's words say of which kind it is.
TEST_F(ProfileFile, ThatDoesNotNameTheKindOfItsDevicesIsReadToo) {
  for (const auto& [words, kind] :
       {std::pair("CPU, 1 thread", DeviceKind::cpu), std::pair("NVIDIA H200", DeviceKind::cuda)}) {
    Profile profile = example();
    profile.cluster.device = words;
    profile.cluster.kind = kind;
    write(profile);
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(H5Adelete_by_name(file, "/cluster", "kind", H5P_DEFAULT), 0);
    H5Fclose(file);
    EXPECT_EQ(read_profile(path_).cluster, profile.cluster);
  }
}

TEST_F(ProfileFile, OfBeforeComputationWasMeasuredBesideCommunicationTakesItForAsFast) {
  Profile profile = example();
  profile.cluster.overlap_slowdown = 1.25;
  write(profile);
  EXPECT_EQ(read_profile(path_).cluster, profile.cluster);
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(H5Adelete_by_name(file, "/cluster", "overlap_slowdown", H5P_DEFAULT), 0);
  H5Fclose(file);
  EXPECT_EQ(read_profile(path_).cluster, example().cluster);
}

// Files of before f16 had a rate of its own, which meant that of bf16 on GPUs.
TEST_F(ProfileFile, OfBeforeItHadARateOfF16IsRead) {
  for (const auto& [kind, f16] : {std::pair(DeviceKind::cpu, 0.0), std::pair(DeviceKind::cuda, 8e13)}) {
    Profile profile = example();
    profile.cluster.kind = kind;
    profile.cluster.bf16_flops_per_s = 8e13;
    write(profile);
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(H5Adelete_by_name(file, "/cluster", "f16_flops_per_s", H5P_DEFAULT), 0);
    H5Fclose(file);
    EXPECT_EQ(read_profile(path_).cluster.f16_flops_per_s, f16);
  }
}

TEST_F(ProfileFile, OfBeforeItHadAReferenceIsRead) {
  write(example());
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  for (const char* group : {"/reference", "/noise"}) ASSERT_GE(H5Ldelete(file, group, H5P_DEFAULT), 0);
  H5Fclose(file);
  EXPECT_TRUE(read_profile(path_).reference.empty());
  EXPECT_EQ(read_profile(path_).operators, example().operators);
}

TEST_F(ProfileFile, SaysInH5dumpWhetherTheMachinesWereBusy) {
  write(example());
  EXPECT_THAT(run_command("h5dump -d /reference/median_s -d /reference/at_s " + path_.string()).output,
              AllOf(HasSubstr("(0): 0.001, 0.0015"), HasSubstr("(0): 0.5, 1500")));
  EXPECT_THAT(run_command("h5dump -a /noise/drift " + path_.string()).output, HasSubstr("(0): 0.5"));
  EXPECT_THAT(run_command("h5dump -a /noise/is_busy " + path_.string()).output, HasSubstr("(0): 1"));
}

TEST_F(ProfileFile, HoldsWhatItWasCorrectedBy) {
  Profile profile = example();
  profile.corrections = {{"runs/a", "einsum f32", 1.5, 2e-6}, {"runs/a", "all-reduce within nodes", 2, 0}};
  write(profile);
  EXPECT_EQ(read_profile(path_).corrections, profile.corrections);
  EXPECT_THAT(run_command("h5dump -d /calibration/kind -d /calibration/factor " + path_.string()).output,
              AllOf(HasSubstr("\"einsum f32\""), HasSubstr("(0): 1.5, 2")));
  profile.corrections[1].factor = 0;
  write(profile);
  EXPECT_THAT([&] { read_profile(path_); },
              ThrowsMessage<Error>(HasSubstr("/calibration/factor of row 1 is 0")));
}

TEST_F(ProfileFile, MaySayThatItsDevicesDoNotComputeInAType) {
  Profile profile = example();
  profile.cluster.bf16_flops_per_s = 0;
  write(profile);
  EXPECT_EQ(read_profile(path_).cluster, profile.cluster);
}

TEST_F(ProfileFile, NamesTheKindOfItsDevices) {
  Profile profile = example();
  profile.cluster.device = "an accelerator";  // of a kind that no words name
  profile.cluster.kind = DeviceKind::cpu;
  write(profile);
  EXPECT_EQ(read_profile(path_).cluster.kind, DeviceKind::cpu);
}

TEST_F(ProfileFile, OfNothingMeasuredYetIsAFileToo) {
  write({example().cluster, {}, {}, {}});
  EXPECT_EQ(read_profile(path_).cluster, example().cluster);
  EXPECT_TRUE(read_profile(path_).operators.empty());
}

TEST_F(ProfileFile, ReadsInH5dumpAsColumnsWithUnitsAndNamedKinds) {
  write(example());
  const CommandResult kinds = run_command("h5dump -d /collectives/kind " + path_.string());
  EXPECT_EQ(kinds.status, 0);
  EXPECT_THAT(kinds.output,
              AllOf(HasSubstr("\"all-reduce\""), HasSubstr("(0): all-reduce, all-reduce, send")));
  EXPECT_THAT(run_command("h5dump -d /operators/status " + path_.string()).output,
              HasSubstr("(0): measured, failed"));
  EXPECT_THAT(run_command("h5dump -H " + path_.string()).output,
              AllOf(HasSubstr("ATTRIBUTE \"f32_flops_per_s\""), HasSubstr("DATASET \"median_s\""),
                    HasSubstr("DATASET \"signature\""), HasSubstr("ATTRIBUTE \"units\""),
                    HasSubstr("GROUP \"provenance\"")));
  EXPECT_THAT(run_command("h5dump -a /operators/median_s/units " + path_.string()).output,
              HasSubstr("(0): \"s\""));
  EXPECT_THAT(run_command("h5dump -a /collectives/bytes/units " + path_.string()).output,
              HasSubstr("(0): \"byte\""));
}

TEST_F(ProfileFile, ReadsInH5dumpAsATableOfTimesByOperatorAndNode) {
  write(example());
  const auto dump = [&](const std::string& what) {
    return run_command("h5dump " + what + " " + path_.string()).output;
  };
  EXPECT_THAT(dump("-d /operators/node_median_s"),
              AllOf(HasSubstr("(0,0): 1.25e-05, 1.5e-05,"), HasSubstr("(1,0): 0, 0")));
  EXPECT_THAT(dump("-d /operators/node_spread_s"), HasSubstr("(0,0): 2e-07, 1e-07,"));
  EXPECT_THAT(dump("-d /collectives/node_median_s"), HasSubstr("(2,0): 0, 2e-06"));
  // What its rows and columns are.
  EXPECT_THAT(
      dump("-a /operators/node_median_s/DIMENSION_LIST"),
      ContainsRegex(
          "\\(0\\): \\(DATASET [0-9]+ \"/operators/signature\"\\), \\(DATASET [0-9]+ \"/nodes/name\"\\)"));
  EXPECT_THAT(dump("-a /collectives/node_median_s/DIMENSION_LIST"),
              ContainsRegex("\\(0\\): \\(\\), \\(DATASET [0-9]+ \"/nodes/name\"\\)"));
  EXPECT_THAT(dump("-a /nodes/name/CLASS"), HasSubstr("\"DIMENSION_SCALE\""));
  EXPECT_THAT(dump("-a /operators/node_median_s/units"), HasSubstr("(0): \"s\""));
}

TEST_F(ProfileFile, HoldsNodesThatWereAddedToIt) {
  Profile profile = example();
  put_nodes(profile, {{"right", 1, 2, 3}, {"new", 4, 5, 6}});
  EXPECT_THAT(profile.nodes, testing::ElementsAre(example().nodes[0], NodeSample{"right", 1, 2, 3},
                                                  NodeSample{"new", 4, 5, 6}));
  EXPECT_THAT(places_of({"new", "left", "nowhere"}, profile), testing::ElementsAre(2, 0, -1));
  write(profile);
  const std::vector<NodeTime> times = read_profile(path_).operators.begin()->second.on_nodes;
  EXPECT_THAT(times, testing::ElementsAre(NodeTime{1.25e-5, 2e-7}, NodeTime{1.5e-5, 1e-7}, NodeTime{}));
}

TEST_F(ProfileFile, RefusesNumbersThatCannotBe) {
  const auto refusal = [&](auto change) {
    Profile profile = example();
    change(profile);
    write(profile);
    try {
      read_profile(path_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.nodes = 0; }), HasSubstr("/cluster/nodes is 0"));
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.memory_bytes = -1; }),
              HasSubstr("/cluster/memory_bytes is -1"));
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.f32_flops_per_s = 0; }),
              HasSubstr("/cluster/f32_flops_per_s is 0"));
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.launch_s = -1; }), HasSubstr("/cluster/launch_s is -1"));
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.overlap_slowdown = 0.5; }),
              HasSubstr("/cluster/overlap_slowdown is 0.5, expected from 1 to 1000"));
  EXPECT_THAT(refusal([](Profile& p) { p.operators["gelu bf16[8x32]"].median_s = NAN; }),
              HasSubstr("/operators/median_s of row 1 is nan"));
  EXPECT_THAT(refusal([](Profile& p) { p.operators.begin()->second.on_nodes[1].median_s = -1; }),
              HasSubstr("/operators/node_median_s of row 0 is -1"));
  EXPECT_THAT(refusal([](Profile& p) { p.collectives[0].median_s = -1; }),
              HasSubstr("/collectives/median_s of row 0 is -1"));
  EXPECT_THAT(refusal([](Profile& p) { p.collectives[0].median_s = INFINITY; }),
              HasSubstr("/collectives/median_s of row 0 is inf, expected from 0 to 1000"));
  EXPECT_THAT(refusal([](Profile& p) { p.operators.begin()->second.flops = 1e-300; }),
              HasSubstr("/operators/flops of row 0 is 1e-300"));
  EXPECT_THAT(refusal([](Profile& p) { p.collectives[1].bytes = 1024; }),
              HasSubstr("all-reduce of 1024 bytes by 1 x 2 devices appears twice"));
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.nodes = p.cluster.devices_per_node = 1024; }),
              HasSubstr("expected 262144 devices at most"));
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.nodes = 1 << 20; }),
              HasSubstr("/cluster/nodes is 1048576, expected from 1 to 65536"));
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.f32_flops_per_s = 1e300; }),
              HasSubstr("/cluster/f32_flops_per_s is 1e+300, expected from 1 to 1e+18"));
  EXPECT_THAT(refusal([](Profile& p) { p.cluster.device = "CPU\n"; }),
              HasSubstr("has a control character in it"));
  EXPECT_THAT(refusal([](Profile& p) { p.nodes[1].name = ""; }), HasSubstr("/nodes/name of row 1 is ''"));
  EXPECT_THAT(refusal([](Profile& p) { p.nodes[1].f32_flops_per_s = NAN; }),
              HasSubstr("/nodes/f32_flops_per_s of row 1 is nan"));
  EXPECT_THAT(refusal([](Profile& p) { p.reference[1].median_s = NAN; }),
              HasSubstr("/reference/median_s of row 1 is nan"));
  EXPECT_THAT(refusal([](Profile& p) { p.reference[0].run = -1; }),
              HasSubstr("/reference/run of row 0 is -1"));
  EXPECT_THAT(refusal([](Profile& p) { p.collectives[0].bytes = -1; }),
              HasSubstr("/collectives/bytes of row 0 is -1"));
}

TEST_F(ProfileFile, RefusesColumnsOfDifferentLength) {
  H5Writer file(path_, "alpa-profile", "1.0");
  file.group("/cluster");
  for (const char* name : {"name", "device"}) file.attribute("/cluster", name, "x");
  for (const char* name : {"nodes", "devices_per_node"}) file.attribute("/cluster", name, 1);
  file.attribute("/cluster", "memory_bytes", 1 << 30);
  for (const char* name :
       {"f32_flops_per_s", "bf16_flops_per_s", "memory_bytes_per_s", "launch_s", "within_node_latency_s",
        "within_node_bytes_per_s", "between_nodes_latency_s", "between_nodes_bytes_per_s"})
    file.attribute("/cluster", name, 1.0);
  file.column("/nodes/name", std::vector<std::string>{});
  for (const char* name : {"f32_flops_per_s", "bf16_flops_per_s", "memory_bytes_per_s"})
    file.column(std::string("/nodes/") + name, std::vector<double>{}, "1");
  file.column("/operators/signature", std::vector<std::string>{"gelu", "relu"});
  file.column("/operators/median_s", std::vector<double>{1}, "s");
  file.publish();
  EXPECT_THAT([&] { read_profile(path_); },
              ThrowsMessage<Error>(AllOf(HasSubstr("/operators/median_s"), HasSubstr("expected extent 2"))));
}

TEST_F(ProfileFile, RefusesWhatIsNoProfile) {
  EXPECT_THAT([&] { read_profile(path_); }, ThrowsMessage<Error>(HasSubstr("profile.h5")));
  std::ofstream(path_) << "not HDF5";
  EXPECT_THAT([&] { read_profile(path_); }, ThrowsMessage<Error>(HasSubstr("profile.h5")));
}

TEST(ProfileFingerprint, ChangesWithWhatWasMeasured) {
  Profile other = example();
  other.operators.begin()->second.median_s *= 1.5;
  EXPECT_NE(profile_fingerprint(other), profile_fingerprint(example()));
  other = example();
  other.collectives[2].median_s *= 1.5;
  EXPECT_NE(profile_fingerprint(other), profile_fingerprint(example()));
}

}  // namespace
}  // namespace alpa
