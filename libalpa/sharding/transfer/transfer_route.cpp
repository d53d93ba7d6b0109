#include "libalpa/sharding/transfer/transfer_route.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "libalpa/cluster/cluster_parts.h"

namespace alpa {
namespace {

/// Of many copies so many are looked at, other ones for each box.
constexpr std::size_t kMostSenders = 16;

/// Nodes and what joins them.
class Network {
 public:
  explicit Network(const Cluster& cluster) : cluster_(cluster) {}

  int node_of(DeviceIndex device) const { return device / cluster_.devices_per_node; }

  DeviceIndex nic_of(DeviceIndex device) const {
    const int per_nic = part_of(device).devices_per_nic();
    return DeviceIndex(device - device % cluster_.devices_per_node % per_nic);
  }

  double rate_between_nodes(DeviceIndex device) const { return part_of(device).between_nodes.bytes_per_s; }

  double rate(DeviceIndex from, DeviceIndex to) const {
    if (node_of(from) != node_of(to)) return std::min(rate_between_nodes(from), rate_between_nodes(to));
    return part_of(from).within_node.bytes_per_s;
  }

 private:
  const Cluster& part_of(DeviceIndex device) const {
    if (cluster_.parts.empty()) return cluster_;
    return cluster_.parts[static_cast<std::size_t>(parts_under(cluster_, {device, {}}).first)];
  }

  const Cluster& cluster_;
};

/// A part of a box that goes out from one device, to others in the order of a chain.
struct Unit {
  int task = 0;
  std::int64_t begin = 0, end = 0;
  std::vector<DeviceIndex> senders;  ///< any of them
  std::vector<DeviceIndex> receivers;
};

using Devices = std::vector<DeviceIndex>;

/// By node; the fastest first, else in their order.
std::vector<Devices> by_node(const Devices& devices, const Network& network) {
  std::vector<Devices> nodes;
  for (const DeviceIndex device : devices) {
    if (nodes.empty() || network.node_of(nodes.back().front()) != network.node_of(device))
      nodes.emplace_back();
    nodes.back().push_back(device);
  }
  std::ranges::stable_sort(nodes, std::greater<>(),
                           [&](const Devices& node) { return network.rate_between_nodes(node.front()); });
  return nodes;
}

std::size_t nics_of(const Devices& devices, const Network& network) {
  std::set<DeviceIndex> nics;
  for (const DeviceIndex device : devices) nics.insert(network.nic_of(device));
  return nics.size();
}

/// The devices of a node from the first of its interface of that number on, then those before.
void begin_at_nic(Devices& node, std::size_t number, const Network& network) {
  const std::size_t nics = nics_of(node, network);
  std::size_t passed = 0;
  for (std::size_t i = 1; i < node.size() && passed < number % nics; ++i)
    if (network.nic_of(node[i]) != network.nic_of(node[i - 1]) && ++passed == number % nics) {
      std::rotate(node.begin(), node.begin() + static_cast<std::ptrdiff_t>(i), node.end());
      return;
    }
}

class RouteMaker {
 public:
  RouteMaker(TransferRoute& route, const TransferWay& way, const Network& network)
      : route_(route), way_(way), network_(network) {}

  void run(MulticastSearch search) {
    for (std::size_t t = 0; t < route_.tasks.size(); ++t) add_units(static_cast<int>(t));
    std::vector<Multicast> multicasts;
    for (std::size_t u = 0; u < units_.size(); ++u) multicasts.push_back(multicast(u));
    for (const MulticastTurn& turn : multicast_order(multicasts, search)) {
      const auto u = static_cast<std::size_t>(turn.multicast), sender = static_cast<std::size_t>(turn.sender);
      start_s_ = turn.start_s;
      seconds_ = multicasts[u][sender].seconds;
      send(units_[u], units_[u].senders[sender]);
    }
    order_by_time();
  }

 private:
  /// Nodes that have copies serve themselves; a device that has one, itself.
  void add_units(int t) {
    const TransferTask& task = route_.tasks[t];
    std::vector<Devices> others;
    for (const Devices& node : by_node(task.receivers, network_)) {
      Devices near;
      for (const DeviceIndex holder : task.holders)
        if (network_.node_of(holder) == network_.node_of(node.front())) near.push_back(holder);
      if (near.empty()) {
        others.push_back(node);
        continue;
      }
      Devices without;
      for (const DeviceIndex device : node)
        if (std::ranges::binary_search(near, device))
          units_.push_back({t, 0, element_count(task.extent), {device}, {device}});
        else
          without.push_back(device);
      if (!without.empty()) add_units(t, near, {without});
    }
    if (!others.empty()) add_units(t, task.holders, others);
  }

  void add_units(int t, const Devices& senders, const std::vector<Devices>& nodes) {
    const std::int64_t elements = element_count(route_.tasks[t].extent);
    switch (way_.strategy) {
      case TransferStrategy::send_receive:
        for (const Devices& node : nodes)
          for (const DeviceIndex device : node) units_.push_back({t, 0, elements, senders, {device}});
        return;
      case TransferStrategy::local_all_gather:
        for (const Devices& node : nodes) units_.push_back({t, 0, elements, senders, node});
        return;
      case TransferStrategy::global_all_gather:
      case TransferStrategy::broadcast:
        break;
    }
    std::size_t parts = nics_of(senders, network_);
    for (const Devices& node : nodes) parts = std::min(parts, nics_of(node, network_));
    if (network_.node_of(senders.front()) == network_.node_of(nodes.front().front())) parts = 1;
    parts = std::min(parts, static_cast<std::size_t>(elements));
    for (std::size_t part = 0; part < parts; ++part) {
      Unit unit{t, share(elements, part, parts), share(elements, part + 1, parts), senders, {}};
      for (Devices node : nodes) {
        begin_at_nic(node, part, network_);
        unit.receivers.insert(unit.receivers.end(), node.begin(), node.end());
      }
      units_.push_back(std::move(unit));
    }
  }

  static std::int64_t share(std::int64_t elements, std::size_t part, std::size_t parts) {
    return elements * static_cast<std::int64_t>(part) / static_cast<std::int64_t>(parts);
  }

  /// Between nodes one sender for each interface, of its devices in turn.
  Multicast multicast(std::size_t u) {
    Unit& unit = units_[u];
    const bool is_near = network_.node_of(unit.senders.front()) == network_.node_of(unit.receivers.front());
    if (!is_near) {
      std::map<DeviceIndex, Devices> on_nics;
      for (const DeviceIndex device : unit.senders) on_nics[network_.nic_of(device)].push_back(device);
      unit.senders.clear();
      for (const auto& [nic, devices] : on_nics) unit.senders.push_back(devices[u % devices.size()]);
    }
    if (unit.senders.size() > kMostSenders) {
      std::rotate(unit.senders.begin(),
                  unit.senders.begin() + static_cast<std::ptrdiff_t>(u * kMostSenders % unit.senders.size()),
                  unit.senders.end());
      unit.senders.resize(kMostSenders);
    }
    Multicast multicast;
    for (const DeviceIndex sender : unit.senders) multicast.push_back(sending(unit, sender));
    return multicast;
  }

  /// What it takes if each device has the box from the one before. Beside interfaces, links within nodes do
  /// not matter.
  MulticastSender sending(const Unit& unit, DeviceIndex sender) {
    MulticastSender sending;
    const bool is_near = network_.node_of(sender) == network_.node_of(unit.receivers.front());
    double rate = 0;
    DeviceIndex from = sender;
    for (const DeviceIndex to : unit.receivers) {
      if (from == to) continue;
      const double here = network_.rate(from, to);
      rate = rate == 0 ? here : std::min(rate, here);
      if (is_near) {
        sending.links.push_back(link(Link::device_out, from));
        sending.links.push_back(link(Link::device_in, to));
      } else if (network_.node_of(from) != network_.node_of(to)) {
        sending.links.push_back(link(Link::nic_out, network_.nic_of(from)));
        sending.links.push_back(link(Link::nic_in, network_.nic_of(to)));
      }
      from = to;
    }
    std::ranges::sort(sending.links);
    if (rate > 0) sending.seconds = static_cast<double>(unit.end - unit.begin) / rate;
    return sending;
  }

  enum class Link { nic_out, nic_in, device_out, device_in };
  int link(Link kind, DeviceIndex of) {
    return links_.try_emplace({kind, of}, static_cast<int>(links_.size())).first->second;
  }

  /// `part_before`: of the time that the unit takes.
  int add(const Unit& unit, DeviceIndex from, DeviceIndex to, std::int64_t begin, std::int64_t end, int after,
          double part_before = 0) {
    route_.messages.push_back({unit.task, from, to, begin, end, after});
    begin_s_.push_back(start_s_ + part_before * seconds_);
    return static_cast<int>(route_.messages.size()) - 1;
  }

  /// Units that are under way at once take turns on a device.
  void order_by_time() {
    std::vector<int> order(route_.messages.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int m) { return begin_s_[m]; });
    std::vector<int> place(order.size());
    std::vector<TransferMessage> ordered;
    for (const int m : order) {
      place[m] = static_cast<int>(ordered.size());
      TransferMessage& message = ordered.emplace_back(route_.messages[m]);
      if (message.after >= 0) message.after = place[message.after];
    }
    route_.messages = std::move(ordered);
  }

  void send(const Unit& unit, DeviceIndex sender) {
    switch (way_.strategy) {
      case TransferStrategy::send_receive:
        add(unit, sender, unit.receivers.front(), unit.begin, unit.end, -1);
        return;
      case TransferStrategy::local_all_gather:
        return send_parts(unit, sender, false);
      case TransferStrategy::global_all_gather:
        return send_parts(unit, sender, true);
      case TransferStrategy::broadcast:
        return send_along_chain(unit, sender);
    }
  }

  /// A part to each; then each of them passes on to the next one what it got last (a ring), or its own part
  /// to all others.
  void send_parts(const Unit& unit, DeviceIndex sender, bool by_ring) {
    const std::size_t devices = unit.receivers.size();
    const auto at = [&](std::size_t part) {
      return unit.begin + share(unit.end - unit.begin, part, devices);
    };
    std::vector<int> latest(devices, -1);  // [part] the message by which the one that passes it on got it
    for (std::size_t part = 0; part < devices; ++part)
      if (at(part) < at(part + 1))
        latest[part] = add(unit, sender, unit.receivers[part], at(part), at(part + 1), -1);
    for (std::size_t round = 1; round < devices; ++round)
      for (std::size_t part = 0; part < devices; ++part) {
        if (latest[part] < 0) continue;
        const DeviceIndex to = unit.receivers[(part + round) % devices];
        const DeviceIndex from =
            by_ring ? unit.receivers[(part + round - 1) % devices] : unit.receivers[part];
        const int message = add(unit, from, to, at(part), at(part + 1), latest[part]);
        if (by_ring) latest[part] = message;
      }
  }

  void send_along_chain(const Unit& unit, DeviceIndex sender) {
    const auto chunks =
        static_cast<std::size_t>(std::min<std::int64_t>(std::max(way_.chunks, 1), unit.end - unit.begin));
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t begin = unit.begin + share(unit.end - unit.begin, chunk, chunks),
                         end = unit.begin + share(unit.end - unit.begin, chunk + 1, chunks);
      int before = -1;
      DeviceIndex from = sender;
      for (const DeviceIndex to : unit.receivers) {
        before =
            add(unit, from, to, begin, end, before, static_cast<double>(chunk) / static_cast<double>(chunks));
        from = to;
      }
    }
  }

  TransferRoute& route_;
  const TransferWay& way_;
  const Network& network_;
  std::vector<Unit> units_;
  std::vector<double> begin_s_;       ///< [message] about when, for their order
  double start_s_ = 0, seconds_ = 0;  ///< of the unit at hand
  std::map<std::pair<Link, DeviceIndex>, int> links_;
};

}  // namespace

TransferRoute transfer_route(const Transfer& transfer, const TransferWay& way, const Cluster& cluster,
                             MulticastSearch search) {
  TransferRoute route{transfer_tasks(transfer), {}};
  RouteMaker(route, way, Network(cluster)).run(search);
  return route;
}

Transfer moved(Transfer transfer, int devices) {
  for (DeviceMesh* mesh : {&transfer.from_mesh, &transfer.to_mesh})
    mesh->first_device = DeviceIndex(mesh->first_device + devices);
  return transfer;
}

TransferRoute moved(TransferRoute route, int devices) {
  const auto move = [&](DeviceIndex& device) { device = DeviceIndex(device + devices); };
  for (TransferTask& task : route.tasks) {
    std::ranges::for_each(task.holders, move);
    std::ranges::for_each(task.receivers, move);
  }
  for (TransferMessage& message : route.messages) {
    move(message.from);
    move(message.to);
  }
  return route;
}

int places_on(const Transfer& transfer, const Cluster& cluster) {
  const int first = std::min<int>(transfer.from_mesh.first_device, transfer.to_mesh.first_device);
  return cluster.parts.empty() ? first - first % cluster.devices_per_node : 0;
}

bool is_on_one_node(const TransferMessage& message, int devices_per_node) {
  return message.from / devices_per_node == message.to / devices_per_node;
}

bool leaves_node(const TransferRoute& route, int devices_per_node) {
  return std::ranges::any_of(route.messages, [&](const TransferMessage& message) {
    return !is_on_one_node(message, devices_per_node);
  });
}

bool passes_on(const TransferRoute& route) {
  return std::ranges::any_of(route.messages, &TransferMessage::is_passed_on);
}

DeviceIndex first_on_nic(DeviceIndex device, const Cluster& cluster) {
  return Network(cluster).nic_of(device);
}

std::int64_t most_packed_elements(const TransferRoute& route) {
  std::set<std::pair<DeviceIndex, int>> sent;
  std::map<DeviceIndex, std::int64_t> packed;
  std::int64_t most = 0;
  for (const TransferMessage& message : route.messages)
    if (!message.is_passed_on() && sent.insert({message.from, message.task}).second)
      most = std::max(most, packed[message.from] += element_count(route.tasks[message.task].extent));
  return most;
}

}  // namespace alpa
