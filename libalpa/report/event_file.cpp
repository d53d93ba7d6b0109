#include "libalpa/report/event_file.h"

#include <array>
#include <bit>
#include <cmath>

namespace alpa {
namespace {

// Protocol buffers, as far as an Event of scalars takes them.

void add_bytes(std::string& to, std::uint64_t bits, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(bits >> (8 * i) & 0xFF);
}

void add_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7F) | 0x80);
  to += static_cast<char>(value);
}

enum class WireType { varint = 0, eight_bytes = 1, text = 2, four_bytes = 5 };

void add_key(std::string& to, int field, WireType type) {
  add_varint(to, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type));
}

void add_text(std::string& to, int field, std::string_view text) {
  add_key(to, field, WireType::text);
  add_varint(to, text.size());
  to += text;
}

std::string event(double wall_s, std::int64_t step) {
  std::string of;
  add_key(of, 1, WireType::eight_bytes);
  add_bytes(of, std::bit_cast<std::uint64_t>(wall_s), 8);
  add_key(of, 2, WireType::varint);
  add_varint(of, static_cast<std::uint64_t>(step));
  return of;
}

/// Adds Summary.Value{tag, simple_value}, where the value is known.
void add_scalar(std::string& summary, std::string_view tag, double value) {
  if (std::isnan(value)) return;
  std::string scalar;
  add_text(scalar, 1, tag);
  add_key(scalar, 2, WireType::four_bytes);
  add_bytes(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
  add_text(summary, 1, scalar);
}

std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

void add_record(std::string& file, const std::string& data) {
  std::string length;
  add_bytes(length, data.size(), 8);
  file += length;
  add_bytes(file, masked_crc(length), 4);
  file += data;
  add_bytes(file, masked_crc(data), 4);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> of{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
      of[i] = crc;
    }
    return of;
  }();
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::string event_file(const RunHistory& run, double begin_s) {
  std::string file, first = event(begin_s, 0);
  add_text(first, 3, "brain.Event:2");
  add_record(file, first);
  double wall_s = begin_s;
  for (std::size_t i = 0; i < run.step.size(); ++i) {
    if (!std::isnan(run.step_s[i])) wall_s += run.step_s[i];
    std::string summary;
    add_scalar(summary, "loss", run.loss[i]);
    add_scalar(summary, "learning_rate", run.learning_rate[i]);
    add_scalar(summary, "gradient_norm", run.gradient_norm[i]);
    add_scalar(summary, "samples_per_s", run.samples[i] / run.step_s[i]);
    if (run.tokens[i] > 0) add_scalar(summary, "tokens_per_s", run.tokens[i] / run.step_s[i]);
    add_scalar(summary, "step_s", run.step_s[i]);
    add_scalar(summary, "evaluation_loss", run.evaluation_loss[i]);
    std::string of_step = event(wall_s, static_cast<std::int64_t>(run.step[i]));
    add_text(of_step, 5, summary);
    add_record(file, of_step);
  }
  return file;
}

}  // namespace alpa
