// "V-Min" (Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS'24): a V with the least memory,
// 2 floor((p + 4) / 3) micro-batches of either stage of a mesh, which are half a mesh's layers, and a bubble
// of 2 p / 3 micro-batches at most. All stages follow each other at once.
#include "libalpa/schedule/orders.h"

namespace alpa {

MeshOrders v_min_orders(int meshes, int, int micro_batches) {
  return repeating_v(meshes, 1, 2 * ((meshes + 4) / 3), micro_batches);
}

}  // namespace alpa
