#pragma once
#include <string>
#include <vector>

#include "libalpa/plan/placement.h"

namespace alpa {

/// Parameters of a stage that are alike but for the layer they are in.
struct ParameterGroup {
  std::string name;    ///< "block.*.mlp.up"
  std::string type;    ///< "f16[8192x32768]"
  std::string spec;    ///< spec_text(): "RS0"
  std::string layout;  ///< "split 4 ways along dimension 1 (axis 0)", "whole on every device"
  int count = 0;
};

/// Other tensors that lie in one way.
struct LayoutGroup {
  std::string layout;
  int count = 0;
  std::vector<std::string> names;  ///< as above, each once
};

/// How a stage's tensors lie on its mesh.
struct StageTensors {
  std::vector<ParameterGroup> parameters;    ///< by name
  std::vector<LayoutGroup> optimizer;        ///< states that lie otherwise than their parameter
  std::vector<LayoutGroup> gradients;        ///< sums that do
  std::vector<LayoutGroup> synchronisation;  ///< of all sums: synchronisation_text()
  std::vector<LayoutGroup> activations;      ///< saved for the backward, that are split
};
StageTensors stage_tensors(const Placement&, StageIndex stage);

}  // namespace alpa
