#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace alpa {

/// The host's processor model, e.g. "AMD EPYC 7B13"; "unknown processor" where the system does not say.
std::string processor_name();

/// Bytes of host memory that can still be allocated without swapping (MemAvailable of /proc/meminfo), and
/// without being killed for it: what the control groups of this process leave, as those of a Slurm job that
/// asked for --mem. Ranks of one node share them. Throws Error(run_time) where the system does not say.
/// `root` is where the system's files are.
std::int64_t available_host_bytes(const std::filesystem::path& root = "/");

/// Bytes of this process that are in memory: all that it has touched, libraries and buffers too. 0 where the
/// system does not say. Takes nothing from the heap.
std::int64_t process_bytes();

}  // namespace alpa
