#pragma once
#include <string>

#include "libalpa/model/definition.h"

namespace alpa {

/// The definition as one TOML text that needs no other file. Equal definitions give equal texts.
std::string model_toml(const ModelDefinition&);

}  // namespace alpa
