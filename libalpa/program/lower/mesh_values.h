#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>

#include "libalpa/plan/placement.h"
#include "libalpa/program/program.h"

namespace alpa {

/// Where the values of one mesh are while its instructions are made: their buffers, and the layouts that
/// each has been brought into. Within a segment each layout of a value is made once.
class MeshValues {
 public:
  /// Keeps references.
  MeshValues(const Placement&, MeshIndex mesh, const std::vector<StageTransfer>&);

  /// Instructions from now on belong to this segment; what only lasted the one before is gone.
  void begin_segment(StageIndex stage, SegmentKind);
  SegmentKind segment() const { return program_.segments.back().kind; }
  StageIndex stage() const { return program_.segments.back().stage; }  ///< -1: the update
  void emit(InstructionBody);
  void emit_when(When when) { when_ = when; }  ///< what is emitted from now on acts
  /// Begins and ends what the segment does for the step before, in place of its update: values are as they
  /// were then, in layouts of their own.
  void turn_to_step_before();
  void turn_to_this_step();

  const Conversions& conversions() const { return conversions_; }
  MeshProgram& program() { return program_; }
  MeshProgram take() { return std::move(program_); }
  const Buffer& buffer(BufferIndex index) const { return program_.buffers[index]; }

  /// The value lives from one segment to a later one: its buffer has a slot per micro-batch in flight.
  void keep(ValueIndex value) { kept_values_.insert(value); }
  /// Meanwhile in the host's memory.
  void keep_on_host(ValueIndex value) { kept_on_host_.insert(value); }
  bool is_kept(ValueIndex value) const { return kept_values_.contains(value); }
  const std::set<ValueIndex>& kept() const { return kept_values_; }
  /// The value lives from the first part of a split backward to the second.
  void keep_for_weights(ValueIndex value) { kept_for_weights_.insert(value); }
  bool is_kept_for_weights(ValueIndex value) const { return kept_for_weights_.contains(value); }

  /// As the plan lays it out on this mesh; for values of other meshes as they arrive.
  ShardingSpec resting_layout(ValueIndex value) const { return placement_.layout_at_rest(value, mesh_); }
  /// From which the users of this segment start; in the update all start from where it rests.
  ShardingSpec segment_layout(ValueIndex value) const;

  BufferIndex new_buffer(std::string name, ValueIndex value, ShardingSpec layout, TensorType tile, Residence);
  /// A part of a buffer, from that many bytes on.
  BufferIndex new_view(std::string name, BufferIndex of, std::int64_t offset, TensorType tile);
  /// For a tile of the kind of `own` that comes from the device so many places before along a mesh axis.
  BufferIndex remote_block_buffer(BufferIndex own, int hops, int axis);

  BufferIndex scratch(const std::string& name, std::int64_t bytes);  ///< for this segment; -1 for no bytes
  /// For so many messages on their way at once.
  BufferIndex message_memory(const std::string& name, std::int64_t bytes, std::int64_t messages);
  BufferIndex state_buffer(StateIndex state);
  /// Rows of a tile that one device along an axis owns.
  struct Part {
    std::int64_t first_row = 0, rows = 0;
    Owner owner;
  };
  void state_in_parts(StateIndex state, const std::vector<Part>&);
  std::vector<BufferIndex> buffers_of_rows(ValueIndex, const ShardingSpec&, Residence,
                                           const std::vector<Part>&);
  std::vector<BufferIndex> views_of_rows(BufferIndex whole, const std::vector<Part>&);

  /// The buffer in which a value rests here; made if it is not there yet.
  BufferIndex resting_buffer(ValueIndex value, DType);

  /// A node of this segment has made the value.
  void provide(ValueIndex value, const ShardingSpec& layout, BufferIndex buffer);
  /// What it has been brought into in this segment is of it no more: it changes.
  void forget(ValueIndex value);
  /// It is brought into other layouts again where it is needed again; it rests as it did, unless it was
  /// summed there.
  void forget_conversions(ValueIndex value);
  /// In the layout of this segment, for the second part of a split backward to start from.
  void leave_for_weights(ValueIndex value);
  /// From how it was made, or from the layout of this segment, to where it rests.
  void bring_to_rest(ValueIndex value);
  /// The value is where it rests.
  void provide_resting(ValueIndex value, BufferIndex buffer);

  /// The value in its resting layout, in this segment; inputs are loaded.
  BufferIndex fetch_resting(ValueIndex value);

  /// The value in the layout of this segment, which it is brought into once.
  BufferIndex fetch_for_segment(ValueIndex value);

  /// These sums of gradients, in the layout of the update, added up by the same collectives: their buffers
  /// become views of one.
  void sum_together(const std::vector<ValueIndex>& sums);

  /// Such a sum by itself, in so many equal parts.
  void sum_in_parts(ValueIndex sum, int parts);

  /// A sum of gradients in the layout of the update, made there.
  void bring_to(ValueIndex sum, BufferIndex destination);

  /// Whether conversions from now on may go on while the backward does, or the next step has begun: nothing
  /// that they take for that is of the segment alone.
  void set_early(bool is_early) { is_early_ = is_early; }

  /// The value in the layout in which it leaves the mesh.
  BufferIndex fetch_leaving(ValueIndex value, const ShardingSpec& layout);

  /// The value in any layout, converted for this user where that is not the segment's.
  BufferIndex obtain(ValueIndex value, const ShardingSpec& layout);

  /// Converts step by step; the last step writes `destination` where there is one. `over_source`: as of
  /// ConversionEnd.
  BufferIndex converted(ValueIndex value, BufferIndex from, const ShardingSpec& from_layout,
                        const ShardingSpec& to, BufferIndex destination = {}, bool over_source = false);

 private:
  const MeshShape& shape() const { return program_.mesh.shape; }
  int lane_of(const InstructionBody&);
  BufferIndex brought(ValueIndex value, const ShardingSpec& layout);
  /// The ids of rows that have this layout, brought there.
  BufferIndex ids_of_rows(ValueIndex rows, ShardingSpec layout);
  void emit_conversion(ConversionStep, BufferIndex from, BufferIndex to, BufferIndex row_ids = {});
  BufferIndex on_device(BufferIndex at_rest);
  bool in_update() const { return segment() == SegmentKind::update || when_ == When::of_step_before; }
  bool sums_in_place(ValueIndex value) const;  ///< where that is what brings it into the update's layout
  const Conversion* steps_in_place(ValueIndex value);  ///< by which it does so; null: not in place
  void outlive_segment(BufferIndex buffer);

  const Placement& placement_;
  const GraphUses& uses_;
  const Graph& graph_;
  MeshIndex mesh_;
  const std::vector<StageTransfer>& transfers_;
  Conversions conversions_;
  MeshProgram program_;
  When when_ = When::every_micro_batch;
  bool is_early_ = false;                          ///< conversions that are emitted
  std::map<std::string, BufferIndex> scratch_of_;  ///< of that by name, for one after another
  std::set<ValueIndex> kept_values_, kept_on_host_, kept_for_weights_;
  std::map<ValueIndex, BufferIndex> starts_of_weights_;  ///< where they do not rest
  std::map<ValueIndex, BufferIndex> kept_;               ///< those that outlive segments
  struct Made {
    ShardingSpec layout;
    BufferIndex buffer;
  };
  /// What is known of values in the current segment.
  struct Known {
    std::map<ValueIndex, Made> made;                                       ///< as a node has made it
    std::map<std::pair<ValueIndex, ShardingSpec>, BufferIndex> available;  ///< at rest, and for the segment
    /// Of rows, who gathers these and who adds them up take the same.
    std::map<std::pair<ValueIndex, ShardingSpec>, BufferIndex> gathered_ids;
    std::map<BufferIndex, BufferIndex> staged;  ///< of what rests on the host, where it is fetched to
  };
  std::set<ValueIndex> row_ids_;  ///< Value::row_ids of some rows
  Known known_, known_elsewhen_;  ///< of the step that instructions are made for, and of the other one
};

}  // namespace alpa
