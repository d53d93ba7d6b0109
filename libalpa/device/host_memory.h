#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "libalpa/device/device.h"

namespace alpa {

/// Host memory aligned to kAlignment (to 2 MiB, with a hint to use huge pages, from 2 MiB on). Its contents
/// are undefined; pages are taken when first touched. Throws Error(run_time) naming `owner`, what was asked
/// and what is free.
std::unique_ptr<DeviceMemory> allocate_host_memory(std::int64_t bytes, const std::string& owner);

/// Throws as allocate_host_memory does where `bytes` are more than the machine has free: Linux promises
/// memory that it does not have and kills the process later. Less than 2 MiB are taken to be there.
void require_host_memory(const std::string& owner, std::int64_t bytes);

/// Throws Error(run_time) saying that `owner` cannot give `bytes` bytes while `free_bytes` are free.
[[noreturn]] void throw_out_of_memory(const std::string& owner, std::int64_t bytes, std::int64_t free_bytes);

}  // namespace alpa
