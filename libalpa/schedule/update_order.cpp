#include "libalpa/schedule/update_order.h"

#include "libalpa/base/words.h"

namespace alpa {
namespace {

constexpr Word<UpdateOrder> kOrders[] = {
    {"after-norm", UpdateOrder::after_norm, "when the norm of all gradients is there"},
    {"before-norm", UpdateOrder::before_norm,
     "when a stage's own gradients are there, and again, from copies of its states, where the norm turns out "
     "to clip them or not to be finite"},
    {"next-forward", UpdateOrder::next_forward,
     "in the forward of the next step, each before its states are used, or all where the norm is there; not "
     "in f16, nor where stages share weights or meshes"},
};

}  // namespace

std::span<const Word<UpdateOrder>> update_order_words() { return kOrders; }
std::string update_order_name(UpdateOrder order) { return name_of(order, update_order_words()); }
UpdateOrder find_update_order(const std::string& name) {
  return value_named(name, update_order_words(), "order of updates");
}

}  // namespace alpa
