#pragma once
#include <array>
#include <string_view>

namespace alpa {

/// How layers spare the device what their backward takes of their forward: what of it the backward makes
/// again, or that it waits in the host's memory.
enum class RecomputeForm {
  full,       ///< all is made again but what enters them
  selective,  ///< what is cheap to make of what is kept anyway: GraphUses::is_repeatable
  offload,    ///< nothing is made again; what they made rests on the host: StageSemantics::is_offloaded
};
inline constexpr std::array<std::string_view, 3> kRecomputeForms{"full", "selective", "offload"};

}  // namespace alpa
