#include "libalpa/cluster/cluster.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/names.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_words.h"

namespace alpa {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6, kGibi = 1024.0 * 1024 * 1024;

/// A number that the file gives in `unit`.
double number(const TomlTable& table, const char* key, double unit, const Range& range) {
  return unit * table.number(key, between(range.low / unit, range.high / unit));
}

bool has_link_within(const Cluster& cluster) { return cluster.devices_per_node > 1; }
bool has_link_between(const Cluster& cluster) { return cluster.nodes > 1; }

/// Reads what there is of a cluster file: a figure that a profile has (`measured`) may be left out. Of a part
/// of a cluster, `whole` says what all parts have.
class ClusterReader {
 public:
  ClusterReader(const TomlTable& root, const Cluster* measured, const TomlTable* whole = nullptr)
      : root_(root), measured_(measured), whole_(whole) {}

  Cluster read(const std::string& name) const {
    Cluster cluster;
    cluster.name = root_.has("name") ? root_.name("name") : printable(name, "");
    cluster.device = measured_ && !root_.has("device") ? measured_->device : root_.name("device");
    cluster.kind = measured_ && !root_.has("device") ? measured_->kind : kind_of_words(cluster.device);
    cluster.kind = root_.word("kind", cluster.kind,
                              {{"cpu", DeviceKind::cpu, "ranks compute on cores"},
                               {"cuda", DeviceKind::cuda, "each rank computes on a GPU"}});
    cluster.nodes = static_cast<int>(root_.integer("nodes", kNodeRange));
    cluster.devices_per_node =
        static_cast<int>(place_of("devices_per_node").integer("devices_per_node", kDevicesPerNodeRange));
    if (cluster.devices() > kMostDevices)
      root_.value("nodes").fault(fmt::format("{} nodes of {} devices are more than {} devices", cluster.nodes,
                                             cluster.devices_per_node, kMostDevices));
    cluster.memory_bytes = measured_ && !root_.has("memory_gib")
                               ? measured_->memory_bytes
                               : std::llround(number(root_, "memory_gib", kGibi, kMemoryRange));
    cluster.f32_flops_per_s = figure("f32_tflops", kTera, kRateRange, &Cluster::f32_flops_per_s);
    cluster.bf16_flops_per_s = rate_of_type("bf16_tflops", &Cluster::bf16_flops_per_s);
    cluster.f16_flops_per_s = rate_of_type("f16_tflops", &Cluster::f16_flops_per_s);
    cluster.memory_bytes_per_s = figure("memory_gb_per_s", kGiga, kRateRange, &Cluster::memory_bytes_per_s);
    cluster.launch_s = figure("launch_us", kMicro, kTimeRange, &Cluster::launch_s);
    read_links(cluster);
    const int nics = measured_ && has_link_between(*measured_) ? measured_->nics_per_node : 1;
    cluster.nics_per_node = static_cast<int>(root_.integer("nics_per_node", nics, kNicsRange));
    cluster.overlap_slowdown =
        root_.number("overlap_slowdown", measured_ ? measured_->overlap_slowdown : 1, kSlowdownRange);
    if (measured_ || root_.has("host_gb_per_s"))
      cluster.host_bytes_per_s = figure("host_gb_per_s", kGiga, kRateRange, &Cluster::host_bytes_per_s);
    if (root_.has("host_memory_gib"))
      cluster.host_memory_bytes = std::llround(number(root_, "host_memory_gib", kGibi, kMemoryRange));
    return cluster;
  }

 private:
  double figure(const char* key, double unit, Range range, double Cluster::*measured) const {
    return measured_ && !root_.has(key) ? measured_->*measured : number(root_, key, unit, range);
  }

  /// Not every device has the type.
  double rate_of_type(const char* key, double Cluster::*measured) const {
    return measured_ || root_.has(key) ? figure(key, kTera, kRateRange, measured) : 0;
  }

  const TomlTable& place_of(const char* key) const {
    return whole_ && !root_.has(key) && whole_->has(key) ? *whole_ : root_;
  }

  Link link(const char* key) const {
    const TomlTable table = place_of(key).table(key);
    return {number(table, "latency_us", kMicro, kTimeRange), number(table, "gb_per_s", kGiga, kRateRange)};
  }

  void read_links(Cluster& cluster) const {
    const bool within_is_known = measured_ && (has_link_within(*measured_) || !has_link_within(cluster));
    const bool between_is_known = measured_ && (has_link_between(*measured_) || !has_link_between(cluster));
    cluster.within_node =
        within_is_known && !root_.has("within_node") ? measured_->within_node : link("within_node");
    if (place_of("between_nodes").has("between_nodes"))
      cluster.between_nodes = link("between_nodes");
    else if (between_is_known)
      cluster.between_nodes = measured_->between_nodes;
    else if (whole_ || has_link_between(cluster))
      root_.fault("missing key 'between_nodes', expected a table with latency_us and gb_per_s");
    else
      cluster.between_nodes = cluster.within_node;
  }

  const TomlTable& root_;
  const Cluster* measured_;
  const TomlTable* whole_;
};

/// Notes where a part does not go with those before it.
void check_part(const TomlTable& table, const Cluster& part, const std::vector<Cluster>& before) {
  if (before.empty()) return;
  const Cluster& first = before.front();
  if (std::ranges::find(before, part.name, &Cluster::name) != before.end())
    table.value("name").fault(fmt::format("two parts are called '{}'", part.name));
  if (part.devices_per_node != first.devices_per_node)
    table.fault(fmt::format("part '{}' has {} devices on a node, part '{}' has {}: expected as many",
                            part.name, part.devices_per_node, first.name, first.devices_per_node));
  if (part.kind != first.kind)
    table.fault(fmt::format("part '{}' is of kind {}, part '{}' of kind {}: expected one kind", part.name,
                            kind_name(part.kind), first.name, kind_name(first.kind)));
}

Cluster parts_in_file(const TomlTable& root, const std::string& file_name) {
  std::vector<Cluster> parts;
  std::int64_t nodes = 0, devices = 0;
  for (const TomlTable& table : root.tables("part")) {
    const Cluster part = ClusterReader(table, nullptr, &root).read(table.name("name"));
    check_part(table, part, parts);
    parts.push_back(part);
    nodes += part.nodes;
    devices += part.devices();
  }
  if (parts.empty() || std::ssize(parts) > kMostParts)
    root.fault(fmt::format("{} tables [[part]], expected 1 to {}", parts.size(), kMostParts));
  if (nodes > kMostNodes || devices > kMostDevices)
    root.fault(fmt::format("parts of {} nodes with {} devices, expected {} and {} at most", nodes, devices,
                           kMostNodes, kMostDevices));
  const std::string name = root.has("name") ? root.name("name") : printable(file_name, "");
  return parts.empty() ? Cluster{} : cluster_of_parts(name, std::move(parts));
}

/// What was measured is known of the same devices only.
bool is_of_devices(const TomlTable& root, const Cluster& measured) {
  if (root.has("part")) return false;
  return !root.has("device") || names_same_device(root.name("device"), measured.device);
}

Cluster read(const std::filesystem::path& path, const Cluster* measured) {
  TomlDocument document = read_toml(path);
  const TomlTable root = document.root();
  const std::string name = path.stem().string();
  const Cluster* known = measured && is_of_devices(root, *measured) ? measured : nullptr;
  const Cluster cluster =
      root.has("part") ? parts_in_file(root, name) : ClusterReader(root, known).read(name);
  document.finish();
  return cluster;
}

/// One figure of a cluster file and of a profile, as the file writes it.
struct Figure {
  const char* name;
  double given, measured;
};

/// Those that are of the machines, not of their number.
std::vector<Figure> figures(const Cluster& given, const Cluster& measured) {
  std::vector<Figure> all{
      {"f32_tflops", given.f32_flops_per_s / kTera, measured.f32_flops_per_s / kTera},
      {"bf16_tflops", given.bf16_flops_per_s / kTera, measured.bf16_flops_per_s / kTera},
      {"f16_tflops", given.f16_flops_per_s / kTera, measured.f16_flops_per_s / kTera},
      {"memory_gb_per_s", given.memory_bytes_per_s / kGiga, measured.memory_bytes_per_s / kGiga},
      {"launch_us", given.launch_s / kMicro, measured.launch_s / kMicro},
      {"overlap_slowdown", given.overlap_slowdown, measured.overlap_slowdown},
      {"host_gb_per_s", given.host_bytes_per_s / kGiga, measured.host_bytes_per_s / kGiga}};
  const auto add = [&](const char* latency, const char* rate, const Link& one, const Link& other) {
    all.push_back({latency, one.latency_s / kMicro, other.latency_s / kMicro});
    all.push_back({rate, one.bytes_per_s / kGiga, other.bytes_per_s / kGiga});
  };
  if (has_link_within(measured))
    add("within_node.latency_us", "within_node.gb_per_s", given.within_node, measured.within_node);
  if (has_link_between(measured)) {
    add("between_nodes.latency_us", "between_nodes.gb_per_s", given.between_nodes, measured.between_nodes);
    all.push_back({"nics_per_node", 1.0 * given.nics_per_node, 1.0 * measured.nics_per_node});
  }
  return all;
}

/// "f32_tflops is 1.4, measured 0.14 (10 x)"; "" where they are the same but for what measurements differ by.
std::string difference(const Figure& figure) {
  constexpr double kSpread = 1.1;
  const auto [less, more] = std::minmax(figure.given, figure.measured);
  if (more <= kSpread * less) return "";
  const std::string factor =
      figure.measured > 0 ? fmt::format(" ({:.3g} x)", figure.given / figure.measured) : "";
  return fmt::format("{} is {:.4g}, measured {:.4g}{}", figure.name, figure.given, figure.measured, factor);
}

constexpr auto kLesser = [](auto a, auto b) { return std::min(a, b); };
constexpr auto kGreater = [](auto a, auto b) { return std::max(a, b); };

/// Puts what `more` chooses of two figures of which more is better, and what `less` chooses of the others.
template <class More, class Less>
void choose_figures(Cluster& to, const Cluster& from, const More& more, const Less& less) {
  to.memory_bytes = more(to.memory_bytes, from.memory_bytes);
  to.f32_flops_per_s = more(to.f32_flops_per_s, from.f32_flops_per_s);
  to.bf16_flops_per_s = more(to.bf16_flops_per_s, from.bf16_flops_per_s);
  to.f16_flops_per_s = more(to.f16_flops_per_s, from.f16_flops_per_s);
  to.memory_bytes_per_s = more(to.memory_bytes_per_s, from.memory_bytes_per_s);
  to.launch_s = less(to.launch_s, from.launch_s);
  to.within_node.latency_s = less(to.within_node.latency_s, from.within_node.latency_s);
  to.within_node.bytes_per_s = more(to.within_node.bytes_per_s, from.within_node.bytes_per_s);
  to.between_nodes.latency_s = less(to.between_nodes.latency_s, from.between_nodes.latency_s);
  to.between_nodes.bytes_per_s = more(to.between_nodes.bytes_per_s, from.between_nodes.bytes_per_s);
  to.nics_per_node = more(to.nics_per_node, from.nics_per_node);
  to.overlap_slowdown = less(to.overlap_slowdown, from.overlap_slowdown);
  to.host_bytes_per_s = more(to.host_bytes_per_s, from.host_bytes_per_s);
  const bool both_are_known = to.host_memory_bytes > 0 && from.host_memory_bytes > 0;
  to.host_memory_bytes = both_are_known ? more(to.host_memory_bytes, from.host_memory_bytes)
                                        : std::max(to.host_memory_bytes, from.host_memory_bytes);
}

/// The nodes of `whole`, all with the worst or the best figures of some parts.
Cluster equal_nodes(const Cluster& whole, std::span<const Cluster> parts, bool best) {
  Cluster equal = parts.front();
  equal.name = whole.name;
  equal.nodes = whole.nodes;
  std::vector<std::string> devices;
  for (const Cluster& part : parts) {
    best ? choose_figures(equal, part, kGreater, kLesser) : choose_figures(equal, part, kLesser, kGreater);
    if (std::ranges::find(devices, part.device) == devices.end()) devices.push_back(part.device);
  }
  equal.device = fmt::format("{}", fmt::join(devices, " + "));
  if (!is_name(equal.device)) equal.device = fmt::format("{} kinds of devices", devices.size());
  return equal;
}

/// The bits, so that two numbers that print alike are not the same cluster.
std::string exact(double value) { return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)); }

std::string exact(const Link& link) { return exact(link.latency_s) + " " + exact(link.bytes_per_s); }

}  // namespace

Cluster cluster_of_parts(const std::string& name, std::vector<Cluster> parts) {
  Cluster whole;
  whole.name = name;
  whole.nodes = 0;
  for (const Cluster& part : parts) whole.nodes += part.nodes;
  whole = equal_nodes(whole, parts, false);
  if (parts.size() > 1) whole.parts = std::move(parts);
  return whole;
}

Cluster worst_of_parts(const Cluster& cluster, int first, int end) {
  return equal_nodes(cluster, std::span(cluster.parts).subspan(first, end - first), false);
}

Cluster best_of_parts(const Cluster& cluster) {
  return cluster.parts.empty() ? cluster : equal_nodes(cluster, cluster.parts, true);
}

Cluster read_cluster(const std::filesystem::path& path) { return read(path, nullptr); }

MachinesBesideProfile read_cluster_beside(const Cluster& measured, const std::filesystem::path& path) {
  const Cluster given = read(path, &measured);
  if (given.kind != measured.kind)
    throw Error(ErrorKind::input,
                fmt::format("the profile was measured on {}, but '{}' has {}: it says nothing of these",
                            measured.device, path.string(), given.device),
                "a profile of such devices, or the cluster file alone");
  std::vector<std::string> differences;
  if (!given.parts.empty() || !names_same_device(given.device, measured.device))
    differences.push_back(fmt::format("device is {}, measured {}", given.device, measured.device));
  for (const Figure& figure : figures(given, measured))
    if (std::string text = difference(figure); !text.empty()) differences.push_back(std::move(text));
  if (!differences.empty()) return {given, fmt::format("{}", fmt::join(differences, "; "))};
  Cluster cluster = measured;
  cluster.name = given.name;
  cluster.nodes = given.nodes;
  cluster.devices_per_node = given.devices_per_node;
  cluster.nics_per_node = given.nics_per_node;
  cluster.memory_bytes = given.memory_bytes;
  cluster.host_memory_bytes = given.host_memory_bytes;
  if (!has_link_within(measured)) cluster.within_node = given.within_node;
  if (!has_link_between(measured)) cluster.between_nodes = given.between_nodes;
  return {cluster, ""};
}

Cluster with_servers(Cluster cluster, int devices, int servers) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw Error(ErrorKind::usage, fmt::format("--servers {}: {}", servers, what), hint);
  };
  if (!cluster.parts.empty())
    refuse(fmt::format("the nodes of cluster '{}' differ", cluster.name), "without --servers");
  if (cluster.kind == DeviceKind::cuda)
    refuse("GPUs add up by NCCL, which knows no ranks that have nothing to add", "without --servers");
  const int nodes = devices > 0 ? devices / cluster.devices_per_node : cluster.nodes - servers;
  if (devices % cluster.devices_per_node != 0)
    refuse(fmt::format("{} devices do not fill nodes of {}", devices, cluster.devices_per_node),
           "a multiple of that for --devices");
  if (nodes < 2 || nodes + servers > cluster.nodes)
    refuse(fmt::format("cluster '{}' has {}, {} of these compute", cluster.name,
                       count_text(cluster.nodes, "node"), std::max(nodes, 0)),
           "servers are further nodes, beside two or more that compute (--devices)");
  cluster.nodes = nodes;
  cluster.servers = servers;
  return cluster;
}

std::string machines_text(const Cluster& cluster) {
  return fmt::format("{} of {} ({}){}", count_text(cluster.nodes, "node"),
                     count_text(cluster.devices_per_node, "device"), cluster.device,
                     cluster.servers > 0 ? " and " + count_text(cluster.servers, "server") : "");
}

std::string cluster_fingerprint(const Cluster& cluster) {
  std::string text =
      fmt::format("{}\n{}\n{} {} {} {}\n{} {} {} {} {}\n{}\n{} {}", cluster.name, cluster.device,
                  kind_name(cluster.kind), cluster.nodes, cluster.devices_per_node, cluster.memory_bytes,
                  exact(cluster.f32_flops_per_s), exact(cluster.bf16_flops_per_s),
                  exact(cluster.f16_flops_per_s), exact(cluster.memory_bytes_per_s), exact(cluster.launch_s),
                  exact(cluster.within_node), exact(cluster.between_nodes), cluster.nics_per_node);
  // Where there is nothing to say the digest is that of builds that did not have the figure, and of their
  // files.
  if (cluster.overlap_slowdown != 1) text += " " + exact(cluster.overlap_slowdown);
  if (cluster.host_bytes_per_s != 0) text += " moves " + exact(cluster.host_bytes_per_s);
  if (cluster.host_memory_bytes != 0) text += fmt::format(" host {}", cluster.host_memory_bytes);
  if (cluster.servers != 0) text += fmt::format(" servers {}", cluster.servers);
  for (const Cluster& part : cluster.parts) text += "\n" + cluster_fingerprint(part);
  return fingerprint(text);
}

}  // namespace alpa
