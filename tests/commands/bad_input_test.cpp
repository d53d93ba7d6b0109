// Bad input of every kind, given to the commands: the exit status, the one message, and that nothing is
// half-written.
#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <map>

#include "tests/commands/spoiled_files.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Spoil = std::function<void(const fs::path& folder)>;

/// The command runs in a folder with model.toml, cluster.toml, mixed.toml (a pin), serial.h5 and mixed.h5
/// (plans for one and, by the pin, for four ranks), other.h5 (a serial plan of another model), huge.h5 (one
/// of 192 TiB), half.h5 (one in f16), profile.h5 (of two ranks), measured.h5 (a plan by it) and run/ (two
/// steps of serial.h5).
struct Row {
  const char* name;
  int ranks;
  std::string command;
  int status;
  std::string message;
  Spoil spoil = {};
  std::vector<std::string> leaves = {};  ///< what it may leave behind
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.command; }

Spoil text(const std::string& name, const std::string& content) {
  return [=](const fs::path& folder) { std::ofstream(folder / name) << content; };
}

/// model.toml with something added.
Spoil model(const std::string& addition) {
  return text("bad.toml",
              "base = \"" ALPA_SOURCE_DIR "/tests/data/tiny_gpt.toml\"\nname = \"bad\"\n" + addition);
}

template <class... Arguments>
Spoil spoil(void (*how)(const fs::path&, Arguments...), const char* name,
            std::type_identity_t<Arguments>... arguments) {
  return [=](const fs::path& folder) { how(folder / name, arguments...); };
}

Spoil all_of(const std::vector<Spoil>& ways) {
  return [=](const fs::path& folder) {
    for (const Spoil& way : ways) way(folder);
  };
}

Spoil gpu_cluster() {
  return [](const fs::path& folder) {
    fs::copy_file(ALPA_SOURCE_DIR "/configs/clusters/p3.16xlarge-8.toml", folder / "gpu.toml");
  };
}

/// One CPU that has that much memory.
std::string cluster_with(const std::string& memory_gib) {
  return R"(name = "small"
device = "CPU"
nodes = 1
devices_per_node = 1
memory_gib = )" +
         memory_gib + R"(
f32_tflops = 0.06
bf16_tflops = 0.03
memory_gb_per_s = 8
launch_us = 1
within_node = { latency_us = 5, gb_per_s = 3 }
)";
}

const std::string kPlan = "alpa-plan model.toml --cluster cluster.toml --out new.h5 ";
const std::string kPlanBad = "alpa-plan bad.toml --cluster cluster.toml --out new.h5";
const std::string kTrain = "alpa-train mixed.h5 --data synthetic:64 --run-dir new ";
const std::string kResume = "alpa-train serial.h5 --data synthetic:64 --run-dir run --steps 3 ";
const std::string kProfile =
    "alpa-profile model.toml --repetitions 1 --least-sample-ms 0.01 --cold-mib 1 --out profile.h5 ";

const std::vector<Row> rows{
    {"PlanNoModel", 1, "alpa-plan nowhere.toml --cluster cluster.toml --out new.h5", 3,
     "cannot read 'nowhere.toml': No such file or directory\n  try: check the path"},
    {"PlanBrokenToml", 1, kPlanBad, 3, "bad.toml:3:", text("bad.toml", "name = \"x\"\n\nbatch = [1,\n")},
    {"PlanBottomlessToml", 1, kPlanBad, 3, "bad.toml", text("bad.toml", "a = " + std::string(200000, '['))},
    {"PlanUnknownKey", 1, kPlanBad, 3,
     "bad.toml:4:1: unknown key 'batc' in 'training'; did you mean 'batch'?",
     model("[training]\nbatc = 8\n")},
    {"PlanWrongType", 1, kPlanBad, 3, "bad.toml:4:9: 'training.batch': expected an integer",
     model("[training]\nbatch = \"eight\"\n")},
    {"PlanIndivisible", 1, kPlanBad, 3, "in 'model / heads': 32 is not divisible by 5",
     model("[dimensions]\nheads = 5\n")},
    {"PlanNoNumbers", 1, "alpa-plan model.toml --out new.h5", 2, "neither --profile nor --cluster is given"},
    {"PlanNoCluster", 1, "alpa-plan model.toml --cluster nowhere.toml --out new.h5", 3,
     "cannot read 'nowhere.toml'"},
    {"PlanBadCluster", 1, "alpa-plan model.toml --cluster bad.toml --out new.h5", 3,
     "bad.toml:1:9: 'nodes': expected an integer", text("bad.toml", "nodes = 0\n")},
    {"PlanUnknownOption", 1, kPlan + "--devises 2", 2, "did you mean '--devices'?"},
    {"PlanUnknownMethod", 1, kPlan + "--method zerro-1", 2, "found 'zerro-1'\n  try: did you mean 'zero-1'?"},
    {"PlanUnknownSchedule", 1, kPlan + "--schedule gpip", 2, "found 'gpip'\n  try: did you mean 'gpipe'?"},
    {"PlanUnknownRematerialization", 1, kPlan + "--rematerialize sometimes", 2,
     "--rematerialize: expected auto|never|always|selective, found 'sometimes'"},
    {"PlanTooManyDevices", 1, kPlan + "--devices 5", 2,
     "5 devices asked for, the cluster has 4\n  try: --devices 4 or fewer"},
    {"PlanTooManyClusters", 1, kPlan + "--layers 7", 2,
     "7 clusters of layers asked for, the model has 6 layers\n  try: --layers 6 or fewer"},
    {"PlanOddMicroBatches", 1, kPlan + "--micro-batches 3", 2,
     "a batch of 8 does not divide into 3 micro-batches"},
    {"PlanInfeasible", 1, "alpa-plan model.toml --cluster small.toml --out new.h5", 4, "no plan fits",
     text("small.toml", cluster_with("0.001"))},
    {"PlanNoFolder", 1, "alpa-plan model.toml --cluster cluster.toml --out no/such/new.h5", 3,
     "try: mkdir -p 'no/such'"},
    {"PlanBelowAFile", 1, "alpa-plan model.toml --cluster cluster.toml --out model.toml/new.h5", 3,
     "Not a directory"},
    {"PlanOntoAFolder", 1, "alpa-plan model.toml --cluster cluster.toml --out run", 3, "cannot write 'run'"},
    {"PlanFullDisk", 1,
     "sh -c 'trap \"\" XFSZ; ulimit -f 8; exec alpa-plan model.toml --cluster cluster.toml --method serial "
     "--out new.h5'",
     1, "free some space or quota"},
    {"PinTooFewLayers", 1, kPlan + "--pin pin.toml", 3, "its stages have 2 layers, the model has 6",
     text("pin.toml", "[[stage]]\nlayers = 2\nmesh = [2]\n")},
    {"PinTooManyDevices", 1, kPlan + "--pin pin.toml", 3, "its stages take 8 devices, the cluster has 4",
     text("pin.toml", "[[stage]]\nlayers = 6\nmesh = [4, 2]\n")},
    {"PinUnknownRole", 1, kPlan + "--pin pin.toml", 3, "did you mean 'tensor'?",
     text("pin.toml", "[[stage]]\nlayers = 6\nmesh = [4]\naxes = [\"tensr\"]\n")},
    {"PinBesideAMethod", 1, kPlan + "--pin mixed.toml --method serial", 2,
     "--method serial together with --pin: a pinned plan is not looked for\n  try: one of the two"},
    {"PinBesideMicroBatches", 1, kPlan + "--pin mixed.toml --micro-batches 8", 2,
     "--micro-batches 8 together with --pin: the pinned plan has 4\n  try: without --micro-batches"},
    {"PinBesideASchedule", 1, kPlan + "--pin mixed.toml --schedule gpipe", 2,
     "--schedule gpipe together with --pin: the pinned plan has schedule '1f1b'\n  try: without --schedule"},
    {"PinBesideOtherDevices", 1, kPlan + "--pin mixed.toml --devices 2", 2,
     "--devices 2 together with --pin: the pinned plan takes 4\n  try: without --devices"},
    {"ConstraintsOfAnUnknownLayer", 1, kPlan + "--constraints limits.toml", 3,
     "limits.toml:1: the model has no layer 'blok.0'; did you mean 'block.0'?",
     text("limits.toml", "[[boundary]]\nafter = \"blok.0\"\n")},
    {"ConstraintsWithAnUnknownKey", 1, kPlan + "--constraints limits.toml", 3, "did you mean 'most_zero'?",
     text("limits.toml", "most_zeros = 1\n")},
    {"ConstraintsBesideAPin", 1, kPlan + "--constraints limits.toml --pin mixed.toml", 2,
     "--constraints together with --pin: a pinned plan is not looked for\n  try: one of the two",
     text("limits.toml", "most_zero = 1\n")},
    {"ConstraintsThatNoPlanMeets", 1, kPlan + "--constraints limits.toml --micro-batches 1", 4,
     "no plan meets these together: limits.toml:1 (1 pipeline stage), limits.toml:2 (a stage ends with layer",
     text("limits.toml", "stages = 1\n[[boundary]]\nafter = \"block.0\"\n")},
    {"PlanProfileIsNoHdf5", 1, kPlan + "--profile model.toml", 3, "'model.toml' is not an HDF5 file"},
    {"PlanProfileIsAPlan", 1, kPlan + "--profile serial.h5", 3,
     "expected an 'alpa-profile' file, found an 'alpa-plan' file"},
    {"PlanProfileCut", 1, kPlan + "--profile profile.h5", 3,
     "'profile.h5' is an HDF5 file but truncated or damaged", spoil(cut_in_half, "profile.h5")},
    {"PlanProfileNewer", 1, kPlan + "--profile profile.h5", 3, "2.0 is newer than 1.1",
     spoil(set_text_attribute, "profile.h5", "/", "format_version", "2.0")},
    {"PlanProfileLinksElsewhere", 1, kPlan + "--profile profile.h5", 3, "link into another file, 'elsewhere'",
     spoil(add_external_link, "profile.h5")},
    {"PlanProfileFlippedBit", 1, kPlan + "--profile profile.h5", 3, "'profile.h5'",
     spoil(flip_bit_in, "profile.h5", "layer_norm")},

    {"PlanProfileOfOtherDevices", 1,
     "alpa-plan model.toml --profile profile.h5 --cluster gpu.toml --out new.h5", 3,
     ", but 'gpu.toml' has NVIDIA V100 SXM2 16 GB: it says nothing of these\n  try: a profile of such",
     gpu_cluster()},

    {"PlanProfileOfPartsThatAreNotSaid", 1,
     "alpa-plan model.toml --profile profile.h5 --cluster parts.toml --out new.h5", 3,
     "missing key 'memory_gib' in 'part[0]'",
     [](const fs::path& folder) {
       std::ofstream(folder / "parts.toml")
           << "[[part]]\nname = \"a\"\ndevice = \"CPU\"\nnodes = 1\ndevices_per_node = 4\n";
     }},

    {"CheckNoFile", 1, "alpa-plan check nowhere.h5", 3, "cannot read 'nowhere.h5'"},
    {"CheckCut", 1, "alpa-plan check mixed.h5", 3, "truncated or damaged", spoil(cut_in_half, "mixed.h5")},
    {"CheckFlippedBit", 1, "alpa-plan check mixed.h5", 3, "'mixed.h5'",
     spoil(flip_bit_in, "mixed.h5", "[dimensions]")},
    {"CheckNewer", 1, "alpa-plan check mixed.h5", 3, "6.0 is newer than 5.0",
     spoil(set_text_attribute, "mixed.h5", "/", "format_version", "6.0")},
    {"CheckOlder", 1, "alpa-plan check mixed.h5", 3,
     "plan 'mixed.h5' is of format 2.0: plans were lowered differently then\n  try: make it again: "
     "alpa-plan ",
     spoil(set_text_attribute, "mixed.h5", "/", "format_version", "2.0")},
    {"CheckOtherProgram", 1, "alpa-plan check mixed.h5", 3, "expected 0123456789ab, as when it was made",
     spoil(set_text_attribute, "mixed.h5", "/stages", "program_fingerprint", "0123456789ab")},
    {"SimulateOtherProgram", 1, "alpa-plan simulate mixed.h5", 3,
     "expected 0123456789ab, as when it was made",
     spoil(set_text_attribute, "mixed.h5", "/stages", "program_fingerprint", "0123456789ab")},
    {"CheckLinksElsewhere", 1, "alpa-plan check mixed.h5", 3, "link into another file, 'elsewhere'",
     spoil(add_external_link, "mixed.h5")},
    {"CheckOtherModel", 1, "alpa-plan check mixed.h5", 3, "the plan was made for 0123456789ab",
     spoil(set_text_attribute, "mixed.h5", "/model", "graph_fingerprint", "0123456789ab")},
    {"ExplainProfile", 1, "alpa-plan explain profile.h5", 3,
     "expected an 'alpa-plan' file, found an 'alpa-profile' file"},
    {"SimulateNoFolder", 1, "alpa-plan simulate mixed.h5 --trace no/such.json", 3, "try: mkdir -p 'no'"},
    {"CompareNoFile", 1, "alpa-plan compare mixed.h5 nowhere.h5", 2, "cannot read 'nowhere.h5'"},

    {"TrainNoPlan", 4, "alpa-train nowhere.h5 --data synthetic:64 --run-dir new", 3,
     "cannot read 'nowhere.h5'"},
    {"TrainNoRunDir", 4, "alpa-train mixed.h5 --data synthetic:64", 2, "--run-dir is missing"},
    {"TrainBadNumber", 4, kTrain + "--steps many", 2,
     "--steps: expected an integer, at least 0, found 'many'\n  try: --steps N: "},
    {"TrainOtherRankCount", 3, kTrain, 5, "the plan is for 4 ranks, this job has 3\n  try: srun --ntasks 4"},
    {"TrainAloneWherePlanHasFour", 1, kTrain, 5, "the plan is for 4 ranks, this job has 1"},
    {"TrainOtherLauncher", 1, "env -u PMI_SIZE SLURM_NTASKS=4 " + kTrain, 5, "srun --mpi=list"},
    {"TrainOnOtherNodes", 4, kTrain, 5,
     "nodes of 2 devices (2 + 2), this job has them on its nodes as 4\n  try: ",
     all_of({spoil(set_number_attribute, "mixed.h5", "/cluster", "nodes", 2),
             spoil(set_number_attribute, "mixed.h5", "/cluster", "devices_per_node", 2)})},
    {"TrainOnOtherDevices", 2, "alpa-train measured.h5 --data synthetic:64 --run-dir new", 5,
     "measurements on NVIDIA V100, this job computes on CPU, 1 thread",
     spoil(set_text_attribute, "measured.h5", "/cluster", "device", "NVIDIA V100")},
    {"TrainWithLittleMemory", 1, "alpa-train huge.h5 --data synthetic:64 --run-dir new", 5, "per rank, "},
    {"TrainInF16OnCpus", 1, "alpa-train half.h5 --data synthetic:64 --run-dir new", 5,
     "the model computes in f16, which this device does not: CPU, 1 thread"},
    {"TrainPlanCut", 4, kTrain, 3, "truncated or damaged", spoil(cut_in_half, "mixed.h5")},
    {"TrainPlanFlippedBit", 4, kTrain, 3, "'mixed.h5'", spoil(flip_bit_in, "mixed.h5", "[dimensions]")},
    {"TrainPlanOfOtherModel", 4, kTrain, 3, "the plan was made for 0123456789ab",
     spoil(set_text_attribute, "mixed.h5", "/model", "graph_fingerprint", "0123456789ab")},
    {"TrainPlanOfOtherProgram", 4, kTrain, 3, "expected 0123456789ab, as when it was made",
     spoil(set_text_attribute, "mixed.h5", "/stages", "program_fingerprint", "0123456789ab")},
    {"TrainNoData", 4, "alpa-train mixed.h5 --data nowhere.txt --run-dir new", 3,
     "cannot read 'nowhere.txt'"},
    {"TrainEmptyData", 4, "alpa-train mixed.h5 --data empty.txt --run-dir new", 3, "'empty.txt' is empty",
     text("empty.txt", "")},
    {"TrainShortData", 4, "alpa-train mixed.h5 --data short.txt --run-dir new", 3,
     "the data has 3 tokens, and one sample needs 17", text("short.txt", "\1\2\3")},
    {"TrainIdsBeyondVocabulary", 4, "alpa-train mixed.h5 --data text.txt --run-dir new", 3,
     "token 0 is 84, but the ids that the model takes are 0 to 63",
     text("text.txt", "The tokens of a text are its bytes, up to 255.")},
    {"TrainTokensElsewhere", 4, "alpa-train mixed.h5 --data serial.h5 --run-dir new", 3,
     "link into another file, 'elsewhere'", spoil(add_external_link, "serial.h5")},
    {"TrainUnwritableRunDir", 4, "alpa-train mixed.h5 --data synthetic:64 --run-dir model.toml/new", 3,
     "Not a directory"},
    {"TrainRunDirThatCannotBeMade", 4, "alpa-train mixed.h5 --data synthetic:64 --run-dir /proc/new", 3,
     "choose a --run-dir that you may write to"},
    {"TrainUnwritableTrace", 4, kTrain + "--trace no/such.json", 3, "try: mkdir -p 'no'"},
    {"TrainNoDevice", 2, "alpa-train mixed.h5 --data synthetic:64 --run-dir new --device tpu", 2,
     "--device: expected"},
    {"TrainNothingToResume", 4, kTrain + "--resume must", 3, "--resume must: there is no checkpoint"},
    {"TrainResumeNowhere", 4, kTrain + "--resume nowhere.h5", 3, "--resume: there is no file 'nowhere.h5'"},
    {"TrainResumeAPlan", 4, kTrain + "--resume serial.h5", 3, "expected an 'alpa-checkpoint' file"},
    {"TrainResumeCut", 1, kResume + "--resume run/checkpoints/step-00000002.h5", 3, "truncated or damaged",
     spoil(cut_in_half, "run/checkpoints/step-00000002.h5")},
    {"TrainResumeFlippedBit", 1, kResume, 3, "none of the 1 checkpoints in 'run/checkpoints' can be read",
     spoil(flip_bit_in, "run/checkpoints/step-00000002.h5", "alpa-checkpoint")},
    {"TrainResumeOtherModel", 1, "alpa-train other.h5 --data synthetic:64 --run-dir run", 3,
     "is a checkpoint of another model"},
    {"TrainNonFiniteLoss",
     4,
     "alpa-train hot.h5 --data synthetic:64 --run-dir new --steps 20",
     6,
     "a lower learning rate",
     {},
     {"new", "new/checkpoints", "new/metrics.jsonl"}},

    {"ProfileNoModel", 2, "alpa-profile nowhere.toml --out new.h5", 3, "cannot read 'nowhere.toml'"},
    {"ProfileUnknownKey", 2, "alpa-profile bad.toml --out new.h5", 3, "did you mean 'batch'?",
     model("[training]\nbatc = 8\n")},
    {"ProfileNoOut", 2, "alpa-profile model.toml", 2, "--out is missing"},
    {"ProfileNoFolder", 2, "alpa-profile model.toml --out no/such.h5", 3, "try: mkdir -p 'no'"},
    {"ProfileCut", 2, kProfile, 3, "truncated or damaged", spoil(cut_in_half, "profile.h5")},
    {"ProfileNewer", 2, kProfile, 3, "2.0 is newer than 1.1",
     spoil(set_text_attribute, "profile.h5", "/", "format_version", "2.0")},
    {"ProfileLinksElsewhere", 2, kProfile, 3, "link into another file, 'elsewhere'",
     spoil(add_external_link, "profile.h5")},
    {"ProfileInF16OnCpus", 2, "alpa-profile half.toml --out new.h5", 5,
     "the model computes in f16, which this device does not: CPU"},
    {"ProfileOfOtherMachines", 1, kProfile, 3, "another file for --out"},
};

class BadInput : public Workplace, public testing::WithParamInterface<Row> {
 protected:
  /// Good files, made once for all rows.
  class Kitchen : public Workplace {
   public:
    Kitchen() {
      write("model.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"model\"\n");
      write("other.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"other\"\n[dimensions]\nmodel = 16\n");
      write("hot.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"hot\"\n[training]\nlearning_rate = 1e30\n");
      fs::copy_file(cluster_, path("cluster.toml"));
      make_plan("serial", "--method serial", "model.toml");
      write("huge.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"huge\"\n[dimensions]\nmodel = 524288\n");
      write("roomy.toml", cluster_with("1e6"));
      EXPECT_EQ(run("alpa-plan huge.toml --cluster roomy.toml --method serial --out huge.h5").status, 0);
      make_plan("other", "--method serial", "other.toml");
      write("half.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"half\"\n[training]\nprecision = \"f16\"\n");
      std::ifstream local(cluster_);
      const std::string text{std::istreambuf_iterator<char>(local), {}};
      write("halves.toml", text + "f16_tflops = 0.03\n");
      EXPECT_EQ(run("alpa-plan half.toml --cluster halves.toml --method serial --out half.h5").status, 0);
      make_mixed_plan("hot", "hot.toml");
      make_mixed_plan("mixed", "model.toml");
      train("serial", 1, "run", "--steps 2");
      EXPECT_EQ(run(kProfile + "--micro-batch-samples 4", 2).status, 0);
      EXPECT_EQ(
          run("alpa-plan model.toml --profile profile.h5 --method data-parallel --out measured.h5").status,
          0);
    }
    void TestBody() override {}
    fs::path folder() const { return path(""); }
  };

  void SetUp() override {
    static const Kitchen kitchen;
    fs::copy(kitchen.folder(), path(""), fs::copy_options::recursive);
  }

  /// Everything in the folder: sizes of files, -1 for folders.
  std::map<std::string, std::int64_t> listing() const {
    std::map<std::string, std::int64_t> found;
    for (const auto& entry : fs::recursive_directory_iterator(path("")))
      found[fs::relative(entry.path(), path(""))] =
          entry.is_directory() ? -1 : static_cast<std::int64_t>(entry.file_size());
    return found;
  }

  /// The message is printed once, however many ranks met it, and no sanitizer has found anything.
  static void expect_told_once(const CommandResult& result, const std::string& message) {
    EXPECT_THAT(result.output, HasSubstr(message));
    EXPECT_NE(result.output.find("error: "), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("error: "), result.output.rfind("error: ")) << result.output;
    for (const char* report : {"Sanitizer", "runtime error", "Assertion", "BAD TERMINATION"})
      EXPECT_THAT(result.output, Not(HasSubstr(report)));
  }
};

TEST_P(BadInput, HasItsStatusAndOneMessageAndLeavesNothingHalfWritten) {
  const Row& row = GetParam();
  if (row.spoil) row.spoil(path(""));
  std::map<std::string, std::int64_t> before = listing();
  const CommandResult result = run(row.command, row.ranks);
  EXPECT_EQ(result.status, row.status) << result.output;
  expect_told_once(result, row.message);
  std::map<std::string, std::int64_t> after = listing();
  for (const std::string& name : row.leaves) after.erase(name);
  EXPECT_EQ(after, before);
}

INSTANTIATE_TEST_SUITE_P(Table, BadInput, testing::ValuesIn(rows),
                         [](const auto& row) { return std::string(row.param.name); });

class ForgedPlan : public BadInput {
 protected:
  /// Checks mixed.h5 with one number forged: it is refused, or, where `may_pass`, read.
  void expect_refusal(const std::string& number, std::int64_t value, bool may_pass, const Spoil& forge) {
    SCOPED_TRACE(number + " = " + std::to_string(value));
    fs::copy_file(path("mixed.h5"), path("forged.h5"), fs::copy_options::overwrite_existing);
    forge(path(""));
    const CommandResult result = run("alpa-plan check forged.h5");
    if (may_pass && result.status == 0) return;
    EXPECT_EQ(result.status, 3) << result.output;
    expect_told_once(result, "forged.h5");
  }
};

/// What a candidate that lost would have taken is in no other place; no sum of the plan is in a bucket.
bool may_be_another(const std::string& dataset, std::int64_t value) {
  return (dataset == "candidates/memory" && value >= 0) || (dataset == "sync/bucket" && value == -1);
}

TEST_F(ForgedPlan, IsRefusedWhicheverNumberIsForged) {
  const std::vector<std::string> datasets = integer_datasets(path("mixed.h5"));
  ASSERT_GT(datasets.size(), 10u);
  ASSERT_EQ(run("alpa-plan check mixed.h5").status, 0);
  for (const std::string& dataset : datasets)
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{7}, std::int64_t{1} << 40, INT64_MIN})
      expect_refusal(dataset, value, may_be_another(dataset, value),
                     spoil(set_number, "forged.h5", dataset, value));
  for (const char* name : {"micro_batches", "micro_batch_samples"})
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 29, INT64_MIN})
      expect_refusal(name, value, false, spoil(set_number_attribute, "forged.h5", "/model", name, value));
}

class FullDisk : public BadInput {};

TEST_F(FullDisk, EndsTheRunWithTheCheckpointBefore) {
  if (run("unshare -rm mount -t tmpfs none run").status != 0)
    GTEST_SKIP() << "no small file system can be mounted here";
  // There is room for one checkpoint of 2.2 MiB, from which the run can go on, but not save another.
  const std::string train =
      "mpiexec -n 4 alpa-train mixed.h5 --data synthetic:64 --run-dir run --checkpoint-every 1 ";
  const CommandResult result = run("unshare -rm sh -c 'mount -t tmpfs -o size=3m none run; " + train +
                                   "--steps 3; echo status $?; ls run/checkpoints; echo again; " + train +
                                   "--dry-run --resume must; echo status $?'");
  const std::size_t again = result.output.find("again\n");
  ASSERT_NE(again, std::string::npos) << result.output;
  const std::string first = result.output.substr(0, again), second = result.output.substr(again);
  expect_told_once({first, 1}, "free some space or quota");
  EXPECT_THAT(first, AllOf(HasSubstr("status 1\nstep-00000001.h5\n"), Not(HasSubstr(".partial"))));
  expect_told_once({second, 5}, " is free there\n  try: another --run-dir, a smaller --keep");
  EXPECT_THAT(second, AllOf(HasSubstr("resuming from step 1"), HasSubstr("\nstatus 5\n")));
}

}  // namespace
}  // namespace alpa
