#include "libalpa/sharding/transfer/transfer_price.h"

#include <algorithm>
#include <map>
#include <set>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

/// A chunk that is smaller is all latency.
constexpr std::int64_t kLeastChunkBytes = 4096;

/// A way has to be faster by so much than a simpler one.
constexpr double kWorthIt = 0.99;

/// A way of more messages than that, and than sending to each device takes, is not looked at.
constexpr std::size_t kMostMessages = 20'000;

/// Until when something sends and receives.
struct Busy {
  double sending_s = 0, receiving_s = 0;
};

struct BusyDevice {
  Busy within_node, between_nodes;
  Busy nic;  ///< of which it is the first device
};

/// No more messages than that serve these tasks, broadcast in one chunk. `parts`: as many as a box may go in.
std::size_t most_messages(const std::vector<TransferTask>& tasks, TransferStrategy strategy,
                          std::size_t devices_on_node, std::size_t parts) {
  std::size_t messages = 0;
  for (const TransferTask& task : tasks) {
    const std::size_t receivers = task.receivers.size();
    switch (strategy) {
      case TransferStrategy::send_receive:
        messages += receivers;
        break;
      case TransferStrategy::local_all_gather:
        messages += receivers * std::min(receivers, devices_on_node);
        break;
      case TransferStrategy::global_all_gather:
        messages += receivers * receivers * parts;
        break;
      case TransferStrategy::broadcast:
        messages += receivers * parts;
        break;
    }
  }
  return messages;
}

}  // namespace

double transfer_seconds(const TransferRoute& route, DType type, const CostModel& costs) {
  DeviceIndex last{0};
  for (const TransferMessage& message : route.messages) last = std::max({last, message.from, message.to});
  std::vector<BusyDevice> busy(static_cast<std::size_t>(last) + 1);
  std::vector<double> arrived_s(route.messages.size());
  double end_s = 0;
  for (std::size_t m = 0; m < route.messages.size(); ++m) {
    const TransferMessage& message = route.messages[m];
    if (message.from == message.to) continue;
    const double bytes = static_cast<double>(message.elements() * dtype_bytes(type));
    const bool one_node = is_on_one_node(message, costs.cluster().devices_per_node);
    const CostModel &from = costs.on(message.from), &to = costs.on(message.to);
    const auto link = one_node ? &BusyDevice::within_node : &BusyDevice::between_nodes;
    Busy &sender = busy[message.from].*link, &receiver = busy[message.to].*link;
    double start_s = std::max(sender.sending_s, receiver.receiving_s);
    if (message.is_passed_on()) start_s = std::max(start_s, arrived_s[message.after]);
    if (!one_node) {
      Busy &out = busy[first_on_nic(message.from, costs.cluster())].nic,
           &in = busy[first_on_nic(message.to, costs.cluster())].nic;
      start_s = std::max({start_s, out.sending_s, in.receiving_s});
      out.sending_s = start_s + from.nic_seconds(bytes);
      in.receiving_s = start_s + to.nic_seconds(bytes);
    }
    arrived_s[m] = start_s + std::max(from.send_seconds(one_node, bytes), to.send_seconds(one_node, bytes));
    sender.sending_s = receiver.receiving_s = arrived_s[m];
    end_s = std::max(end_s, arrived_s[m]);
  }
  return end_s;
}

double least_transfer_seconds(const Transfer& transfer, const CostModel& costs) {
  const Cluster& cluster = costs.cluster();
  const auto node_of = [&](DeviceIndex device) { return device / cluster.devices_per_node; };
  std::map<int, double> taken_in_s;  // by all interfaces of a node
  std::map<int, double> rates;       // of all interfaces of a node that holds something
  double sent_bytes = 0, end_s = 0;
  const auto nics = [&](DeviceIndex device) {
    return costs.on(device).cluster().nics_per_node / costs.on(device).nic_seconds(1);
  };
  for (const TransferTask& task : transfer_tasks(transfer)) {
    const double bytes = static_cast<double>(element_count(task.extent) * dtype_bytes(transfer.whole.dtype));
    std::set<int> nodes;
    for (const DeviceIndex device : task.holders) nodes.insert(node_of(device));
    bool leaves = false;
    std::set<int> served;
    for (const DeviceIndex device : task.receivers) {
      if (nodes.contains(node_of(device))) continue;
      leaves = true;
      if (served.insert(node_of(device)).second)
        end_s = std::max(end_s, taken_in_s[node_of(device)] += bytes / nics(device));
    }
    if (!leaves) continue;
    sent_bytes += bytes;
    for (const DeviceIndex device : task.holders) rates[node_of(device)] = nics(device);
  }
  double rate = 0;
  for (const auto& [node, of_node] : rates) rate += of_node;
  return rate > 0 ? std::max(end_s, sent_bytes / rate) : end_s;
}

TransferWay fastest_way(const Transfer& transfer, const CostModel& costs,
                        std::optional<TransferStrategy> only, int most_chunks) {
  const std::vector<TransferTask> tasks = transfer_tasks(transfer);
  const bool is_multicast =
      std::ranges::any_of(tasks, [](const TransferTask& task) { return task.receivers.size() > 1; });
  TransferWay best{only.value_or(TransferStrategy::send_receive), 1};
  if (only != TransferStrategy::broadcast && (only || !is_multicast)) return best;
  double best_s = infinity;
  const auto offer = [&](const TransferWay& way) {
    const double seconds =
        transfer_seconds(transfer_route(transfer, way, costs.cluster()), transfer.whole.dtype, costs);
    if (seconds < kWorthIt * best_s) best = way, best_s = seconds;
  };
  std::int64_t largest = 0;
  for (const TransferTask& task : tasks) largest = std::max(largest, element_count(task.extent));
  const Cluster& cluster = costs.cluster();
  const auto parts = static_cast<std::size_t>(cluster.nics_per_node);
  largest = largest * dtype_bytes(transfer.whole.dtype) / cluster.nics_per_node;
  const auto messages_of = [&](TransferStrategy strategy) {
    return most_messages(tasks, strategy, static_cast<std::size_t>(cluster.devices_per_node), parts);
  };
  const std::size_t most = std::max(kMostMessages, messages_of(TransferStrategy::send_receive) * parts);
  for (const Word<TransferStrategy>& word : transfer_strategy_words()) {
    if (only && word.value != *only) continue;
    const std::size_t messages = messages_of(word.value);
    if (messages > most && !only) continue;
    offer({word.value, 1});
    if (word.value != TransferStrategy::broadcast) continue;
    for (int chunks = 2; chunks <= most_chunks && largest / chunks >= kLeastChunkBytes &&
                         messages * static_cast<std::size_t>(chunks) <= kMostMessages;
         chunks *= 2)
      offer({word.value, chunks});
  }
  return best;
}

}  // namespace alpa
