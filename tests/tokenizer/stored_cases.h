#pragma once
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "libalpa/tokenizer/tokenizer.h"

namespace alpa {

/// What tests/reference/tokenizer_cases.py wrote.
inline const std::string stored_folder = ALPA_SOURCE_DIR "/tests/reference/tokenizers/";

inline std::string stored_file(const std::string& name) {
  std::ifstream file(stored_folder + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline const nlohmann::json& stored_cases() {
  static const nlohmann::json cases = nlohmann::json::parse(stored_file("cases.json"));
  return cases;
}

/// Texts of the cases in an order that is drawn, up to 100 kB: the same as the script's.
inline std::string mixed_text() {
  const nlohmann::json& cases = stored_cases()["cases"];
  std::string text;
  for (std::uint32_t state = 1; text.size() < 100000;) {
    state = state * 1664525 + 1013904223;
    text += cases[(state >> 16) % cases.size()]["text"].get<std::string>();
  }
  return text;
}

/// Of all ids up to each thousandth, and of all.
inline std::vector<std::string> id_digests(std::span<const std::int32_t> ids) {
  std::uint64_t digest = 0xcbf29ce484222325;
  std::vector<std::string> digests;
  const auto take = [&] {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
    digests.emplace_back(text);
  };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 1000 == 0 && i > 0) take();
    for (int shift = 0; shift < 32; shift += 8)
      digest = (digest ^ (static_cast<std::uint32_t>(ids[i]) >> shift & 0xff)) * 0x100000001b3;
  }
  take();
  return digests;
}

/// gpt2.json of the stored ones with some of its fields replaced.
inline TokenizerFile changed_gpt2(const nlohmann::json& fields) {
  nlohmann::json tokenizer = nlohmann::json::parse(stored_file("gpt2.json"));
  tokenizer.update(fields);
  return {"changed", tokenizer.dump()};
}

}  // namespace alpa
