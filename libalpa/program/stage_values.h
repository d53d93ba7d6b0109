#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>

#include "libalpa/program/program.h"

namespace alpa {

/// Where the values of one stage are while its instructions are made: their buffers, and the layouts that
/// each has been brought into. Within a segment each layout of a value is made once.
class StageValues {
 public:
  /// Keeps references.
  StageValues(const Graph&, const Plan&, int stage);

  /// Instructions from now on belong to this segment; what only lasted the one before is gone.
  void begin_segment(SegmentKind);
  SegmentKind segment() const { return program_.segments.back().kind; }
  void emit(InstructionBody);

  MeshProgram& program() { return program_; }
  MeshProgram take() { return std::move(program_); }
  const Buffer& buffer(int index) const { return program_.buffers[static_cast<std::size_t>(index)]; }

  /// The value lives from forward to backward: its buffer has a slot per micro-batch in flight.
  void keep_for_backward(int value) { kept_for_backward_.insert(value); }
  bool is_kept_for_backward(int value) const { return kept_for_backward_.contains(value); }
  const std::set<int>& kept_for_backward() const { return kept_for_backward_; }
  /// The value lives from the first part of a split backward to the second.
  void keep_for_weights(int value) { kept_for_weights_.insert(value); }

  /// As the plan lays it out on this stage; for values of other stages as they arrive.
  ShardingSpec resting_layout(int value) const;

  int new_buffer(std::string name, int value, ShardingSpec layout, TensorType tile, Residence);
  /// For a tile of the kind of `own` that comes from the device so many places before along a mesh axis.
  int visiting_buffer(int own, int passed, int axis);

  int scratch(const std::string& name, std::int64_t bytes);  ///< for this segment; -1 for no bytes
  /// For messages on their way to other meshes, so many at once.
  int leaving(std::int64_t bytes, std::int64_t messages);
  int state_buffer(int state);

  /// The buffer in which a value of this stage rests; made if it is not there yet.
  int resting_buffer(int value, DType);

  /// From now on in this segment the buffer holds the value in that layout.
  void provide(int value, const ShardingSpec& layout, int buffer) { available_[{value, layout}] = buffer; }

  /// The value in its resting layout, in this segment; inputs are loaded.
  int fetch_resting(int value);

  /// The value in any layout, converted where it is not there.
  int obtain(int value, const ShardingSpec& layout);

  /// Converts step by step; the last step writes `destination` unless that is -1. Every layout on the way
  /// becomes available.
  int converted(int value, int from, const ShardingSpec& from_layout, const ShardingSpec& to,
                int destination);

 private:
  const MeshShape& mesh() const { return program_.mesh.shape; }
  int lane_of(const InstructionBody&);
  const Crossing& crossing(int transfer) const { return plan_.crossings[static_cast<std::size_t>(transfer)]; }

  const Graph& graph_;
  const Plan& plan_;
  int stage_;
  Conversions conversions_;
  MeshProgram program_;
  std::set<int> kept_for_backward_, kept_for_weights_;
  std::map<int, int> kept_;                                ///< value -> buffer that outlives segments
  std::map<std::pair<int, ShardingSpec>, int> available_;  ///< in the current segment
};

}  // namespace alpa
