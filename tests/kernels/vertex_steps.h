#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/batching_policy.h"
#include "libalpa/dataset/graph_source.h"
#include "libalpa/model/model.h"
#include "tests/support/interpreter.h"

// Training steps of models over graphs in one process, node after node, timed.
namespace alpa {

double seconds_now();

/// One batch of graphs.
class GraphBatch {
 public:
  GraphBatch(const std::string& data, const GraphLimits& limits, std::int64_t samples);

  /// The first vertex of the first sample, without children.
  static GraphBatch one_vertex(const GraphLimits& limits);
  /// Chains of so many vertices each.
  static GraphBatch chains(const GraphLimits& limits, std::int64_t samples, std::int64_t length);

  const GraphLimits& limits() const { return limits_; }
  const std::vector<VertexGraph>& graphs() const { return graphs_; }
  std::int64_t samples() const { return std::ssize(graphs_); }
  std::int64_t vertices() const;

  struct Packed {
    std::vector<std::int32_t> tokens, labels, structure;
    int rounds = 0;
  };
  Packed packed(BatchingPolicy, std::int64_t rows) const;

 private:
  explicit GraphBatch(const GraphLimits& limits) : limits_(limits) {}
  GraphLimits limits_;
  std::vector<VertexGraph> graphs_;
};

/// A training step of a model on one micro-batch, in memory of its own.
class TimedStep {
 public:
  TimedStep(const ModelDefinition&, int threads);

  void set_input(const std::string& name, std::span<const std::int32_t> values);

  /// Fills what tables of embeddings give for the inputs, which steps are timed without.
  void look_up();

  /// Forward and backward, without tables of embeddings: what a step does for the vertices.
  double seconds();

  /// Of the nodes of one operator.
  double seconds_of(std::string_view op);

  const Graph& graph() const { return graph_; }

 private:
  std::unique_ptr<Device> device_;
  Graph graph_;
  Interpreter interpreter_;
};

/// One of configs/models on that batch, all of its samples in one group with exactly the room that they take.
class GraphStep : public TimedStep {
 public:
  GraphStep(const std::string& model, std::int64_t hidden, const GraphBatch&, int threads,
            const RoundsForm& = {});

  void take(const GraphBatch::Packed&);
  std::int64_t room() const;

  /// The products of all rounds and those for all rows, on memory that lies as theirs does.
  double seconds_of_products();

 private:
  std::vector<std::int64_t> round_ends() const;

  std::int64_t rows_;
  GraphBatch::Packed packed_;
};

/// An LSTM over the same chains as padded sequences, otherwise as configs/models/var-lstm.toml.
class PaddedStep : public TimedStep {
 public:
  PaddedStep(std::int64_t hidden, const GraphBatch&, int threads);
};

}  // namespace alpa
