#pragma once
#include <cstdint>
#include <optional>

#include "libalpa/graph/graph.h"

namespace alpa {

/// The forward of a model for text that comes a few tokens of each sample at a time: its graph, and what of
/// the training graph stands where in it.
///
/// Attention keeps the keys and values of the tokens before in states, one of [samples, sequence, groups,
/// head] each, so that each token is worked out once.
struct DecodingGraph {
  Graph graph;        ///< forward nodes alone; its loss is the sum of all scores, which shows what is
                      ///< not finite
  ValueIndex tokens;  ///< input, i32[samples, tokens]
  ValueIndex places;  ///< input likewise: their positions in the sequence; -1: there is no token
  StateIndex scores;  ///< of each word to come next, [samples, tokens, padded vocabulary]
  std::int64_t vocabulary = 0;  ///< without padding
  std::int64_t sequence = 0;    ///< places that there are
  /// Of a model that keeps documents apart: what follows this token sees nothing before, and has the places
  /// from 0 on.
  std::optional<std::int32_t> document_end = {};

  /// [value of the training graph] The one that takes its place, which may stand for several (dropout passes
  /// on what it is given); -1: there is none.
  Indexed<ValueIndex, ValueIndex> decoded_value;
  /// [its value] The first of these; -1: there is none.
  Indexed<ValueIndex, ValueIndex> trained_value;
  /// [its node] Whose place it takes; -1: it is an addition.
  Indexed<NodeIndex, NodeIndex> trained_node;
};

/// `training` may be a training graph or the forward of one. Throws Error(input) naming what stands in the
/// way: a model that is not trained on the next token, attention that is not causal, an operator that
/// mixes the tokens of a sequence in another way.
DecodingGraph decoding_graph(const Graph& training, OpCatalog, std::int64_t samples, std::int64_t tokens = 1);

}  // namespace alpa
