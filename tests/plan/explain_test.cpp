#include "libalpa/plan/explain.h"

#include <gmock/gmock.h>

#include "libalpa/base/units.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::Not;

std::string details(const Lowered& lowered) { return plan_details(plan_facts(lowered.plan, lowered.graph)); }

std::string summary(const Lowered& lowered) {
  return plan_summary(plan_facts(lowered.plan, lowered.graph), "plan.h5");
}

std::ptrdiff_t lines_of(const std::string& text) { return std::ranges::count(text, '\n'); }

TEST(PlanSummary, SaysHowItIsSplitWhatBindsHowSureWhatLostAndWhatToTry) {
  EXPECT_THAT(summary(two_stages_of_two()),
              testing::MatchesRegex(
                  "tiny on 4 devices of 'test': PP2, 4 micro-batches of 2 samples, schedule 1f1b, by [^\n]*\n"
                  "predicted step time [^\n]* \\(from data sheets\\): compute [0-9.]+ %, collectives [0-9.]+ "
                  "%, transfers "
                  "[0-9.]+ %, idle [0-9.]+ %\n"
                  "\n"
                  "stage  layers +devices +split +recompute/offload +memory of 1.00 GiB per device +work\n"
                  "0 +2: embedding .. block.0 +2: 0 - 1 +DP2 +none +[^\n]*\n"
                  "1 +2: block.1 .. head +2: 2 - 3 +TP2[^\\n]* +none +[^\n]*\n"
                  "\n"
                  "binds +[a-z ]+ on stage [01][^\n]*\n"
                  "sure +[^\n]*; every cost is estimated from the numbers of cluster 'test'\n"
                  "best tried [^\n]*\n"  // it is pinned
                  "try +alpa-profile[^\n]*\n(.*\n)*"
                  " +alpa-plan explain plan.h5 --full [^\n]*\n"
                  " +alpa-plan report plan.h5 --out plan.html [^\n]*\n"));
}

TEST(PlanSummary, PutsNeighboursThatSayTheSameInOneLine) {
  EXPECT_THAT(summary(four_stages("1f1b")),
              HasSubstr("\n0 - 3  1 each: first .. fourth  1 each: 0 - 3  1 device "));
}

TEST(PlanSummary, HasLessThan25LinesWhateverThePlan) {
  Lowered lowered = four_stages("1f1b");
  EXPECT_LT(lines_of(summary(lowered)), 25);
  PlanFacts facts = plan_facts(lowered.plan, lowered.graph);
  for (int more = 0; more < 60; ++more) {  // no two neighbours alike
    facts.stages.push_back(facts.stages[0]);
    facts.stages.back().plan.recomputed_layers = more % 2 == 0 ? 1 : 0;
  }
  const std::string text = plan_summary(facts, "plan.h5");
  EXPECT_LT(lines_of(text), 25);
  EXPECT_THAT(text, HasSubstr("\nand 51 stages more (--full)\n"));
}

TEST(PlanDetails, SayHowWhatComesToAStageGetsThere) {
  Lowered lowered = two_stages_of_two();
  const auto to_second = std::ranges::find_if(lowered.plan.transfers, [](const PlannedTransfer& transfer) {
    return transfer.to_mesh == 1_m && transfer.layout == replicated_spec(3);
  });
  ASSERT_NE(to_second, lowered.plan.transfers.end());
  to_second->way = {TransferStrategy::broadcast, 4};
  lowered.plan.prediction.transfers[static_cast<std::size_t>(to_second - lowered.plan.transfers.begin())] = {
      0.002, 2 << 20, 1 << 20};
  EXPECT_THAT(
      plan_details(plan_facts(lowered.plan, lowered.graph)),
      HasSubstr("1 x f32[2x8x16] from stage 0, S0RR -> RRR, broadcast in 4 chunks: 2.00 ms, 2.00 MiB, "
                "1.00 MiB of it between nodes: "));
}

TEST(PlanSummary, SaysHowMuchLongerComputationTakesBesideCommunication) {
  Lowered lowered = two_stages_of_two();
  const auto summary = [&] { return plan_summary(plan_facts(lowered.plan, lowered.graph), "plan.h5"); };
  EXPECT_THAT(summary(), testing::Not(HasSubstr("beside communication")));
  lowered.plan.cluster.overlap_slowdown = 1.25;
  EXPECT_THAT(summary(), HasSubstr("\ncomputation takes 1.25 times as long alongside communication\n"));
}

TEST(PlanDetails, SayWhatCommunicationHides) {
  Lowered lowered = two_stages_of_two();
  EXPECT_THAT(plan_details(plan_facts(lowered.plan, lowered.graph)),
              testing::Not(HasSubstr("beside computation")));
  lowered.plan.prediction.step_s = 0.010;
  lowered.plan.prediction.meshes[0_m].hidden = {0.002, 0.001};
  EXPECT_THAT(plan_details(plan_facts(lowered.plan, lowered.graph)),
              HasSubstr("alongside computation: collectives 2.00 ms (20.0 %), transfers 1.00 ms (10.0 %)\n"));
}

/// A plan of that method for 10 ms, and what else was tried.
Lowered tried(const std::string& method, std::vector<Candidate> others) {
  Lowered lowered = two_stages_of_two();
  lowered.plan.method = method;
  lowered.plan.prediction.step_s = 0.010;
  others.push_back({method, 0.010, 1, "chosen; the search's own best too", {}});
  lowered.plan.prediction.candidates = others;
  return lowered;
}

TEST(PlanSummary, NamesTheRunnerUpAndWhyItLost) {
  const Candidate lacking{"b", 0, 1, "layers 0 to 3 need 3.2 GiB at least", {}},
      slower{"c", 0.012, 1, "slower: idle +2.00 ms", {}};
  EXPECT_THAT(summary(tried("search", {lacking, slower})),
              HasSubstr("runner-up  c: 12.00 ms (+20.0 %), slower: idle +2.00 ms\n"));
  EXPECT_THAT(summary(tried("search", {lacking})),
              HasSubstr("runner-up  none: no other plan that was tried fits\n"));
}

TEST(PlanSummary, SaysWhatTheSameStagesTakeUnderOtherSchedules) {
  const Candidate slower{"search", 0.012, 1, "slower: idle +2.00 ms", {}, "gpipe"},
      lacking{"search", 0, 1, "layers 0 to 3 need 3.2 GiB at least", {}, "zero-bubble"};
  const std::string text = summary(tried("search", {slower, lacking}));
  EXPECT_THAT(
      text,
      HasSubstr(
          "schedule   1f1b; the same stages: gpipe 12.00 ms (+20.0 %), none as fast under zero-bubble\n"));
  EXPECT_THAT(text, HasSubstr("runner-up  none: no other plan that was tried fits\n"));
  EXPECT_THAT(summary(tried("search", {})), testing::Not(HasSubstr("the same stages")));
}

TEST(PlanSummary, ComparesAPlanThatWasAskedForWithTheBestThatWasTried) {
  const Candidate faster{"search", 0.007, 1, "the search's own best", {}},
      slower{"c", 0.012, 1, "slower: idle +2.00 ms", {}};
  const std::string text = "best tried search: 7.00 ms, 30.0 % less than this plan, which was asked for\n";
  EXPECT_THAT(summary(tried("pin p.toml", {faster})), HasSubstr(text));
  EXPECT_THAT(summary(tried("zero-2", {faster})), HasSubstr(text));
  EXPECT_THAT(summary(tried("pin p.toml", {slower})),
              HasSubstr("best tried this plan; next c: 12.00 ms (+20.0 %), slower: idle +2.00 ms\n"));
}

TEST(PlanSummary, SaysWhetherTheBoundIsOfTheSearchOrOfItsOwnStages) {
  Lowered lowered = two_stages_of_two();
  Prediction& p = lowered.plan.prediction;
  p.lower_bound_s = p.step_s / 1.25;
  EXPECT_THAT(plan_summary(plan_facts(lowered.plan, lowered.graph), "plan.h5"),
              HasSubstr("at most 25.00 % above the best of these stages on these meshes (bound "));
  p.bound_covers = "every plan of 4 micro-batches";
  EXPECT_THAT(plan_summary(plan_facts(lowered.plan, lowered.graph), "plan.h5"),
              HasSubstr("at most 25.00 % above the best of what the search covers (bound "));
}

TEST(PlanSummary, SuggestsMoreSearchWhereThereWasOne) {
  for (const auto& [method, is_suggested] : {std::pair{"search", true}, {"pin p.toml", false}}) {
    Lowered lowered = tried(method, {});
    lowered.plan.prediction.lower_bound_s = 0.9 * lowered.plan.prediction.step_s;
    EXPECT_EQ(summary(lowered).find("--effort thorough") != std::string::npos, is_suggested) << method;
  }
}

TEST(PlanSummary, KeepsWhatToTryInColumnsWhateverThePath) {
  const Lowered lowered = two_stages_of_two();
  const std::string text =
      plan_summary(plan_facts(lowered.plan, lowered.graph), "a/rather/long/path/to/the/plan-of-tiny.h5");
  const auto column_of = [&](const std::string& words) {
    const std::size_t at = text.find(words);
    return at - text.rfind('\n', at);
  };
  EXPECT_EQ(column_of("then plan with --profile"), column_of("layouts, memory by kind"));
  EXPECT_EQ(column_of("a page: timeline"), column_of("layouts, memory by kind"));
}

/// The plan on nodes of so many devices, its second stage busy with nothing but that part.
std::string binds(int devices_per_node, double MeshTime::*part) {
  Lowered lowered = two_stages_of_two();
  lowered.plan.cluster.devices_per_node = devices_per_node;
  lowered.plan.prediction.meshes[1_m].*part = 1;
  return binding_name(binding_of(lowered.plan));
}

TEST(BindingName, NamesTheNetworkInterfacesThatThePartGoesOver) {
  const std::string nic = ", some between nodes (NIC of 1.00 GB/s for ";
  EXPECT_EQ(binds(4, &MeshTime::transfer_s), "transfers between stages on stage 1");
  EXPECT_EQ(binds(2, &MeshTime::transfer_s), "transfers between stages" + nic + "2 devices), on stage 1");
  EXPECT_EQ(binds(2, &MeshTime::collective_s), "collectives on stage 1");
  EXPECT_EQ(binds(1, &MeshTime::collective_s), "collectives" + nic + "1 device), on stage 1");
  EXPECT_EQ(binds(1, &MeshTime::compute_s), "compute on stage 1");
}

TEST(PlanSummary, SaysHowFarTheStepMayBeOffWhereThatIsKnown) {
  Lowered lowered = two_stages_of_two();
  EXPECT_THAT(summary(lowered), HasSubstr(" (from data sheets): "));
  EXPECT_THAT(summary(lowered), testing::Not(HasSubstr("±")));
  lowered.plan.profile_fingerprint = "1234";
  lowered.plan.prediction.step_s = 0.0469;
  lowered.plan.prediction.step_error_s = 0.0012;
  EXPECT_THAT(summary(lowered), HasSubstr("predicted step time 46.90 ms ± 1.20 ms (from a profile): "));
}

TEST(PlanSummary, SaysWhichCostsAreMeasured) {
  Lowered lowered = two_stages_of_two();
  lowered.plan.profile_fingerprint = "1234";
  lowered.plan.prediction.estimated_operators = 3;
  EXPECT_THAT(summary(lowered), testing::AllOf(HasSubstr(" (from a profile): "),
                                               HasSubstr("; costs are measured, but for 3 operators\n"),
                                               Not(HasSubstr("alpa-profile"))));
  lowered.plan.prediction.estimated_share = 0.934;
  EXPECT_THAT(
      summary(lowered),
      HasSubstr("; costs are measured, but for 3 operators: 93.4 % of the computing time is estimated\n"));
}

TEST(Explain, PrintsStagesTimeMemoryAndLayoutsInWords) {
  const Lowered lowered = two_stages_of_two();
  const std::string text = details(lowered);
  for (const char* part :
       {"tiny on 4 devices of 'test': PP2, 4 micro-batches of 2 samples, schedule 1f1b",
        "predicted step time", "every cost is estimated from the numbers of cluster 'test'", "binds ",
        "stage 0: layers 0 to 1 (embedding .. block.0) on 2 devices 0 to 1, mesh 2: DP2",
        "stage 1: layers 2 to 3 (block.1 .. head) on 2 devices 2 to 3, mesh 2: TP2", "time    compute ",
        "memory  ", "whole on every device", "split 2 ways along dimension 1 (axis 0)", "forward work",
        "candidates"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Explain, SaysWhatOfAGpuNoPlanGets) {
  Lowered lowered = two_stages_of_two();
  const char* kept = "  memory  ";
  EXPECT_THAT(details(lowered), Not(HasSubstr("kept for CUDA")));
  lowered.plan.cluster.kind = DeviceKind::cuda;
  EXPECT_THAT(details(lowered),
              testing::ContainsRegex(std::string(kept) + "[^\n]*\n" +
                                     "          beside it 2.00 GiB of each GPU are kept for CUDA"));
}

/// The tiny GPT on one stage of two devices, by the batch.
Lowered data_parallel(const std::string& state_sharding) {
  return pinned(
      "micro_batches = 4\n[[stage]]\nlayers = 4\nmesh = [2]\naxes = [\"data\"]\nstate_sharding = \"" +
      state_sharding + "\"\n");
}

TEST(Explain, PrintsTrainingStateThatLiesOtherwiseThanItsParameter) {
  const Lowered zero_1 = data_parallel("optimizer");
  EXPECT_THAT(details(zero_1),
              HasSubstr("  optimizer state laid out differently from its parameter\n"
                        "     72 x split 2 ways along dimension 0 (axis 0): block.*.down.bias.moment1, "));
  const Lowered whole = data_parallel("none");
  EXPECT_THAT(details(whole), Not(HasSubstr("optimizer state laid out differently")));
}

TEST(Explain, PrintsSumsOfGradientsThatWaitForTheirReduction) {
  const Lowered lowered = data_parallel("none");
  EXPECT_THAT(details(lowered),
              HasSubstr("  sums of gradients laid out differently from their parameter\n"
                        "     36 x a sum still to be reduced over 2 devices (axis 0): block.*.down, "));
}

TEST(Explain, PrintsSavedActivationsThatAreSplit) {
  const Lowered lowered = data_parallel("none");
  EXPECT_THAT(details(lowered),
              testing::ContainsRegex("activations, saved for the backward, that are split\n"
                                     " +[0-9]+ x split 2 ways along dimension 0 \\(axis 0\\): add, "));
}

TEST(Explain, PrintsHowManyMicroBatchesAreInFlight) {
  const Lowered lowered = two_stages_of_two();
  ASSERT_EQ(lowered.plan.prediction.meshes[0_m].in_flight, 2);
  const std::int64_t bytes = lowered.plan.prediction.meshes[0_m].memory.activations;
  EXPECT_THAT(details(lowered),
              HasSubstr("activations 2 x " + bytes_text(static_cast<double>(bytes) / 2) + " in flight"));
}

TEST(PlanSummary, SaysThatMemoryBindsWhereItIsNearlyFullAloneAndWhatIsRecomputed) {
  Lowered lowered = two_stages_of_two();
  EXPECT_THAT(summary(lowered), Not(HasSubstr("memory on stage")));
  lowered.plan.stages[0_s].recomputed_layers = 2;
  EXPECT_THAT(summary(lowered), HasSubstr("; recomputation on stage 0\n"));
  lowered.plan.prediction.meshes[1_m].memory.total = lowered.plan.cluster.memory_bytes * 95 / 100;
  EXPECT_THAT(summary(lowered), HasSubstr("; memory on stage 1 (up to 95 % full)"));
}

TEST(WhySlower, NamesTheLargestDifference) {
  const Candidate chosen{"a", 0.010, 0, "", {0.006, 0.002, 0.001, 0.001}};
  EXPECT_EQ(why_slower({"b", 0.013, 0, "", {0.007, 0.0045, 0.001, 0.0005}}, chosen),
            "slower: collectives +2.50 ms");
  EXPECT_EQ(why_slower({"c", 0.012, 0, "", {0.005, 0.001, 0.001, 0.005}}, chosen), "slower: idle +4.00 ms");
  EXPECT_EQ(why_slower(chosen, chosen), "as fast");
}

TEST(ConstraintTable, PrintsEachConstraintWithItsPrice) {
  Lowered lowered = two_stages_of_two();
  EXPECT_EQ(constraint_table(plan_facts(lowered.plan, lowered.graph)), "");
  lowered.plan.prediction.step_s = 0.010;
  lowered.plan.prediction.constraints = {{"ZeRO at most 1", "limits.toml:1", 0.008},
                                         {"2 pipeline stages", "limits.toml:12", 0.010},
                                         {"schedule 1f1b", "limits.toml:13", 0}};
  lowered.plan.prediction.unconstrained_s = 0.005;
  const PlanFacts facts = plan_facts(lowered.plan, lowered.graph);
  EXPECT_EQ(constraint_table(facts),
            "\nconstraints that the plan meets: step time found without each, with the same effort, and its "
            "price\n"
            "  ZeRO at most 1     limits.toml:1      8.00 ms  +25.00 %\n"
            "  2 pipeline stages  limits.toml:12    10.00 ms  free\n"
            "  schedule 1f1b      limits.toml:13           -  not known\n"
            "  all of them                           5.00 ms  +100.00 %\n");
  EXPECT_THAT(plan_details(facts), HasSubstr(constraint_table(facts)));
}

TEST(Explain, PrintsHowFarFromTheLowerBoundAndWhatItCovers) {
  Lowered lowered = two_stages_of_two();
  Prediction& prediction = lowered.plan.prediction;
  prediction.step_s = 1.5;
  prediction.lower_bound_s = 1.2;
  prediction.bound_covers = "these stages";
  prediction.hit_time_limit = true;
  const std::string text = details(lowered);
  EXPECT_THAT(text,
              HasSubstr("1.20 s: the predicted step is at most 25.00 % above the best of these stages\n"));
  EXPECT_THAT(text, HasSubstr("the search was cut short"));
}

}  // namespace
}  // namespace alpa
