#pragma once
#include <string>

#include "libalpa/base/device_kind.h"

namespace alpa {

/// A device's description without the number that distinguishes a GPU from its likes: "NVIDIA H200
/// (GPU-1234...)" is of the kind "NVIDIA H200", "CPU, 2 threads (AMD EPYC)" is one already.
std::string kind_of_device(const std::string& description);

bool is_cpu(const std::string& description);

/// What a device is by its words alone: cuda but for a CPU, and where nothing is said.
DeviceKind kind_of_words(const std::string& device);

/// The first word that has a digit: "V100", "4090"; all of it where none has.
std::string device_model(const std::string& description);

/// How the device that a profile was measured on compares with another one.
enum class DeviceMatch { same, other_threads, other };

/// Compares kinds of devices, both as devices describe themselves. A CPU whose memory is checked is that CPU.
DeviceMatch match_devices(const std::string& measured, const std::string& other);

/// Whether the words of a cluster file, which people write, can mean that kind of device: both name a CPU, or
/// the same model ("V100" of "NVIDIA V100 SXM2 16 GB" and of "Tesla V100-SXM2-16GB"). A CPU's model counts
/// where both name it.
bool names_same_device(const std::string& words, const std::string& kind);

}  // namespace alpa
