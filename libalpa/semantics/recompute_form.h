#pragma once
#include <array>
#include <string_view>

namespace alpa {

/// Of layers that the backward computes again, what is not kept for it.
enum class RecomputeForm {
  full,       ///< all but what enters them
  selective,  ///< what is cheap to make of what is kept anyway: GraphUses::is_repeatable
};
inline constexpr std::array<std::string_view, 2> kRecomputeForms{"full", "selective"};

}  // namespace alpa
