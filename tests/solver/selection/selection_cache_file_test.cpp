#include "libalpa/solver/selection/selection_cache_file.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/h5/file.h"
#include "tests/h5/damage.h"
#include "tests/h5/temporary_folder.h"

// HDF5 1.10.8 forgets the buffer of metadata whose checksum is wrong; AddressSanitizer asks for this by name.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

SelectionCache::Entry entry_of(int number, std::int64_t last_used = 0) {
  SelectionSolution solution;
  solution.feasible = true;
  solution.choice = {number, 2, 0};
  solution.cost = 0.1 * number;
  solution.lower_bound = 0.1 * number - 1e-17;
  solution.certified_bound = -infinity;
  solution.peak_memory = std::int64_t{1} << 40;
  solution.proof = "gap 1.2 %, effort limit";
  return {solution, 0.25, last_used};
}

SelectionCache::Entry infeasible() {
  SelectionSolution solution;
  solution.cost = solution.lower_bound = infinity;
  solution.proof = "infeasible: memory";
  solution.least_memory = 12345;
  return {solution, 1.5, 7};
}

bool are_equal(const SelectionCache::Entry& a, const SelectionCache::Entry& b) {
  const auto fields = [](const SelectionCache::Entry& e) {
    const SelectionSolution& s = e.solution;
    return std::tuple(s.feasible, s.choice, s.cost, s.lower_bound, s.certified_bound, s.peak_memory, s.proof,
                      s.hit_time_limit, s.by_effort_alone, s.least_memory, e.seconds, e.last_used);
  };
  return fields(a) == fields(b);
}

class SolutionsFile : public testing::Test {
 protected:
  void write(SelectionCache& cache, std::int64_t most_bytes = kMostCacheBytes) const {
    write_solutions(path_, cache, {}, most_bytes);
  }
  std::map<Fingerprint, SelectionCache::Entry> read() const {
    SelectionCache cache;
    EXPECT_EQ(read_solutions(path_, cache), "");
    return cache.entries();
  }
  void expect_refused(const std::string& says) const {
    SelectionCache cache;
    EXPECT_THAT(
        [&] { read_solutions(path_, cache); },
        ThrowsMessage<Error>(AllOf(HasSubstr("solutions.h5'"), HasSubstr(says), HasSubstr("removed"))));
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "solutions.h5";
};

TEST_F(SolutionsFile, IsOfNoneWhereThereIsNone) { EXPECT_TRUE(read().empty()); }

TEST_F(SolutionsFile, HoldsNoSolutions) {
  SelectionCache cache;
  write(cache);
  EXPECT_TRUE(read().empty());
}

TEST_F(SolutionsFile, HoldsSolutionsToTheLastBit) {
  SelectionCache cache;
  for (int i = 1; i < 100; ++i) cache.add({0, static_cast<std::uint64_t>(i)}, entry_of(i, i));
  cache.add({~std::uint64_t{0}, 0}, infeasible());
  write(cache);
  const auto found = read();
  ASSERT_EQ(found.size(), 100u);
  for (const auto& [key, entry] : cache.entries()) EXPECT_TRUE(are_equal(found.at(key), entry)) << key.low;
}

TEST_F(SolutionsFile, IsBegunAnewForAnotherSolver) {
  SelectionCache of_another, cache;
  of_another.add({0, 1}, entry_of(1));
  write_solutions(path_, of_another, {}, kMostCacheBytes, "version 0, CBC 1.0");
  EXPECT_EQ(read_solutions(path_, cache), "version 0, CBC 1.0");
  EXPECT_TRUE(cache.entries().empty());
  cache.add({0, 2}, entry_of(2));
  write(cache);
  const auto found = read();
  EXPECT_EQ(found.size(), 1u);
  EXPECT_TRUE(found.contains({0, 2}));
}

TEST_F(SolutionsFile, HasWhatAnotherCommandAddedMeanwhile) {
  SelectionCache one, other;
  write(one);
  one.add({0, 1}, entry_of(1));
  other.add({0, 2}, entry_of(2));
  write(one);
  write(other);
  EXPECT_EQ(read().size(), 2u);
}

TEST_F(SolutionsFile, LosesWhatWasNotUsedForLongestWhereItWouldBeTooLarge) {
  SelectionCache cache;
  constexpr int kEntries = 1000;
  for (int i = 0; i < kEntries; ++i) {
    SelectionCache::Entry entry = entry_of(i, (i * 7) % kEntries);
    entry.solution.choice.assign(1000, 1);
    cache.add({0, static_cast<std::uint64_t>(i)}, entry);
  }
  constexpr std::int64_t kMost = 1'000'000;
  write(cache, kMost);
  EXPECT_LE(static_cast<std::int64_t>(std::filesystem::file_size(path_)), kMost);
  const auto found = read();
  EXPECT_THAT(static_cast<int>(found.size()), AllOf(testing::Gt(kEntries / 5), testing::Lt(kEntries)));
  const auto left = static_cast<std::int64_t>(kEntries - found.size());
  for (const auto& [key, entry] : found) EXPECT_GE(entry.last_used, left);
}

TEST_F(SolutionsFile, ThatIsNoneIsRefusedAndStaysAsItIs) {
  std::ofstream(path_) << "notes";
  expect_refused("is not an HDF5 file");
  SelectionCache cache;
  EXPECT_THROW(write(cache), Error);
  EXPECT_EQ(bytes_of_file(path_), "notes");
  H5Writer plan(path_, "alpa-plan", "1.0");
  plan.publish();
  expect_refused("expected an 'alpa-solutions' file, found an 'alpa-plan' file");
}

TEST_F(SolutionsFile, OfALaterFormatIsRefused) {
  H5Writer later(path_, "alpa-solutions", "2.0");
  later.publish();
  expect_refused("newer than");
}

TEST_F(SolutionsFile, ThatIsDamagedIsRefused) {
  SelectionCache cache;
  for (int i = 0; i < 2000; ++i) cache.add({0, static_cast<std::uint64_t>(i)}, entry_of(i));
  write(cache);
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path_));
  int refused = 0;
  constexpr int kPlaces = 60;
  for (int place = 0; place < kPlaces; ++place) {
    const FlippedBit flipped(path_, bytes * place / kPlaces, place % 8);
    SelectionCache found;
    try {
      read_solutions(path_, found);
    } catch (const Error&) {
      ++refused;
      continue;
    }
    for (const auto& [key, entry] : found.entries())  // where the bit is of no use
      EXPECT_TRUE(are_equal(cache.entries().at(key), entry)) << place;
  }
  EXPECT_GT(refused, kPlaces / 2);
  std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(bytes / 2));
  expect_refused("truncated or damaged");
}

TEST_F(SolutionsFile, WhoseColumnsDoNotFitTogetherIsRefused) {
  H5Writer file(path_, "alpa-solutions", "1.0");
  file.attribute("/", "solver", solver_text());
  file.column("/solutions/key", std::vector<std::string>{"no key"});
  file.publish();
  expect_refused("/solutions/proof");
}

}  // namespace
}  // namespace alpa
