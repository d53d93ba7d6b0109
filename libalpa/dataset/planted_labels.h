#pragma once
#include <cstdint>

namespace alpa {

// The task that is planted in drawn sentences: what the labels of their parts follow from, so that there is
// something to learn of words and of how they are put together. It says nothing about sentiment.

inline constexpr std::int32_t kPlantedClasses = 5;

/// What a part of a sentence says.
struct PlantedMeaning {
  enum class Kind { plain, negator, intensifier };
  Kind kind = Kind::plain;
  double polarity = 0;  ///< from very negative to very positive; of plain parts alone
};

/// Of every 16 ids one is a negator, one intensifies, three are positive and three negative, by how much
/// depends on the id; the others are neutral.
PlantedMeaning meaning_of_word(std::int32_t token);

/// Polarities add up, within limits; behind a negator or an intensifier that of what follows is turned round,
/// or is stronger.
PlantedMeaning meaning_of(const PlantedMeaning& left, const PlantedMeaning& right);

/// 0 (very negative) to 4, in bins that have the shares of the Stanford Sentiment Treebank where trees are
/// drawn with its number of words: 2.6, 10.8, 69.0, 13.9 and 3.8 % of the vertices.
std::int32_t planted_label(const PlantedMeaning&);

}  // namespace alpa
