// What a plan promises and what its run does are shown in the same rows.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "libalpa/device/host_machine.h"
#include "libalpa/plan/plan_file.h"
#include "tests/commands/workplace.h"
#include "tests/program/trace_faults.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Trace : public Workplace {
 protected:
  /// One text per row and name, without times; sorted. What depends on these is left out.
  std::multiset<std::string> rows(const std::string& name) const {
    std::ifstream file(path(name));
    std::multiset<std::string> rows;
    const nlohmann::json trace = nlohmann::json::parse(file);
    EXPECT_EQ(trace_faults(trace), "") << name;
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("ph") == "C" || event.value("cat", "") == "idle" || event.at("name") == "process_labels")
        continue;
      nlohmann::json row = event;
      row.erase("ts");
      row.erase("dur");
      rows.insert(row.dump());
    }
    return rows;
  }
};

TEST_F(Trace, OfARunHasTheRowsOfTheSimulation) {
  make_mixed_plan("mixed");
  const CommandResult simulation = run("alpa-plan simulate mixed.h5 --trace planned.json");
  ASSERT_EQ(simulation.status, 0) << simulation.output;
  const CommandResult trained = run(training("mixed", "run", "--steps 4 --trace measured.json"), 4);
  ASSERT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(rows("planned.json"), SizeIs(testing::Gt(1000)));
  EXPECT_EQ(rows("planned.json"), rows("measured.json"));
}

TEST_F(Trace, OfTheWholeStepIsItsPredictionBesideIt) {
  make_plan("serial", "--method serial");
  const CommandResult trained = run(training("serial", "run", "--steps 3 --checkpoint-every 0"));
  ASSERT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr("step time: predicted "));
  EXPECT_THAT(trained.output, HasSubstr("; arena: predicted "));
  const double predicted = read_plan(path("serial.h5")).prediction.step_s;
  EXPECT_GT(predicted, 0);
  EXPECT_THAT(numbers("run", "predicted_step_s"), ElementsAre(predicted, predicted, predicted));
  EXPECT_THAT(numbers("run", "step_s"), SizeIs(3));
}

class Emulation : public Trace {
 protected:
  void SetUp() override {
    write("slow.toml", R"(device = "NVIDIA V100 SXM2 16 GB"
nodes = 1
devices_per_node = 4
memory_gib = 12
f32_tflops = 14
bf16_tflops = 88
memory_gb_per_s = 765
launch_us = 300
within_node = { latency_us = 6, gb_per_s = 130 }
)");
    const CommandResult planned = run("alpa-plan " + tiny_gpt_ +
                                      " --cluster slow.toml --pin " ALPA_SOURCE_DIR
                                      "/configs/pins/two-stages-of-two.toml --out plan.h5");
    ASSERT_EQ(planned.status, 0) << planned.output;
  }

  CommandResult emulate(const std::string& options) const {
    return run(training("plan", "run", "--device emulated --steps 4 " + options), 4);
  }

  /// Seconds of all computations, summed over stages; what loads and slices copy is copied.
  double computed_s(const std::string& file_name) const {
    std::ifstream file(path(file_name));
    const nlohmann::json trace = nlohmann::json::parse(file);
    double us = 0;
    for (const auto& event : trace.at("traceEvents")) {
      const std::string name = event.at("name");
      if (event.value("cat", "") == "compute" && name != "load" && !name.starts_with("slice"))
        us += event.at("dur").get<double>();
    }
    return us / 1e6;
  }
};

TEST_F(Emulation, HasTheRowsOfTheSimulationAndTheirTimeOfComputation) {
  ASSERT_EQ(run("alpa-plan simulate plan.h5 --trace planned.json").status, 0);
  const CommandResult emulated = emulate("--trace emulated.json");
  ASSERT_EQ(emulated.status, 0) << emulated.output;
  EXPECT_THAT(emulated.output,
              AllOf(HasSubstr("warning: emulated: "), HasSubstr("on 4 ranks"),
                    HasSubstr("step 4/4  emulated in "), HasSubstr("done: 4 steps, emulated")));
  EXPECT_EQ(emulated.output.find("loss "), std::string::npos) << emulated.output;
  EXPECT_EQ(rows("planned.json"), rows("emulated.json"));
  const double planned_s = computed_s("planned.json");
  EXPECT_GT(planned_s, 0.1);
  EXPECT_GE(computed_s("emulated.json"), planned_s - 2 * 2e-4);  // EmulatedClock makes up for that much
  std::ifstream trace(path("emulated.json"));
  EXPECT_EQ(nlohmann::json::parse(trace).at("timeline"), "emulated");
}

TEST_F(Emulation, IsMistakenForNoTraining) {
  const CommandResult emulated = emulate("");
  ASSERT_EQ(emulated.status, 0) << emulated.output;
  EXPECT_THAT(names_in("run"), ElementsAre("emulated.jsonl"));
  train("plan", 4, "run", "--steps 2");  // the same folder
  EXPECT_THAT(numbers("run", "step"), ElementsAre(1, 2));
  const std::vector<std::string> files = names_in("run/checkpoints");
  const CommandResult again = emulate("");
  EXPECT_EQ(again.status, 2) << again.output;
  EXPECT_THAT(again.output, HasSubstr("error: 'run' is the folder of a run that was trained"));
  EXPECT_EQ(names_in("run/checkpoints"), files);
}

TEST_F(Emulation, ResumesNothingAndTakesAProfileOfItsOwnOnly) {
  CommandResult refused = emulate("--resume must");
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("error: --resume is given, but a run on emulated devices"));
  refused = run(training("plan", "run", "--profile plan.h5"), 4);
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("add --device emulated"));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(Emulation, KeepsNoTimelineToCalibrateBy) {
  const CommandResult refused = emulate("--timeline-steps 2");
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("error: --timeline-steps is given, but emulated computations take"));
}

class DryRun : public Workplace {};

TEST_F(DryRun, ChecksEverythingAndWritesNothing) {
  make_mixed_plan("mixed");
  const std::vector<std::string> before = names_in("");
  const CommandResult fresh = run(training("mixed", "run", "--dry-run --trace trace.json"), 4);
  EXPECT_EQ(fresh.status, 0) << fresh.output;
  EXPECT_THAT(fresh.output, HasSubstr("dry run: plan, data, memory ("));
  EXPECT_EQ(run(training("mixed", "run", "--dry-run --resume must"), 4).status, 3);
  EXPECT_EQ(names_in(""), before);

  train("mixed", 4, "run", "--steps 2");
  const std::vector<std::string> files = names_in("run/checkpoints");
  const CommandResult resumed = run(training("mixed", "run", "--dry-run --resume must"), 4);
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("resuming from step 2"));
  EXPECT_EQ(names_in("run/checkpoints"), files);
}

TEST_F(DryRun, RefusesATraceThatCannotBeWritten) {
  make_plan("serial", "--method serial");
  const auto dry = [&](const std::string& trace) {
    return run(training("serial", "run", "--dry-run --trace " + trace));
  };
  const CommandResult refused = dry("traces/trace.json");
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("error: cannot write 'traces/trace.json': No such file"),
                                    HasSubstr("try: mkdir -p 'traces'")));
  EXPECT_EQ(dry("run/trace.json").status, 0) << "the run makes its folder";
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(DryRun, RefusesADiskThatCannotHoldTheCheckpoints) {
  make_plan("serial", "--method serial");
  const std::string all = training("serial", "run", "--keep 0 --checkpoint-every 1 --steps 1000000000000 ");
  const CommandResult dry = run(all + "--dry-run");
  EXPECT_EQ(dry.status, 5) << dry.output;
  EXPECT_THAT(dry.output, AllOf(HasSubstr("error: 'run' is to hold 1000000000000 checkpoints of "),
                                HasSubstr(" is free there\n  try: another --run-dir, a smaller --keep")));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  EXPECT_EQ(
      run(training("serial", "run", "--keep 2 --checkpoint-every 1 --steps 1000000000000 --dry-run")).status,
      0);
}

// Of a batch of many micro-batches the samples take more than all that is made of one micro-batch.
TEST_F(DryRun, RefusesAProcessThatTakesMoreThanItsNodeHas) {
  constexpr std::int64_t micro_batches = 1024, sequence = 1024, bytes_of_sample = 2 * 2 * 4 * sequence;
  constexpr std::int64_t unit = 2 * micro_batches;  // two ranks share each micro-batch equally
  const std::int64_t batch = 4 * available_host_bytes() / bytes_of_sample / unit * unit;
  write("wide.toml", fmt::format("base = \"{}\"\nname = \"wide\"\n"
                                 "[dimensions]\nvocabulary = 8\nmodel = 4\nheads = 1\nlayers = 1\n"
                                 "[training]\nsequence = {}\nbatch = {}\n",
                                 tiny_gpt_, sequence, batch));
  write("roomy.toml", R"(device = "CPU"
nodes = 1
devices_per_node = 2
memory_gib = 1e6
f32_tflops = 0.06
bf16_tflops = 0.03
memory_gb_per_s = 8
launch_us = 1
within_node = { latency_us = 5, gb_per_s = 3 }
)");
  const CommandResult planned = run(
      "alpa-plan wide.toml --cluster roomy.toml --method data-parallel --micro-batches 1024 --time-limit 1 "
      "--out wide.h5");
  ASSERT_EQ(planned.status, 0) << planned.output;
  const CommandResult dry = run("alpa-train wide.h5 --data synthetic:8 --run-dir run --dry-run", 2);
  EXPECT_EQ(dry.status, 5) << dry.output;
  EXPECT_EQ(dry.output.find("error: "), dry.output.rfind("error: "));  // both ranks find the same
  EXPECT_THAT(dry.output, AllOf(HasSubstr("error: a rank takes "), HasSubstr("of its node's memory (arena "),
                                HasSubstr("srun --mem")));
}

class CheckedDevice : public Workplace {};

// Buffers of this device cannot be read as host memory: whatever the run-time does to them it does by the
// device.
TEST_F(CheckedDevice, TrainsAsTheCpuBitForBit) {
  make_mixed_plan("mixed");
  train("mixed", 4, "cpu", "--steps 4 --evaluate-every 2");
  train("mixed", 4, "checked", "--steps 4 --evaluate-every 2 --device checked-cpu");
  EXPECT_EQ(difference(checkpoint("cpu", 4), checkpoint("checked", 4)), "");
  EXPECT_EQ(numbers("cpu", "loss"), numbers("checked", "loss"));
}

}  // namespace
}  // namespace alpa
