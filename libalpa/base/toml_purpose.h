#pragma once
#include <string>

#include "libalpa/base/toml_node.h"

namespace alpa {

/// "this is a cluster file, expected a model file", of a document whose reader has asked for what it takes;
/// "" where it may be what was expected.
std::string mistaken_purpose(const TomlNode& root);

}  // namespace alpa
