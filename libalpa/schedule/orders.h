#pragma once
#include <vector>

#include "libalpa/schedule/stage_run.h"

namespace alpa {

// One for each line of the table.
std::vector<StageRun> gpipe_order(StageIndex stage, int stages, int micro_batches);
std::vector<StageRun> one_f_one_b_order(StageIndex stage, int stages, int micro_batches);
std::vector<StageRun> eager_order(StageIndex stage, int stages, int micro_batches);
std::vector<StageRun> split_order(StageIndex stage, int stages, int micro_batches);
std::vector<StageRun> zero_bubble_order(StageIndex stage, int stages, int micro_batches);

using MeshOrders = std::vector<std::vector<StageRun>>;  ///< [mesh]
MeshOrders interleaved_orders(int meshes, int stages_per_mesh, int micro_batches);
MeshOrders zero_bubble_v_orders(int meshes, int stages_per_mesh, int micro_batches);
MeshOrders v_half_orders(int meshes, int stages_per_mesh, int micro_batches);
MeshOrders v_min_orders(int meshes, int stages_per_mesh, int micro_batches);

/// `lead` forwards, then backward and forward in turn.
std::vector<StageRun> alternating(int lead, int micro_batches);

/// The same with the backward split: gradients of weights come `delay` micro-batches after those that the
/// stage before waits for, the last ones at the end. Without delay the backward is whole.
std::vector<StageRun> alternating_split(int lead, int delay, int micro_batches);

/// Takes the runs of this and later micro-batches out. (What is left is as sound: micro-batches do not need
/// each other.)
void leave_out_from(int micro_batch, MeshOrders&);

/// Backwards of the first stage, for which no other waits, are whole if gradients of weights always follow
/// those of inputs at once.
void join_first_backwards(std::vector<StageRun>& order_of_first_mesh);

/// Stages in a V, of which a micro-batch's forwards begin `down` units of time apart on the way to the last
/// mesh, and one apart on the way back, and its backwards likewise; each micro-batch six units after the one
/// before, as a mesh has six runs of each. Gradients of weights are done where a mesh would wait, or where it
/// would hold more than so many micro-batches of its stages.
MeshOrders repeating_v(int meshes, int down, int most_held, int micro_batches);

}  // namespace alpa
