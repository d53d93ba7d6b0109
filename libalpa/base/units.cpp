#include "libalpa/base/units.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace alpa {

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 7> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, units[unit]);
}

std::string bytes_text(std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string seconds_text(double seconds) {
  constexpr double kHour_s = 3600, kYear_s = 365.25 * 24 * kHour_s;
  if (!std::isfinite(seconds)) return "unknown";
  const double magnitude = std::abs(seconds);
  if (magnitude == 0) return "0 s";
  if (magnitude < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (magnitude < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (magnitude < 100) return fmt::format("{:.2f} s", seconds);
  if (magnitude >= kYear_s) return fmt::format("{:.3g} years", seconds / kYear_s);
  if (magnitude >= 100 * kHour_s) return fmt::format("{:.1f} days", seconds / (24 * kHour_s));
  if (seconds < 0) return "-" + seconds_text(-seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string rate_text(double per_s, const char* unit) {
  constexpr std::array<const char*, 7> prefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (std::abs(per_s) >= 1000 && prefix + 1 < prefixes.size()) {
    per_s /= 1000;
    ++prefix;
  }
  if (std::abs(per_s) >= 1e6) return fmt::format("{:.3g} {}{}", per_s, prefixes[prefix], unit);
  return fmt::format("{:.2f} {}{}", per_s, prefixes[prefix], unit);
}

std::string count_text(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with('h') ? "es" : "s");
}

}  // namespace alpa
