#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/batching_policy.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/graph/graph.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/graph/vertex_body.h"

namespace alpa {

/// Where something of a model was written.
struct SourceLocation {
  int source = 0;  ///< index in ModelDefinition::sources
  TomlLocation at;
  auto operator<=>(const SourceLocation&) const = default;
};

/// A named number: an integer, a real, or an expression over names (see expression.h).
struct NamedExpression {
  std::string name, text;
  SourceLocation place;
};

/// One weight of a block.
struct WeightDefinition {
  std::string name;
  std::vector<std::string> shape;  ///< expressions
  Initializer::Kind kind = Initializer::Kind::zeros;
  std::string scale = "0";    ///< expression: Initializer::scale
  std::string when = "1";     ///< expression: 0 leaves the weight out
  std::string decay = "1";    ///< expression: State::decays
  std::string trained = "1";  ///< expression: 0 for a state that no gradient changes, in f32
  SourceLocation place;
};

/// What a sample of the data has under this name.
struct InputDefinition {
  std::string name;
  std::vector<std::string> shape;  ///< expressions; of one sample
  std::string below;               ///< expression: integers less than this; "": numbers
  SourceLocation place;
};

/// What the samples are where they are graphs that come with the data: values `tokens` and `labels`, one for
/// each vertex, and how the vertices hang together. All are expressions.
struct GraphsDefinition {
  std::string vocabulary, classes;  ///< tokens and labels are less than these; -1: none
  std::string children;             ///< that a vertex has at most
  std::string vertices;             ///< that there is room for, for each sample of a group on average; "": as
                                    ///< the data takes, without which there is no training step
  /// Rows of each round of a group in typical data, which plans and profiles go by; empty: nothing is known.
  std::vector<std::int64_t> rounds;
  GraphBatching batching;
  RoundsForm form = {};  ///< of all vertex functions
  SourceLocation place;
};

/// A setting of an operator or a parameter of a block: a text (an einsum's equation) or an expression.
struct Argument {
  std::string name, text;
  bool is_text = false;
  SourceLocation place;
};

/// `weight` of the layer (a path below it) is the earlier weight of this global name.
struct Tie {
  std::string weight, target;
  SourceLocation place;
};

/// One application of an operator, use of a block, value that counts towards a metric; or in a vertex
/// function what the children have published of a state (`gather`), or what this vertex does (`scatter`).
struct Step {
  std::string op, block, metric, gather, scatter;  ///< all but one are empty
  bool per_target = true;                          ///< metrics only: Metric::per_target
  std::string sum;                                 ///< gathers only, expression: the children's are added up
  std::string name;                                ///< of a block use: what its weights' names begin with
  std::vector<std::string> of, as;
  std::vector<Argument> arguments;
  std::vector<Tie> ties;  ///< layers only
  std::string repeat;     ///< expression; empty: once, and no index in the name
  std::string index;      ///< number that counts the repetitions from 0, for `arguments`; empty: none does
  std::string when = "1";
  SourceLocation place;
};

/// A piece of a model with parameters: what users write and share/blocks/ holds.
struct Block {
  std::string name;
  std::vector<std::string> parameters;    ///< must be known where the block is used
  std::vector<NamedExpression> defaults;  ///< further parameters, in the order in which they are worked out
  std::vector<std::string> inputs, outputs;
  std::vector<WeightDefinition> weights;
  std::vector<Step> steps;
  bool is_vertex = false;               ///< a vertex function: run vertex by vertex, children first
  std::vector<NamedExpression> states;  ///< of one: what a vertex publishes, and how many numbers each has
  SourceLocation place;
};

/// A model file, read and checked: everything a graph is made from, and nothing of the file system.
struct ModelDefinition {
  std::string name;
  TrainingOptions training;
  std::vector<NamedExpression> dimensions;   ///< positive integers
  std::vector<NamedExpression> constants;    ///< any numbers
  std::vector<NamedExpression> paper_flops;  ///< none or one
  std::vector<InputDefinition> inputs;       ///< empty: tokens and targets, or
  std::vector<GraphsDefinition> graphs;      ///< none or one
  std::vector<Step> layers;                  ///< block uses, in order; the pipeline may cut between them
  std::map<std::string, Block> blocks;       ///< those that are used, by name

  /// One self-contained TOML text with all blocks and defaults in it; it reads back to an equal definition.
  std::string expanded_toml;
  std::vector<std::string> sources;  ///< names of the files that Places refer to
};

}  // namespace alpa
