// What lowering makes, as text: tests/program/lowered/*.txt. Where a change of it is meant,
// ALPA_REWRITE_LOWERED=1 test_program --gtest_filter='*Lowered*' writes them again, to be read before they
// are kept.
#include "libalpa/program/text.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "libalpa/base/error.h"
#include "libalpa/model/model.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

std::string pin_of_one_stage(const std::string& axes, const std::string& rest = "") {
  return "micro_batches = 2\n[[stage]]\nlayers = 4\nmesh = [2]\naxes = [\"" + axes + "\"]\n" + rest;
}

std::string pin_of_two_stages(const std::string& schedule, const std::string& rest) {
  std::string pin = "micro_batches = 4\nschedule = \"" + schedule + "\"\n";
  for (int stage = 0; stage < 2; ++stage)
    pin += "[[stage]]\nlayers = 2\nmesh = [2]\naxes = [\"data\"]\n" + rest;
  return pin;
}

/// A model of tests/data, cut into two stages of two devices each with that many layers.
Lowered of_file(const std::string& name, std::pair<int, int> layers) {
  const std::filesystem::path source = ALPA_SOURCE_DIR;
  const ModelDefinition model =
      read_model(source / "tests/data" / (name + ".toml"), {source / "share/blocks"});
  const auto graph_of = [&](std::int64_t samples) { return training_step_graph(model, samples); };
  PlannerOptions options = without_buckets();
  options.rematerialize = Rematerialize::never;
  options.pin = parse_pin(
      "micro_batches = 2\nschedule = \"1f1b\"\n[[stage]]\nlayers = " + std::to_string(layers.first) +
          "\nmesh = [2]\naxes = [\"data\"]\n[[stage]]\nlayers = " + std::to_string(layers.second) +
          "\nmesh = [2]\naxes = [\"tensor\"]\n",
      "pin");
  Lowered lowered;
  lowered.plan = plan_quietly({name, "", 8, graph_of}, small_cluster(4), options);
  lowered.graph = graph_of(lowered.plan.micro_batch_samples);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

Lowered evaluation_of(Lowered lowered) {
  lowered.program = lower(lowered.graph, lowered.plan, Purpose::evaluate);
  return lowered;
}

/// Each stage on a node of its own, split by samples.
Lowered two_stages_on_nodes_of_two() {
  Cluster cluster = small_cluster(2);
  cluster.nodes = 2;
  std::string pin = "micro_batches = 4\n";
  for (int stage = 0; stage < 2; ++stage) pin += "[[stage]]\nlayers = 2\nmesh = [2]\naxes = [\"data\"]\n";
  return pinned(pin, cluster);
}

struct LoweredCase {
  const char* name;
  std::function<Lowered()> make;
};

void PrintTo(const LoweredCase& c, std::ostream* out) { *out << c.name; }

class LoweredPrograms : public testing::TestWithParam<LoweredCase> {};

TEST_P(LoweredPrograms, AreAsTheirTextsSay) {
  const Lowered lowered = GetParam().make();
  const std::string text = program_text(lowered.program, lowered.graph);
  const std::filesystem::path file = std::filesystem::path(ALPA_SOURCE_DIR "/tests/program/lowered") /
                                     (std::string(GetParam().name) + ".txt");
  if (std::getenv("ALPA_REWRITE_LOWERED")) std::ofstream(file) << text;
  std::ifstream in(file);
  std::string line, line_of_text;
  std::istringstream lines(text);
  for (int number = 1; std::getline(lines, line_of_text); ++number) {
    ASSERT_TRUE(std::getline(in, line)) << file << " ends before line " << number << ": " << line_of_text;
    ASSERT_EQ(line_of_text, line) << file << ":" << number;
  }
  EXPECT_FALSE(std::getline(in, line)) << file << " goes on: " << line;
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, LoweredPrograms,
    testing::Values(
        LoweredCase{"two_stages_1f1b", [] { return two_stages_of_two(); }},
        LoweredCase{"two_stages_evaluated", [] { return evaluation_of(two_stages_of_two()); }},
        LoweredCase{"skip_connection_1f1b", [] { return four_stages("1f1b"); }},
        LoweredCase{"interleaved_1f1b",
                    [] {
                      return on_meshes("1f1b", {0, 1, 0, 1});
                    }},
        LoweredCase{"tied_weights_between_nodes", [] { return two_stages_on_nodes_of_two(); }},
        LoweredCase{"ring_of_four", [] { return ring_of_four(); }},
        LoweredCase{"sums_in_buckets",
                    [] {
                      return pinned(
                          "sync = \"one\"\n" + pin_of_one_stage("data", "state_sharding = \"none\"\n"),
                          small_cluster(4), {});
                    }},
        LoweredCase{"zero_3",
                    [] { return pinned(pin_of_one_stage("data", "state_sharding = \"parameters\"\n")); }},
        LoweredCase{"offloaded", [] { return offloaded_perceptron(1 << 20); }},
        LoweredCase{"activations_offloaded",
                    [] {
                      Cluster cluster = small_cluster(4);
                      cluster.host_bytes_per_s = 1e9;
                      return pinned(
                          "overlap = \"all\"\n" + pin_of_one_stage("data",
                                                                   "recomputed_layers = 2\n"
                                                                   "recompute_form = \"offload\"\n"),
                          cluster);
                    }},
        LoweredCase{"two_stages_split_1f1b", [] { return two_stages_of_two(4, "split-1f1b"); }},
        LoweredCase{"split_1f1b_rematerialized",
                    [] { return pinned(pin_of_two_stages("split-1f1b", "rematerialize = true\n")); }},
        LoweredCase{"mixture_of_experts",
                    [] {
                      return of_file("tiny_moe", {2, 2});
                    }},
        LoweredCase{"unet",
                    [] {
                      return of_file("tiny_unet", {5, 5});
                    }},
        LoweredCase{"tensor_rematerialized",
                    [] { return pinned(pin_of_one_stage("tensor", "rematerialize = true\n")); }},
        LoweredCase{"recomputed_selectively",
                    [] {
                      return pinned(
                          pin_of_one_stage("data", "rematerialize = true\nrecompute_form = \"selective\"\n"));
                    }}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(ProgramText, DiffersWhereARunWould) {
  const Lowered lowered = two_stages_of_two();
  const std::string text = program_text(lowered.program, lowered.graph);
  const auto text_with = [&](const std::function<void(MeshProgram&)>& change) {
    Program other = lowered.program;
    change(other.meshes[1_m]);
    return program_text(other, lowered.graph);
  };
  EXPECT_EQ(text_with([](MeshProgram&) {}), text);
  EXPECT_NE(text_with([](MeshProgram& s) { s.buffers[0_b].offset += kAlignment; }), text);
  EXPECT_NE(text_with([](MeshProgram& s) { std::swap(s.schedule[0], s.schedule[1]); }), text);
  EXPECT_NE(text_with([](MeshProgram& s) { s.segments[0].instructions.pop_back(); }), text);
  EXPECT_NE(text_with([](MeshProgram& s) { ++s.buffers[0_b].slots; }), text);
}

TEST(ProgramText, OfAPlanIsWhatItWasWhenThePlanWasMade) {
  Lowered lowered = two_stages_of_two();
  EXPECT_EQ(lowered.plan.program_fingerprint, program_fingerprint(lowered.program, lowered.graph));
  EXPECT_NO_THROW(check_program(lowered.plan, lowered.graph));
  lowered.plan.schedule = "gpipe";
  EXPECT_THAT([&] { check_program(lowered.plan, lowered.graph); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("the plan becomes program ")));
}

}  // namespace
}  // namespace alpa
