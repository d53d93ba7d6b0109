#include "libalpa/cluster/profile_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/cluster/cluster_columns.h"
#include "libalpa/cluster/noise.h"
#include "libalpa/h5/file.h"

namespace alpa {
namespace {

constexpr std::string_view kFormat = "alpa-profile", kVersion = "1.1";
constexpr std::array kKinds{CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                            CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                            CollectiveKind::shift,          CollectiveKind::send};
constexpr std::array kStatusNames{"measured", "failed"};  // by SampleStatus

/// Two matrices [sample][node] in a group of samples.
template <class Samples, class Sample>
void write_on_nodes(H5Writer& file, const std::string& group, std::size_t nodes, const Samples& samples,
                    Sample sample_of) {
  std::vector<double> median, spread;
  for (const auto& each : samples) {
    std::vector<NodeTime> row = sample_of(each).on_nodes;
    row.resize(nodes);
    for (const NodeTime& time : row) {
      median.push_back(time.median_s);
      spread.push_back(time.spread_s);
    }
  }
  const Shape shape{std::ssize(samples), static_cast<std::int64_t>(nodes)};
  file.array(group + "/node_median_s", median, shape, "s");
  file.array(group + "/node_spread_s", spread, shape, "s");
  for (const char* name : {"/node_median_s", "/node_spread_s"})
    file.attach_scale(group + name, 1, "/nodes/name");
}

void write_nodes(H5Writer& file, const std::vector<NodeSample>& nodes) {
  std::vector<std::string> name;
  std::vector<double> f32, bf16, memory;
  for (const NodeSample& node : nodes) {
    name.push_back(node.name);
    f32.push_back(node.f32_flops_per_s);
    bf16.push_back(node.bf16_flops_per_s);
    memory.push_back(node.memory_bytes_per_s);
  }
  file.column("/nodes/name", name);
  file.scale("/nodes/name");
  file.column("/nodes/f32_flops_per_s", f32, "FLOP/s");
  file.column("/nodes/bf16_flops_per_s", bf16, "FLOP/s");
  file.column("/nodes/memory_bytes_per_s", memory, "byte/s");
}

void write_operators(H5Writer& file, const std::map<std::string, OperatorSample>& operators,
                     std::size_t nodes) {
  std::vector<std::string> signature;
  std::vector<double> median, spread, sample_spread, flops, bytes;
  std::vector<std::int32_t> low_precision, status;
  for (const auto& [name, sample] : operators) {
    signature.push_back(name);
    median.push_back(sample.median_s);
    spread.push_back(sample.spread_s);
    sample_spread.push_back(sample.sample_spread_s);
    flops.push_back(sample.flops);
    bytes.push_back(sample.bytes);
    low_precision.push_back(sample.low_precision);
    status.push_back(static_cast<std::int32_t>(sample.status));
  }
  file.column("/operators/signature", signature);
  file.column("/operators/median_s", median, "s");
  file.column("/operators/spread_s", spread, "s");
  file.column("/operators/sample_spread_s", sample_spread, "s");
  file.column("/operators/flops", flops, "FLOP");
  file.column("/operators/bytes", bytes, "byte");
  file.column("/operators/wide", low_precision, "1");
  file.enum_column("/operators/status", status, {kStatusNames.begin(), kStatusNames.end()});
  file.scale("/operators/signature");
  write_on_nodes(file, "/operators", nodes, operators, [](const auto& each) { return each.second; });
  for (const char* name : {"/operators/node_median_s", "/operators/node_spread_s"})
    file.attach_scale(name, 0, "/operators/signature");
}

void write_collectives(H5Writer& file, const std::vector<CollectiveSample>& collectives,
                       std::size_t nodes_measured) {
  std::vector<std::int32_t> kind, nodes, per_node;
  std::vector<std::int64_t> bytes;
  std::vector<double> median, spread, sample_spread;
  std::vector<std::string> names;
  for (const CollectiveKind known : kKinds) names.emplace_back(collective_name(known));
  for (const CollectiveSample& sample : collectives) {
    kind.push_back(static_cast<std::int32_t>(sample.kind));
    nodes.push_back(sample.group.nodes);
    per_node.push_back(sample.group.per_node);
    bytes.push_back(sample.bytes);
    median.push_back(sample.median_s);
    spread.push_back(sample.spread_s);
    sample_spread.push_back(sample.sample_spread_s);
  }
  file.enum_column("/collectives/kind", kind, names);
  file.column("/collectives/nodes", nodes, "1");
  file.column("/collectives/per_node", per_node, "1");
  file.column("/collectives/bytes", bytes, "byte");
  file.column("/collectives/median_s", median, "s");
  file.column("/collectives/spread_s", spread, "s");
  file.column("/collectives/sample_spread_s", sample_spread, "s");
  write_on_nodes(file, "/collectives", nodes_measured, collectives, [](const auto& each) { return each; });
}

void write_reference(H5Writer& file, const std::vector<ReferenceSample>& reference) {
  std::vector<std::string> signature;
  std::vector<std::int32_t> run;
  std::vector<double> at, median, spread;
  for (const ReferenceSample& sample : reference) {
    signature.push_back(sample.signature);
    run.push_back(sample.run);
    at.push_back(sample.at_s);
    median.push_back(sample.median_s);
    spread.push_back(sample.spread_s);
  }
  file.column("/reference/signature", signature);
  file.column("/reference/run", run, "1");
  file.column("/reference/at_s", at, "s");
  file.column("/reference/median_s", median, "s");
  file.column("/reference/spread_s", spread, "s");
}

void write_corrections(H5Writer& file, const std::vector<Correction>& corrections) {
  std::vector<std::string> run, kind;
  std::vector<double> factor, added;
  for (const Correction& each : corrections) {
    run.push_back(each.run);
    kind.push_back(each.kind);
    factor.push_back(each.factor);
    added.push_back(each.added_s);
  }
  file.column("/calibration/run", run);
  file.column("/calibration/kind", kind);
  file.column("/calibration/factor", factor, "1");
  file.column("/calibration/added_s", added, "s");
}

/// For people: it follows from the columns.
void write_noise(H5Writer& file, const Noise& noise) {
  file.group("/noise");
  file.attribute("/noise", "typical_spread", noise.typical_spread);
  file.attribute("/noise", "drift", noise.drift);
  file.attribute("/noise", "is_busy", std::int64_t{noise.is_busy()});
}

/// A file that anybody may have made: numbers that would poison every cost are refused here.
class ProfileReader {
 public:
  explicit ProfileReader(const std::filesystem::path& path) : path_(path), file_(path, kFormat, kVersion) {}

  Profile read() const {
    Profile profile;
    profile.cluster = read_cluster(file_);
    if (!profile.cluster.parts.empty()) refuse("/cluster/parts is there, expected equal nodes");
    profile.nodes = nodes();
    profile.operators = operators(profile.nodes.size());
    profile.collectives = collectives(profile.nodes.size());
    if (file_.has("/reference")) profile.reference = reference();
    if (file_.has("/calibration")) profile.corrections = corrections();
    return profile;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::input, fmt::format("profile '{}': {}", path_.string(), what),
                "measure again with alpa-profile");
  }

  int count(const char* column, std::size_t row, std::int64_t value, const Range& range) const {
    return static_cast<int>(number(column, row, static_cast<double>(value), range));
  }

  double number(const char* column, std::size_t row, double value, const Range& range) const {
    if (!range.contains(value))
      refuse(fmt::format("{} of row {} is {}, expected {}", column, row, value, range_text(range)));
    return value;
  }
  double time(const char* column, std::size_t row, double value) const {
    return number(column, row, value, kTimeRange);
  }
  /// 0: it was not timed.
  double rate(const char* column, std::size_t row, double value) const {
    return value == 0 ? 0 : number(column, row, value, kRateRange);
  }
  /// FLOPs or bytes; of less than one nothing was measured.
  double work(const char* column, std::size_t row, double value) const {
    return value == 0 ? 0 : number(column, row, value, between(1, kMostNumber));
  }

  std::vector<NodeSample> nodes() const {
    const std::vector<std::string> name = file_.strings("/nodes/name");
    const Shape rows{static_cast<std::int64_t>(name.size())};
    const std::vector<double> f32 = file_.doubles("/nodes/f32_flops_per_s", rows),
                              bf16 = file_.doubles("/nodes/bf16_flops_per_s", rows),
                              memory = file_.doubles("/nodes/memory_bytes_per_s", rows);
    std::vector<NodeSample> nodes;
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (!is_name(name[i]))
        refuse(fmt::format("/nodes/name of row {} is '{}', expected a name", i, name[i]));
      nodes.push_back({name[i], rate("/nodes/f32_flops_per_s", i, f32[i]),
                       rate("/nodes/bf16_flops_per_s", i, bf16[i]),
                       rate("/nodes/memory_bytes_per_s", i, memory[i])});
    }
    return nodes;
  }

  /// [sample][node]
  std::vector<std::vector<NodeTime>> on_nodes(const std::string& group, std::size_t samples,
                                              std::size_t nodes) const {
    const Shape shape{static_cast<std::int64_t>(samples), static_cast<std::int64_t>(nodes)};
    const std::string names[] = {group + "/node_median_s", group + "/node_spread_s"};
    const std::vector<double> median = file_.doubles(names[0], shape),
                              spread = file_.doubles(names[1], shape);
    std::vector<std::vector<NodeTime>> all(samples);
    for (std::size_t i = 0; i < median.size(); ++i)
      all[i / nodes].push_back(
          {time(names[0].c_str(), i / nodes, median[i]), time(names[1].c_str(), i / nodes, spread[i])});
    return all;
  }

  std::map<std::string, OperatorSample> operators(std::size_t nodes) const {
    const std::vector<std::string> signature = file_.strings("/operators/signature");
    const Shape rows{static_cast<std::int64_t>(signature.size())};
    const std::vector<double> median = file_.doubles("/operators/median_s", rows),
                              spread = file_.doubles("/operators/spread_s", rows),
                              sample_spread = file_.doubles("/operators/sample_spread_s", rows),
                              flops = file_.doubles("/operators/flops", rows),
                              bytes = file_.doubles("/operators/bytes", rows);
    const std::vector<std::int64_t> low_precision = file_.int64s("/operators/wide", rows);
    const std::vector<std::string> status = file_.enum_names("/operators/status", rows);
    const std::vector<std::vector<NodeTime>> times = on_nodes("/operators", signature.size(), nodes);
    std::map<std::string, OperatorSample> operators;
    for (std::size_t i = 0; i < signature.size(); ++i) {
      const auto known = std::find(kStatusNames.begin(), kStatusNames.end(), status[i]);
      if (known == kStatusNames.end())
        refuse(fmt::format("/operators/status of row {} is '{}'", i, status[i]));
      const OperatorSample sample{time("/operators/median_s", i, median[i]),
                                  time("/operators/spread_s", i, spread[i]),
                                  time("/operators/sample_spread_s", i, sample_spread[i]),
                                  work("/operators/flops", i, flops[i]),
                                  work("/operators/bytes", i, bytes[i]),
                                  low_precision[i] != 0,
                                  static_cast<SampleStatus>(known - kStatusNames.begin()),
                                  times[i]};
      if (!operators.emplace(signature[i], sample).second)
        refuse(fmt::format("'{}' appears twice", signature[i]));
    }
    return operators;
  }

  std::vector<CollectiveSample> collectives(std::size_t nodes_measured) const {
    const std::vector<std::string> kind = file_.enum_names("/collectives/kind");
    const Shape rows{static_cast<std::int64_t>(kind.size())};
    const std::vector<std::int64_t> nodes = file_.int64s("/collectives/nodes", rows),
                                    per_node = file_.int64s("/collectives/per_node", rows),
                                    bytes = file_.int64s("/collectives/bytes", rows);
    const std::vector<double> median = file_.doubles("/collectives/median_s", rows),
                              spread = file_.doubles("/collectives/spread_s", rows),
                              sample_spread = file_.doubles("/collectives/sample_spread_s", rows);
    const std::vector<std::vector<NodeTime>> times = on_nodes("/collectives", kind.size(), nodes_measured);
    std::vector<CollectiveSample> samples;
    for (std::size_t i = 0; i < kind.size(); ++i) {
      const auto known = std::find_if(kKinds.begin(), kKinds.end(),
                                      [&](CollectiveKind k) { return collective_name(k) == kind[i]; });
      if (known == kKinds.end()) refuse(fmt::format("/collectives/kind of row {} is '{}'", i, kind[i]));
      if (bytes[i] < 0) refuse(fmt::format("/collectives/bytes of row {} is {}", i, bytes[i]));
      samples.push_back({*known,
                         {count("/collectives/nodes", i, nodes[i], kNodeRange),
                          count("/collectives/per_node", i, per_node[i], kDevicesPerNodeRange)},
                         bytes[i],
                         time("/collectives/median_s", i, median[i]),
                         time("/collectives/spread_s", i, spread[i]),
                         time("/collectives/sample_spread_s", i, sample_spread[i]),
                         times[i]});
    }
    std::sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.key() < b.key(); });
    const auto twice = std::adjacent_find(samples.begin(), samples.end(),
                                          [](const auto& a, const auto& b) { return a.key() == b.key(); });
    if (twice != samples.end())
      refuse(fmt::format("{} of {} bytes by {} x {} devices appears twice", collective_name(twice->kind),
                         twice->bytes, twice->group.nodes, twice->group.per_node));
    return samples;
  }

  std::vector<ReferenceSample> reference() const {
    const std::vector<std::string> signature = file_.strings("/reference/signature");
    const Shape rows{static_cast<std::int64_t>(signature.size())};
    const std::vector<std::int64_t> run = file_.int64s("/reference/run", rows);
    const std::vector<double> at = file_.doubles("/reference/at_s", rows),
                              median = file_.doubles("/reference/median_s", rows),
                              spread = file_.doubles("/reference/spread_s", rows);
    std::vector<ReferenceSample> samples;
    for (std::size_t i = 0; i < signature.size(); ++i)
      samples.push_back({signature[i], count("/reference/run", i, run[i], between(0, 1 << 30)),
                         number("/reference/at_s", i, at[i], between(0, kMostNumber)),
                         time("/reference/median_s", i, median[i]),
                         time("/reference/spread_s", i, spread[i])});
    return samples;
  }

  std::vector<Correction> corrections() const {
    const std::vector<std::string> run = file_.strings("/calibration/run");
    const Shape rows{static_cast<std::int64_t>(run.size())};
    const std::vector<std::string> kind = file_.strings("/calibration/kind", rows);
    const std::vector<double> factor = file_.doubles("/calibration/factor", rows),
                              added = file_.doubles("/calibration/added_s", rows);
    std::vector<Correction> all;
    for (std::size_t i = 0; i < run.size(); ++i)
      all.push_back({run[i], kind[i], number("/calibration/factor", i, factor[i], more_than(0)),
                     time("/calibration/added_s", i, added[i])});
    return all;
  }

  std::filesystem::path path_;
  H5Reader file_;
};

}  // namespace

Profile read_profile(const std::filesystem::path& path) { return ProfileReader(path).read(); }

void write_profile(const std::filesystem::path& path, const Profile& profile, const Provenance& provenance) {
  H5Writer file(path, kFormat, kVersion);
  write_cluster(file, profile.cluster);
  write_nodes(file, profile.nodes);
  write_operators(file, profile.operators, profile.nodes.size());
  write_collectives(file, profile.collectives, profile.nodes.size());
  write_reference(file, profile.reference);
  write_noise(file, noise_of(profile));
  if (!profile.corrections.empty()) write_corrections(file, profile.corrections);
  file.provenance(provenance);
  file.publish();
}

}  // namespace alpa
