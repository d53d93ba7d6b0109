#include "libalpa/program/order/shared_network.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace alpa {
namespace {

using Interface = std::pair<DeviceIndex, bool>;  ///< of the network, by its first device; sending

/// The network interfaces that a transfer takes: those that it leaves by and those that it arrives at.
std::set<Interface> interfaces_of(const TransferRoute& route, const Cluster& cluster) {
  std::set<Interface> interfaces;
  for (const TransferMessage& message : route.messages) {
    if (is_on_one_node(message, cluster.devices_per_node)) continue;
    interfaces.insert({first_on_nic(message.from, cluster), true});
    interfaces.insert({first_on_nic(message.to, cluster), false});
  }
  return interfaces;
}

}  // namespace

SharedNetwork::SharedNetwork(const Program& program, const CostModel& costs) {
  std::map<Interface, int> numbers;
  for (const StageTransfer& transfer : program.transfers) {
    taken_.emplace_back();
    for (const Interface& each : interfaces_of(transfer.route, costs.cluster()))
      taken_.back().push_back(numbers.try_emplace(each, static_cast<int>(numbers.size())).first->second);
  }
  users_.assign(numbers.size(), 0);
}

void SharedNetwork::begin(const UnderWay& what, int transfer) {
  go_on_until(what.start_s);
  flows_.push_back({what, transfer});
  count_users(flows_.back(), 1);
}

UnderWay SharedNetwork::take_next() {
  go_on_until(next_end_s_);
  const Flow flow = flows_[next_];
  flows_.erase(flows_.begin() + static_cast<std::ptrdiff_t>(next_));
  count_users(flow, -1);
  return flow.what;
}

/// How many times as long as alone it takes now.
int SharedNetwork::sharing(const Flow& flow) const {
  int most = 1;
  for (const int link : taken_[static_cast<std::size_t>(flow.transfer)])
    most = std::max(most, users_[static_cast<std::size_t>(link)]);
  return most;
}

void SharedNetwork::go_on_until(double to_s) {
  for (Flow& flow : flows_)
    flow.what.left_s = std::max(0.0, flow.what.left_s - (to_s - now_s_) / sharing(flow));
  now_s_ = to_s;
}

void SharedNetwork::count_users(const Flow& flow, int more) {
  for (const int link : taken_[static_cast<std::size_t>(flow.transfer)])
    users_[static_cast<std::size_t>(link)] += more;
  next_end_s_ = infinity;
  for (std::size_t f = 0; f < flows_.size(); ++f)
    if (const double end_s = now_s_ + flows_[f].what.left_s * sharing(flows_[f]); end_s < next_end_s_)
      next_end_s_ = end_s, next_ = f;
}

}  // namespace alpa
