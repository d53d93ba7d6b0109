#include "libalpa/trainer/read_ahead.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <set>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Sample s is the number s. What is read waits until it may be.
class SlowNumbers final : public BatchReader {
 public:
  explicit SlowNumbers(bool can_read_ahead = true)
      : BatchReader(SampleOrder::of_rows(1000, {})), can_read_ahead_(can_read_ahead) {}

  void fill(Split split, std::int64_t first_sample, const StepSamples& samples,
            std::span<const std::span<std::byte>> into) override {
    {
      std::unique_lock lock(mutex_);
      begun_.insert(first_sample);
      changed_.notify_all();
      changed_.wait(lock, [&] { return !held_.contains(first_sample); });
      read_by_.push_back(std::this_thread::get_id());
    }
    if (first_sample == bad_) throw Error(ErrorKind::input, "sample " + std::to_string(bad_) + " is bad");
    for (std::size_t input = 0; input < into.size(); ++input)
      for (std::int64_t row = 0; row < samples[input].count(); ++row) {
        const std::int32_t number = static_cast<std::int32_t>(first_sample + samples[input].sample(row)) *
                                    (split == Split::training ? 1 : -1);
        std::memcpy(into[input].data() + row * 4, &number, 4);
      }
    const std::lock_guard lock(mutex_);
    ended_.insert(first_sample);
    changed_.notify_all();
  }
  std::int64_t target_count(Split, std::int64_t, std::int64_t samples) const override { return samples; }
  bool can_read_ahead() const override { return can_read_ahead_; }
  std::int64_t held_bytes() const override { return 7; }
  std::string description() const override { return "numbers"; }
  std::int64_t length() const override { return 1000; }

  void hold(std::int64_t first_sample) {
    const std::lock_guard lock(mutex_);
    held_.insert(first_sample);
  }
  void let_go(std::int64_t first_sample) {
    const std::lock_guard lock(mutex_);
    held_.erase(first_sample);
    changed_.notify_all();
  }
  void wait_until_begun(std::int64_t first_sample) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.contains(first_sample); });
  }
  void wait_until_ended(std::int64_t first_sample) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_.contains(first_sample); });
  }
  bool has_begun(std::int64_t first_sample) {
    const std::lock_guard lock(mutex_);
    return begun_.contains(first_sample);
  }
  /// Which thread did each read.
  std::vector<std::thread::id> read_by() {
    const std::lock_guard lock(mutex_);
    return read_by_;
  }

  std::int64_t bad_ = -1;  ///< where a step begins that cannot be read

 private:
  bool can_read_ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::int64_t> held_, begun_, ended_;
  std::vector<std::thread::id> read_by_;
};

/// Steps of four samples, of which the rank takes the second half, of the first of two inputs.
const StepSamples kSecondHalf{{1, 4, 2, 2, 4}, {1, 4, 0, 0, 4}};

std::vector<std::int32_t> numbers_of(ReadAhead::Samples samples) {
  std::vector<std::int32_t> numbers(samples[0].size() / 4);
  std::memcpy(numbers.data(), samples[0].data(), samples[0].size());
  EXPECT_TRUE(samples[1].empty());
  return numbers;
}

class ReadingAhead : public ::testing::Test {
 protected:
  SlowNumbers reader_;
  const std::unique_ptr<Device> device_ = make_cpu_device(1);
};

TEST_F(ReadingAhead, ReadsTheNextStepWhileOneRuns) {
  ReadAhead ahead(*device_, kSecondHalf, reader_);
  reader_.hold(4);
  EXPECT_THAT(numbers_of(ahead.training(0, 4)), ElementsAre(2, 3));  // the step runs from here
  reader_.wait_until_begun(4);
  reader_.let_go(4);
  EXPECT_THAT(numbers_of(ahead.training(4, 8)), ElementsAre(6, 7));
  EXPECT_THAT(numbers_of(ahead.training(8, std::nullopt)), ElementsAre(10, 11));
  const auto by = reader_.read_by();
  ASSERT_EQ(by.size(), 3u) << "each step once";
  EXPECT_EQ(by[0], std::this_thread::get_id()) << "nobody could know before";
  EXPECT_NE(by[1], std::this_thread::get_id());
  EXPECT_EQ(by[2], by[1]);
}

TEST_F(ReadingAhead, LeavesTheStepThatRunsItsSamples) {
  ReadAhead ahead(*device_, kSecondHalf, reader_);
  const ReadAhead::Samples running = ahead.training(0, 4);
  reader_.wait_until_ended(4);
  EXPECT_THAT(numbers_of(running), ElementsAre(2, 3));
}

TEST_F(ReadingAhead, WaitsForWhatIsStillBeingRead) {
  ReadAhead ahead(*device_, kSecondHalf, reader_);
  reader_.hold(4);
  ahead.training(0, 4);
  std::future<std::vector<std::int32_t>> second =
      std::async(std::launch::async, [&] { return numbers_of(ahead.training(4, std::nullopt)); });
  reader_.wait_until_begun(4);
  reader_.let_go(4);
  EXPECT_THAT(second.get(), ElementsAre(6, 7));
}

TEST_F(ReadingAhead, KeepsWhatIsAheadDuringAnEvaluation) {
  ReadAhead ahead(*device_, kSecondHalf, reader_);
  ahead.training(0, 4);
  EXPECT_THAT(numbers_of(ahead.read(reader_, Split::held_out, 0)), ElementsAre(-2, -3));
  EXPECT_THAT(numbers_of(ahead.read(reader_, Split::held_out, 4)), ElementsAre(-6, -7));
  EXPECT_THAT(numbers_of(ahead.training(4, std::nullopt)), ElementsAre(6, 7));
  EXPECT_EQ(reader_.read_by().size(), 4u) << "nothing twice";
}

TEST_F(ReadingAhead, ReadsAnewWhereAnotherStepFollows) {
  ReadAhead ahead(*device_, kSecondHalf, reader_);
  ahead.training(0, 4);
  EXPECT_THAT(numbers_of(ahead.training(100, 104)), ElementsAre(102, 103));
  EXPECT_THAT(numbers_of(ahead.training(104, std::nullopt)), ElementsAre(106, 107));
}

TEST_F(ReadingAhead, ThrowsWhatIsWrongAtTheStepThatTakesIt) {
  reader_.bad_ = 4;
  ReadAhead ahead(*device_, kSecondHalf, reader_);
  EXPECT_THAT(numbers_of(ahead.training(0, 4)), ElementsAre(2, 3));
  EXPECT_THAT(numbers_of(ahead.read(reader_, Split::held_out, 0)), ElementsAre(-2, -3));
  EXPECT_THAT([&] { ahead.training(4, 8); }, ThrowsMessage<Error>(HasSubstr("sample 4 is bad")));
}

TEST_F(ReadingAhead, SaysNothingOfAStepThatIsNotTaken) {
  reader_.bad_ = 4;
  {
    ReadAhead ahead(*device_, kSecondHalf, reader_);
    ahead.training(0, 4);
    EXPECT_THAT(numbers_of(ahead.training(8, 4)), ElementsAre(10, 11));
  }
  EXPECT_TRUE(reader_.has_begun(4));
}

TEST_F(ReadingAhead, EndsWhenWhatIsBeingReadHasBeen) {
  auto ahead = std::make_unique<ReadAhead>(*device_, kSecondHalf, reader_);
  reader_.hold(4);
  ahead->training(0, 4);
  reader_.wait_until_begun(4);
  std::future<void> end = std::async(std::launch::async, [&] { ahead.reset(); });
  reader_.let_go(4);
  end.get();
  EXPECT_EQ(reader_.read_by().size(), 2u);
}

TEST_F(ReadingAhead, IsNotForDataThatOneThreadAloneMayRead) {
  SlowNumbers reader(false);
  ReadAhead ahead(*device_, kSecondHalf, reader);
  EXPECT_THAT(numbers_of(ahead.training(0, 4)), ElementsAre(2, 3));
  EXPECT_THAT(numbers_of(ahead.training(4, 8)), ElementsAre(6, 7));
  EXPECT_THAT(reader.read_by(), testing::Each(std::this_thread::get_id()));
  EXPECT_FALSE(reader.has_begun(8));
}

TEST_F(ReadingAhead, ReadsNothingForARankThatTakesNothing) {
  ReadAhead ahead(*device_, {{1, 4, 0, 0, 4}, {1, 4, 0, 0, 4}}, reader_);
  EXPECT_TRUE(ahead.training(0, 4)[0].empty());
  EXPECT_TRUE(ahead.read(reader_, Split::held_out, 0)[0].empty());
  EXPECT_TRUE(ahead.training(4, 8)[1].empty());
  EXPECT_THAT(reader_.read_by(), testing::IsEmpty());
}

TEST_F(ReadingAhead, TakesTwoBuffersAndWhatTheReaderHolds) {
  const StepSamples samples{{4, 96, 0, 48, 1000}, {4, 96, 0, 96, 4}, {4, 96, 0, 0, 4}};
  const std::int64_t of_step = 4 * 48 * 1000 + 4 * 96 * 4;
  EXPECT_EQ(of_step % 256, 0);
  EXPECT_EQ(ReadAhead::bytes(samples, reader_), 2 * of_step + 7);
  EXPECT_EQ(ReadAhead::bytes(samples, SlowNumbers(false)), of_step + 7);
}

}  // namespace
}  // namespace alpa
