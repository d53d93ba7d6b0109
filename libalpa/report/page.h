#pragma once
#include <string>

#include "libalpa/base/json.h"

namespace alpa {

/// `skeleton` with the data as one block of JSON where it says {{data}}. Throws Error(input) where it does
/// not.
std::string page_with(const std::string& skeleton, const JsonObject& data);

}  // namespace alpa
