#pragma once
#include <string>
#include <vector>

#include "libalpa/device/device.h"
#include "libalpa/model/model.h"

namespace alpa {

/// A model of configs/models with two layers, 24 wide, and a vocabulary of 29; further `dimensions` in TOML.
ModelDefinition small_model(const std::string& base, const std::string& dimensions,
                            const std::string& precision);

/// Losses per token of training on one fixed batch in micro-batches of two samples: what comes next is (3 t +
/// 1) mod 29.
std::vector<double> losses(Device&, const ModelDefinition&, int steps);

struct SmallModel {
  const char *name, *base, *dimensions;
};
inline constexpr SmallModel kSmallModels[] = {{"GPT", "gpt.toml", ""},
                                              {"Llama", "llama.toml", "groups = 2\ninner = 40\n"}};

}  // namespace alpa
