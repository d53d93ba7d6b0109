#pragma once
#include <cstdint>
#include <string>

namespace alpa {

/// The host's processor model, e.g. "AMD EPYC 7B13"; "unknown processor" where the system does not tell.
std::string processor_name();

/// Bytes of host memory that can still be allocated without swapping (MemAvailable of /proc/meminfo).
/// Ranks of one node share them. Throws Error(run_time) where the system does not tell.
std::int64_t available_host_bytes();

}  // namespace alpa
