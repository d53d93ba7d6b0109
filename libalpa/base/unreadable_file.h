#pragma once
#include <filesystem>
#include <string>

#include "libalpa/base/error.h"

namespace alpa {

/// Error(input) of a file that cannot be opened for `why`, or is a folder; it names one beside it that may be
/// meant.
Error unreadable_file(const std::filesystem::path&, const std::string& why);

/// A file beside this one, of the same ending where it has one, whose name may be meant; "" where none is.
std::string file_meant(const std::filesystem::path&);

}  // namespace alpa
