// "ZB-V" (Qi et al., Zero Bubble Pipeline Parallelism, ICLR'24, section 6): mesh r of p has the stages r and
// 2 p - 1 - r. Until the first gradient comes back to it, it is busy with forwards of both and with backwards
// of the latter; then it does one of each in turn, and leaves gradients of weights for the end, where it
// would wait. Where forwards and both parts of the backward take equally long, no mesh ever waits between its
// first run and its last, and none holds more than 2 p micro-batches of its stages, as much as with 1F1B.
#include <algorithm>

#include "libalpa/schedule/orders.h"

namespace alpa {
namespace {

/// The order of a mesh, as it is put together.
class OrderOfTwo {
 public:
  OrderOfTwo(int mesh, int meshes) : stage_{StageIndex(mesh), StageIndex(2 * meshes - 1 - mesh)} {}

  int forwards(int place) const { return done_[place][0]; }
  void forward(int place) { run(place, 0, SegmentKind::forward); }
  void inputs(int place) { run(place, 1, SegmentKind::backward_inputs); }
  void weights(int place) { run(place, 2, SegmentKind::backward_weights); }
  void backward(int place) {
    inputs(place);
    weights(place);
  }
  void rest_of_weights(int place) {
    while (done_[place][2] < done_[place][1]) weights(place);
  }
  std::vector<StageRun> take() { return std::move(order_); }

 private:
  void run(int place, int part, SegmentKind kind) {
    order_.push_back({kind, done_[place][part]++, stage_[place]});
  }

  StageIndex stage_[2];
  int done_[2][3] = {};  ///< [place][forward, inputs, weights] micro-batches
  std::vector<StageRun> order_;
};

std::vector<StageRun> order_of(int mesh, int meshes, int micro_batches) {
  OrderOfTwo order(mesh, meshes);
  for (int i = 0; i < 2 * (meshes - mesh) - 1; ++i) order.forward(0);
  for (int i = 0; i < mesh; ++i) {
    order.forward(1);
    order.forward(0);
  }
  for (int i = 0; i < meshes - mesh; ++i) {
    order.forward(1);
    order.backward(1);
  }
  while (order.forwards(1) < micro_batches) {
    if (order.forwards(0) < micro_batches) order.forward(0);
    order.backward(0);
    order.forward(1);
    order.backward(1);
  }
  for (int i = 0; i < mesh; ++i) {
    order.inputs(0);
    order.inputs(1);
  }
  for (int i = 0; i < meshes - mesh; ++i) {
    order.inputs(0);
    order.weights(0);
  }
  order.rest_of_weights(1);
  order.rest_of_weights(0);
  return order.take();
}

}  // namespace

MeshOrders zero_bubble_v_orders(int meshes, int, int micro_batches) {
  MeshOrders orders;
  // With fewer it would not have enough to begin with.
  const int whole = std::max(micro_batches, 2 * meshes - 1);
  for (int mesh = 0; mesh < meshes; ++mesh) orders.push_back(order_of(mesh, meshes, whole));
  leave_out_from(micro_batches, orders);
  join_first_backwards(orders.front());
  return orders;
}

}  // namespace alpa
