#include "libalpa/dataset/planted_labels.h"

#include <algorithm>

#include "libalpa/base/philox.h"

namespace alpa {
namespace {

constexpr std::uint64_t word_key = 0x706c616e746564;
constexpr double most_polarity = 4, intensified = 1.75;

/// Where labels 1 to 4 begin: quantiles of the polarities in 400,000 drawn trees.
constexpr double label_begins[] = {-1.593, -0.66, 0.493, 1.355};

}  // namespace

PlantedMeaning meaning_of_word(std::int32_t token) {
  const auto strength = [&] {
    return 0.25 + 0.75 * philox_uniform_at(word_key, 0, static_cast<std::uint64_t>(token));
  };
  switch (token % 16) {
    case 7:
      return {PlantedMeaning::Kind::negator, 0};
    case 11:
      return {PlantedMeaning::Kind::intensifier, 0};
    case 3:
    case 9:
    case 14:
      return {PlantedMeaning::Kind::plain, strength()};
    case 5:
    case 10:
    case 13:
      return {PlantedMeaning::Kind::plain, -strength()};
    default:
      return {};
  }
}

PlantedMeaning meaning_of(const PlantedMeaning& left, const PlantedMeaning& right) {
  double polarity = left.polarity + right.polarity;
  if (left.kind == PlantedMeaning::Kind::negator) polarity = -right.polarity;
  if (left.kind == PlantedMeaning::Kind::intensifier) polarity = intensified * right.polarity;
  return {PlantedMeaning::Kind::plain, std::clamp(polarity, -most_polarity, most_polarity)};
}

std::int32_t planted_label(const PlantedMeaning& meaning) {
  const auto* const bin = std::ranges::upper_bound(label_begins, meaning.polarity);
  return static_cast<std::int32_t>(bin - std::begin(label_begins));
}

}  // namespace alpa
