#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace alpa {

inline std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Turns one bit of a file round, and back at the end.
class FlippedBit {
 public:
  FlippedBit(const std::filesystem::path& path, std::int64_t byte, int bit)
      : file_(path, std::ios::in | std::ios::out | std::ios::binary), byte_(byte) {
    if (!file_.seekg(byte_)) throw std::runtime_error("cannot seek in " + path.string());
    original_ = static_cast<char>(file_.get());
    put(static_cast<char>(original_ ^ (1 << bit)));
  }
  ~FlippedBit() { put(original_); }
  FlippedBit(const FlippedBit&) = delete;
  FlippedBit& operator=(const FlippedBit&) = delete;

 private:
  void put(char value) {
    file_.seekp(byte_);
    file_.put(value);
    file_.flush();
  }

  std::fstream file_;
  std::int64_t byte_;
  char original_ = 0;
};

}  // namespace alpa
