// "V-Half" (Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS'24): a V with half the memory
// of 1F1B, that is 2 floor((p + 2) / 2) micro-batches of either stage of a mesh, which are half a mesh's
// layers, and a bubble of p / 2 micro-batches at most. On the way to the last mesh stages are two units
// apart.
#include "libalpa/schedule/orders.h"

namespace alpa {

MeshOrders v_half_orders(int meshes, int, int micro_batches) {
  return repeating_v(meshes, 2, 2 * ((meshes + 2) / 2), micro_batches);
}

}  // namespace alpa
