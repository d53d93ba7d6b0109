// Every way in which gradients get to their updates, with every other choice that there is about it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

/// What is chosen of each: [0] how gradients come together, [1] in which buckets, [2] when states are
/// updated, [3] what goes on beside computation.
using Kinds = std::array<std::size_t, 4>;
constexpr std::array<const char*, 5> kMethods{"data-parallel", "zero-1", "zero-2", "zero-3", "poseidon"};
constexpr std::array<const char*, 3> kBuckets{"each", "ddp", "one"};
constexpr Kinds kCounts{kMethods.size(), kBuckets.size(), 3, 3};

std::vector<Kinds> all_kinds() {
  std::vector<Kinds> all{{0, 0, 0, 0}};
  for (std::size_t of = 0; of < kCounts.size(); ++of) {
    std::vector<Kinds> more;
    for (const Kinds& kinds : all)
      for (std::size_t choice = 0; choice < kCounts[of]; ++choice) {
        more.push_back(kinds);
        more.back()[of] = choice;
      }
    all = std::move(more);
  }
  return all;
}

using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

std::set<Pair> pairs_of(const Kinds& kinds) {
  std::set<Pair> pairs;
  for (std::size_t a = 0; a < kinds.size(); ++a)
    for (std::size_t b = a + 1; b < kinds.size(); ++b) pairs.insert({a, kinds[a], b, kinds[b]});
  return pairs;
}

/// So few of them that any two choices meet in one: each has the most pairs that are not there yet.
std::vector<Kinds> pairwise() {
  const std::vector<Kinds> all = all_kinds();
  std::set<Pair> left;
  for (const Kinds& kinds : all) left.merge(pairs_of(kinds));
  std::vector<Kinds> chosen;
  while (!left.empty()) {
    const auto fresh = [&](const Kinds& kinds) {
      const std::set<Pair> pairs = pairs_of(kinds);
      return std::ranges::count_if(pairs, [&](const Pair& pair) { return left.contains(pair); });
    };
    chosen.push_back(*std::ranges::max_element(all, {}, fresh));
    for (const Pair& pair : pairs_of(chosen.back())) left.erase(pair);
  }
  return chosen;
}

TinyCase case_of(const Kinds& kinds) {
  TinyCase c{"image_mlp", kMethods[kinds[0]], 4, 2};
  c.gradient_clip = 1;
  c.wire_bound = true;  // else no gradient is made of factors
  c.sync = kBuckets[kinds[1]];
  c.updates = static_cast<UpdateOrder>(kinds[2]);
  return c;
}

class KindsOfSynchronisation : public testing::TestWithParam<Kinds> {};

TEST_P(KindsOfSynchronisation, TrainAsOneDeviceDoes) {
  TinyTraining training(case_of(GetParam()));
  ASSERT_EQ(training.plan().updates, case_of(GetParam()).updates);
  training.set_overlap(static_cast<Overlap>(GetParam()[3]));
  TinyCase alone{"image_mlp", "serial"};
  alone.gradient_clip = 1;
  const TinyCurve curve = training.run_on_threads(5), reference = TinyTraining(alone).run_on_threads(5);
  EXPECT_EQ(training.run_on_threads(5).losses, curve.losses) << "not the same bits twice";
  ASSERT_EQ(curve.losses.size(), reference.losses.size());
  for (std::size_t step = 0; step < curve.losses.size(); ++step) {
    EXPECT_NEAR(curve.losses[step], reference.losses[step], 1e-5 * std::abs(reference.losses[step]));
    EXPECT_NEAR(curve.norms[step], reference.norms[step], 1e-5 * reference.norms[step]);
  }
}

/// A way for each parameter, given in a file: those that are not named are free.
constexpr const char* kEntries[] = {"[[gradient]]\nname = \"*.up\"\nway = \"all-reduce\"",
                                    "[[gradient]]\nname = \"*.up\"\nway = \"zero-1\"",
                                    "[[gradient]]\nname = \"*.up\"\nway = \"zero-2\"",
                                    "[[gradient]]\nname = \"*.up\"\nway = \"zero-3\"",
                                    "[[gradient]]\nname = \"*.up\"\nway = \"factors\"",
                                    "[[gradient]]\nname = \"block.0.*.up\"\nway = "
                                    "\"factors\"\n[[gradient]]\nname = \"block.0.*.down\"\nway = \"zero-3\"\n"
                                    "[[gradient]]\nname = \"block.1.*.up\"\nway = "
                                    "\"zero-2\"\n[[gradient]]\nname = \"*.output\"\nway = \"zero-1\""};

class EntriesOfAFile : public testing::TestWithParam<const char*> {};

TEST_P(EntriesOfAFile, TrainAsOneDeviceDoes) {
  TinyCase c{"gpt", "intra-only", 4, 2};
  c.constraints = std::string("most_tensor_parallel = 1\n") + GetParam();
  const TinyCurve curve = TinyTraining(c).run_on_threads(5),
                  reference = TinyTraining({"gpt", "serial"}).run_on_threads(5);
  ASSERT_EQ(curve.losses.size(), reference.losses.size());
  for (std::size_t step = 0; step < curve.losses.size(); ++step)
    EXPECT_NEAR(curve.losses[step], reference.losses[step], 1e-5 * std::abs(reference.losses[step]));
}

INSTANTIATE_TEST_SUITE_P(Ways, EntriesOfAFile, testing::ValuesIn(kEntries),
                         [](const auto& entries) { return "Case" + std::to_string(entries.index); });

std::string name_of(const testing::TestParamInfo<Kinds>& info) {
  const auto& [method, buckets, updates, overlap] = info.param;
  std::string name = std::string(kMethods[method]) + "_" + kBuckets[buckets] + "_" +
                     update_order_name(static_cast<UpdateOrder>(updates)) + "_overlap_" +
                     overlap_name(static_cast<Overlap>(overlap));
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pairs, KindsOfSynchronisation, testing::ValuesIn(pairwise()), name_of);
INSTANTIATE_TEST_SUITE_P(Every, KindsOfSynchronisation, testing::ValuesIn(all_kinds()), name_of);

}  // namespace
}  // namespace alpa
