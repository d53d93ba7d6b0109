#pragma once
// Internal to this module.
#include <optional>
#include <string>

#include "libalpa/h5/handle.h"

namespace alpa {

/// The text of an attribute that is one string of variable length, as h5py writes them; nothing where the
/// file is damaged there, or claims more than a MiB. Goes around HDF5's reader of the heap that such strings
/// lie on, since that of 1.10 reads past the heap's ends in a damaged file. Source: HDF5 File Format
/// Specification 3.0, III.E (global heap) and VIII.B (references to it).
std::optional<std::string> variable_length_text(hid_t file, hid_t attribute);

}  // namespace alpa
