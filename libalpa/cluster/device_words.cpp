#include "libalpa/cluster/device_words.h"

#include <algorithm>
#include <cctype>

namespace alpa {
namespace {

std::string without_checks(const std::string& kind) {
  const std::string checked = "checked ";
  return kind.starts_with(checked) ? kind.substr(checked.size()) : kind;
}

/// What stands in brackets; "" where nothing does. Models of processors have brackets of their own.
std::string processor(const std::string& kind) {
  const std::size_t begin = kind.find(" ("), end = kind.rfind(')');
  return begin < end && end != std::string::npos ? kind.substr(begin + 2, end - begin - 2) : "";
}

}  // namespace

std::string kind_of_device(const std::string& description) {
  return description.substr(0, description.rfind(" (GPU-"));
}

bool is_cpu(const std::string& description) {
  std::string word = without_checks(description).substr(0, 3);  // a cluster file may well say "cpu"
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word == "CPU";
}

DeviceKind kind_of_words(const std::string& device) {
  return device.empty() || is_cpu(device) ? DeviceKind::cpu : DeviceKind::cuda;
}

std::string device_model(const std::string& kind) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0; };
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  for (auto at = kind.begin(); at != kind.end();) {
    const auto begin = std::find_if(at, kind.end(), is_part);
    at = std::find_if_not(begin, kind.end(), is_part);
    if (std::any_of(begin, at, is_digit)) return {begin, at};
  }
  return kind;
}

DeviceMatch match_devices(const std::string& measured, const std::string& other) {
  if (without_checks(measured) == without_checks(other)) return DeviceMatch::same;
  const bool are_alike = is_cpu(measured) && is_cpu(other) && processor(measured) == processor(other);
  return are_alike ? DeviceMatch::other_threads : DeviceMatch::other;
}

bool names_same_device(const std::string& words, const std::string& kind) {
  if (is_cpu(words) != is_cpu(kind)) return false;
  if (!is_cpu(words)) return device_model(words) == device_model(kind);
  const std::string named = processor(words), there = processor(kind);
  return named.empty() || there.empty() || named == there;
}

}  // namespace alpa
