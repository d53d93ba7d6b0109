#pragma once
#include <string_view>

namespace alpa {

/// What a rank computes on, and so which kernels it runs. Clusters, profiles and plans name `cpu` or `cuda`.
/// An `emulated` device runs none: computation takes the time that a cost model gives it, all else is real.
enum class DeviceKind { cpu, checked_cpu, cuda, emulated };

constexpr std::string_view kind_name(DeviceKind kind) { return kind == DeviceKind::cuda ? "cuda" : "cpu"; }

}  // namespace alpa
