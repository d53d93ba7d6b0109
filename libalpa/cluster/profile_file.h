#pragma once
#include <filesystem>

#include "libalpa/cluster/profile.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

/// Reads a profile file. Throws Error(input) where it is none, is damaged, or holds numbers that cannot be.
Profile read_profile(const std::filesystem::path&);

/// Writes a profile file (HDF5, format "alpa-profile"), published atomically. Throws as H5Writer does.
void write_profile(const std::filesystem::path&, const Profile&, const Provenance&);

}  // namespace alpa
