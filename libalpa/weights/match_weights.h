#pragma once
#include <map>
#include <string>
#include <vector>

#include "libalpa/weights/rearrangement.h"
#include "libalpa/weights/safetensors_header.h"
#include "libalpa/weights/weight_names.h"

namespace alpa {

/// One of our weights and the tensor of a family that holds it, or a part of it.
struct WeightPlace {
  std::string ours, theirs;  ///< names, theirs the usual one
  Rearrangement where;
  bool adds = false;
};

/// Where a family puts our weights, given by name and shape. Throws Error(input) where it has no name for
/// one.
std::vector<WeightPlace> place_weights(const WeightFamily&, const std::map<std::string, Shape>& ours);

/// The same where these weights are all that the family has. Throws Error(input) that lists what is missing
/// too.
std::vector<WeightPlace> place_all_weights(const WeightFamily&, const std::map<std::string, Shape>& ours);

/// The tensors of a file that make up a model's weights.
struct MatchedWeights {
  const WeightFamily* family = nullptr;
  std::vector<WeightPlace> places;
  std::map<std::string, const StoredTensor*> theirs;  ///< by usual name
  std::vector<std::string> copies;                    ///< usual names of tensors that repeat others
  std::vector<std::string> unused;                    ///< names in the file
};

/// Finds the family that the names of a file are of, and a tensor for each weight of the model. Throws
/// Error(input) that names what is missing, superfluous or of another shape or type, all of it. Points into
/// `theirs`.
MatchedWeights match_weights(const std::map<std::string, Shape>& ours,
                             const std::map<std::string, StoredTensor>& theirs, const std::string& file);

}  // namespace alpa
