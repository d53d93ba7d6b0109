#include "libalpa/report/event_file.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

namespace alpa {
namespace {

/// What is in a file of events, read by the format's description and not by the writer's functions.
struct ReadEvent {
  double wall_s = 0;
  std::uint64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}
  bool ended() const { return left_.empty(); }

  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view bytes(std::size_t count) {
    const std::string_view taken = left_.substr(0, count);
    EXPECT_EQ(taken.size(), count);
    left_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view left_;
};

void read_summary(std::string_view text, ReadEvent& into) {
  Reader values(text);
  while (!values.ended()) {
    EXPECT_EQ(values.varint(), 1u << 3 | 2u);
    Reader value(values.bytes(values.varint()));
    EXPECT_EQ(value.varint(), 1u << 3 | 2u);
    const std::string tag(value.bytes(value.varint()));
    EXPECT_EQ(value.varint(), 2u << 3 | 5u);
    into.scalars[tag] = value.fixed<float>();
  }
}

std::vector<ReadEvent> events_of(const std::string& file) {
  std::vector<ReadEvent> events;
  Reader records(file);
  while (!records.ended()) {
    const auto masked = [](std::string_view data) {
      const std::uint32_t crc = crc32c(data);
      return static_cast<std::uint32_t>(((crc >> 15) | (crc << 17)) + 0xa282ead8ul);
    };
    const std::string_view length = records.bytes(8);
    EXPECT_EQ(records.fixed<std::uint32_t>(), masked(length));
    const std::string_view data = records.bytes(Reader(length).fixed<std::uint64_t>());
    EXPECT_EQ(records.fixed<std::uint32_t>(), masked(data));
    ReadEvent& event = events.emplace_back();
    Reader fields(data);
    while (!fields.ended()) {
      const std::uint64_t key = fields.varint();
      if (key == (1u << 3 | 1u))
        event.wall_s = fields.fixed<double>();
      else if (key == 2u << 3)
        event.step = fields.varint();
      else if (key == (3u << 3 | 2u))
        event.version = fields.bytes(fields.varint());
      else if (key == (5u << 3 | 2u))
        read_summary(fields.bytes(fields.varint()), event);
      else
        ADD_FAILURE() << "key " << key;
    }
  }
  return events;
}

// RFC 3720, appendix B.4, and the usual check of nine digits.
TEST(Crc32c, HasThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

TEST(EventFile, HasTheScalarsOfEachStepThatAreKnown) {
  const double none = std::nan("");
  RunHistory run;
  run.step = {1, 300};
  run.loss = {5.5, 4.25};
  run.gradient_norm = {none, 0.5};
  run.learning_rate = {1e-4, 2e-4};
  run.step_s = {0.5, 0.25};
  run.samples = {8, 8};
  run.tokens = {0, 0};
  run.evaluation_loss = {none, 4.0};
  const std::vector<ReadEvent> events = events_of(event_file(run, 1000));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].wall_s, 1000.5);
  EXPECT_EQ(events[1].scalars,
            (std::map<std::string, float>{
                {"loss", 5.5f}, {"learning_rate", 1e-4f}, {"samples_per_s", 16}, {"step_s", 0.5f}}));
  EXPECT_EQ(events[2].step, 300u);
  EXPECT_EQ(events[2].wall_s, 1000.75);
  EXPECT_EQ(events[2].scalars.at("evaluation_loss"), 4.0f);
  EXPECT_EQ(events[2].scalars.at("gradient_norm"), 0.5f);
}

}  // namespace
}  // namespace alpa
