#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/graph/op.h"
#include "libalpa/graph/wire_format.h"

namespace alpa {

enum class Phase {
  forward,   ///< once per micro-batch
  backward,  ///< once per micro-batch
  update,    ///< once per step
};

/// One application of an operator.
struct Node {
  const OpDef* op = nullptr;
  Attributes attributes;
  std::vector<ValueIndex> operands, results;
  Phase phase = Phase::forward;
  int layer = 0;  ///< index in Graph::layers; backward and update nodes have the layer of what they serve
  std::string name;
};

enum class ValueKind { computed, input, state };

struct Value {
  TensorType type;  ///< whole tensor of one micro-batch
  ValueKind kind = ValueKind::computed;
  NodeIndex producer;  ///< -1 for inputs and states
  std::string name;
  bool is_gradient_of_computed = false;  ///< or a part of one, with respect to what a node makes
  WireFormat wire = {};                  ///< what devices send of it to each other
  /// The ids of its rows, of all its dimensions but the last (WireFormat::vocabulary).
  ValueIndex row_ids = {};
};

/// What the trainer feeds. Tensors of samples have the sample as dimension 0.
enum class InputKind {
  tokens,          ///< i32[samples, sequence]
  targets,         ///< i32[samples, sequence]; -1: no loss at this position
  vertices,        ///< i32 of graphs: tokens and labels[samples, vertices], structure (ops/vertex.h)
  data,            ///< a row per sample of the data's array of that name
  loss_scale,      ///< f32 scalar: 1 / number of targets of the step, times the loss scale (f16)
  update_scalars,  ///< f32[6]: UpdateScalars
};

struct Input {
  InputKind kind;
  ValueIndex value;
  std::int64_t below = 0;  ///< data: integers are less than this; 0 for numbers of another type

  /// Differs from sample to sample; the others are scalars of the step.
  bool is_of_samples() const { return kind <= InputKind::data; }
  bool is_sequence() const { return kind <= InputKind::targets; }
};

/// How a state starts: drawn by Philox at (name, global element), or constant.
struct Initializer {
  enum class Kind { zeros, ones, normal, uniform } kind = Kind::zeros;
  double scale = 0;  ///< standard deviation, or half width of the uniform interval
  bool operator==(const Initializer&) const = default;
};

/// What lives from step to step: parameters, optimizer moments, master weights.
struct State {
  std::string name;       ///< global name, e.g. "block.0.attention.query"
  ValueIndex value = {};  ///< at the start of the step
  ValueIndex next = {};   ///< after the update; -1: never updated
  Initializer initializer = {};
  bool is_parameter = false;
  std::string follows = {};  ///< master weights: the parameter whose initial value they take; else ""
  bool decays = true;        ///< parameters of two or more dimensions: weight decay applies
  bool holds_terms = false;  ///< only sums of it matter: devices may hold terms of it between steps
  Shape unpadded = {};  ///< extents without the padding at the end of dimensions, which starts as 0, stays
                        ///< so, and is in no file; empty: there is none
};

/// What is reported of a step beside the loss, e.g. how many predictions were right: the sum of f32 scalars
/// over the micro-batches of the step, wherever in the graph they are made.
struct Metric {
  std::string name;
  bool per_target = true;  ///< reported as a mean over the step's targets, as the loss is; else as the sum
  std::vector<ValueIndex> values;
};

/// A training step or a forward pass as pure data: what is computed, not where.
///
/// Per-micro-batch values have whole-micro-batch shapes; `samples` says how many samples that is.
struct Graph {
  Indexed<ValueIndex, Value> values;
  Indexed<NodeIndex, Node> nodes;  ///< in an order in which they can run
  std::vector<Input> inputs;
  Indexed<StateIndex, State> states;
  std::vector<std::string> layers;  ///< names of the units that a pipeline may cut between
  ValueIndex loss;                  ///< f32 scalar: sum of losses over the micro-batch (not divided)
  std::vector<Metric> metrics;      ///< names differ
  ValueIndex gradient_square_sum;   ///< f32 scalar: squared norm of the scaled gradient, in a training graph
  std::int64_t samples = 0;
};

const Value& value_of(const Graph&, ValueIndex value);
const Node& node_of(const Graph&, NodeIndex node);

/// Of a state without its padding: what files have.
TensorType unpadded_type(const Graph&, const State&);

/// Whether a node is of a backward and leads to no gradient of a computed value: to gradients of weights
/// alone, for which no other stage waits. Of a node with several results none may. A sum over micro-batches
/// goes with the node that it sums.
Indexed<NodeIndex, bool> leads_to_weights_alone(const Graph&);

/// Operand types of a node, whole tensors.
std::vector<TensorType> operand_types(const Graph&, const Node&);

/// One line per node; equal texts mean equal graphs. The fingerprint is its digest.
std::string graph_text(const Graph&);
std::string graph_fingerprint(const Graph&);

std::int64_t parameter_count(const Graph&);  ///< without padding

/// The norm to which updates clip gradients; 0: they do not.
double gradient_clip(const Graph&);

/// FLOPs of the model in all nodes of these phases for one micro-batch: what is computed again is not
/// counted, so the gradient of an attention has those of two forwards.
double graph_flops(const Graph&, Phase);

/// Of a step of so many micro-batches.
double step_flops(const Graph&, int micro_batches);

/// Builds a graph node by node. Throws Error(input) where operands do not fit an operator, or a tensor has
/// more than kMostElements.
class GraphBuilder {
 public:
  explicit GraphBuilder(OpCatalog catalog) : catalog_(catalog) {}
  GraphBuilder(OpCatalog catalog, Graph graph) : catalog_(catalog), graph_(std::move(graph)) {}

  /// Nodes added from now on belong to a new layer of that name.
  void begin_layer(const std::string& name);

  ValueIndex input(InputKind, TensorType, const std::string& name, std::int64_t below = 0);
  ValueIndex state(const std::string& name, TensorType, Initializer, bool is_parameter,
                   const std::string& follows = "");

  /// Appends a node and returns its results (add: its first result).
  std::vector<ValueIndex> add_all(std::string_view op, std::vector<ValueIndex> operands, Attributes = {},
                                  const std::string& name = "");
  ValueIndex add(std::string_view op, std::vector<ValueIndex> operands, Attributes attributes = {},
                 const std::string& name = "");

  /// Phase and layer of nodes added from now on.
  void set_place(Phase phase, int layer);

  const TensorType& type(ValueIndex value) const;
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Graph finish() { return std::move(graph_); }

 private:
  OpCatalog catalog_;
  Graph graph_;
  Phase phase_ = Phase::forward;
  int layer_ = 0;
};

}  // namespace alpa
