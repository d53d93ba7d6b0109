#pragma once
#include <map>
#include <string>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/model/frame.h"

namespace alpa {

/// The weights of a model as its layers unfold: each becomes a state of the graph, or is tied to an earlier
/// one. Keeps references.
class Weights {
 public:
  Weights(GraphBuilder& builder, DType type, ModelFaults& faults)
      : builder_(builder), type_(type), faults_(faults) {}

  void begin_layer(const Step& layer, const std::string& path);
  void finish_layer();  ///< notes ties that the layer had no weight for

  /// Puts the value of a block's weight into the frame under its name.
  void add(const WeightDefinition&, Frame&);

 private:
  ValueIndex tied(const Tie&, const std::string& name, const TensorType&);

  GraphBuilder& builder_;
  DType type_;
  ModelFaults& faults_;
  std::map<std::string, ValueIndex> all_;   ///< by global name
  std::map<std::string, const Tie*> ties_;  ///< of the current layer, by the global name that is not made
  std::string layer_;                       ///< the path of the current layer
  std::vector<std::string> of_layer_;       ///< names below that path, for suggestions
};

}  // namespace alpa
