#include "libalpa/plan/plan_file.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/cluster/cluster_columns.h"
#include "libalpa/h5/file.h"
#include "libalpa/plan/plan_columns.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

constexpr std::int64_t kAxes = 4;  // columns of a mesh or strategy; unused ones are 0 or kNoAxis
constexpr std::int64_t kNoAxis = -9;

void write_stages(H5Writer& file, const Plan& plan) {
  std::vector<std::int64_t> first_layer, end_layer, mesh, recomputed_layers;
  for (const StagePlan& stage : plan.stages) {
    first_layer.push_back(stage.first_layer);
    end_layer.push_back(stage.end_layer);
    mesh.push_back(stage.mesh);
    recomputed_layers.push_back(stage.recomputed_layers);
  }
  file.column("/stages/first_layer", first_layer, "1");
  file.column("/stages/end_layer", end_layer, "1");
  file.column("/stages/mesh", mesh, "1");
  file.column("/stages/recomputed_layers", recomputed_layers, "1");
}

void write_meshes(H5Writer& file, const Plan& plan) {
  std::vector<std::int64_t> first_device, devices, shape;
  for (const DeviceMesh& mesh : plan.meshes) {
    first_device.push_back(mesh.first_device);
    devices.push_back(device_count(mesh.shape));
    for (std::size_t axis = 0; axis < kAxes; ++axis)
      shape.push_back(axis < mesh.shape.size() ? mesh.shape[axis] : 0);
  }
  file.column("/meshes/first_device", first_device, "1");
  file.column("/meshes/devices", devices, "1");
  file.array("/meshes/shape", shape, {static_cast<std::int64_t>(plan.meshes.size()), kAxes}, "1");
}

void write_segment_layouts(H5Writer& file, const std::string& group, const std::vector<SegmentLayouts>& all) {
  std::vector<std::string> forward, backward;
  for (const SegmentLayouts& layouts : all) {
    forward.push_back(spec_text(layouts.forward));
    backward.push_back(spec_text(layouts.backward));
  }
  file.column(group + "/forward_layout", forward);
  file.column(group + "/backward_layout", backward);
}

void write_nodes(H5Writer& file, const Plan& plan, const Graph& graph) {
  std::vector<std::string> layouts;
  std::vector<std::int64_t> strategy;
  for (const Strategy& factors : plan.node_strategy)
    for (std::size_t axis = 0; axis < kAxes; ++axis)
      strategy.push_back(axis < factors.size() ? factors[axis] : kNoAxis);
  for (const ShardingSpec& layout : plan.value_layout) layouts.push_back(spec_text(layout));
  write_segment_layouts(file, "/values", plan.segment_layouts.items());
  for (const DerivedColumn& column : derived_columns(plan, graph)) file.column(column.path, column.rows);
  file.scale("/nodes/name");
  file.array("/nodes/strategy", strategy, {static_cast<std::int64_t>(graph.nodes.size()), kAxes}, "1");
  file.attach_scale("/nodes/strategy", 0, "/nodes/name");
  file.column("/values/layout", layouts);
}

/// Where there are some.
void write_constraints(H5Writer& file, const Prediction& prediction) {
  if (prediction.constraints.empty()) return;
  std::vector<std::string> text, where;
  std::vector<double> step_without_s;
  for (const ConstraintPrice& constraint : prediction.constraints) {
    text.push_back(constraint.text);
    where.push_back(constraint.where);
    step_without_s.push_back(constraint.step_without_s);
  }
  file.column("/constraints/text", text);
  file.column("/constraints/where", where);
  file.column("/constraints/step_without", step_without_s, "s");
  file.attribute("/constraints", "unconstrained_s", prediction.unconstrained_s);
}

void write_prediction(H5Writer& file, const Prediction& prediction) {
  file.group("/prediction");
  file.attribute("/prediction", "step_s", prediction.step_s);
  file.attribute("/prediction", "step_error_s", prediction.step_error_s);
  file.attribute("/prediction", "estimate_s", prediction.estimate_s);
  file.attribute("/prediction", "lower_bound_s", prediction.lower_bound_s);
  file.attribute("/prediction", "bound_covers", prediction.bound_covers);
  file.attribute("/prediction", "hit_time_limit", std::int64_t{prediction.hit_time_limit});
  file.attribute("/prediction", "estimated_operators", prediction.estimated_operators);
  std::map<std::string, std::vector<double>> seconds;
  std::map<std::string, std::vector<std::int64_t>> bytes;
  const MeshPrediction names;
  visit_prediction(
      names, [&](const char* name, double) { seconds[name]; },
      [&](const char* name, std::int64_t) { bytes[name]; });
  for (const MeshPrediction& mesh : prediction.meshes)
    visit_prediction(
        mesh, [&](const char* name, double s) { seconds[name].push_back(s); },
        [&](const char* name, std::int64_t b) { bytes[name].push_back(b); });
  for (const auto& [name, column] : seconds) file.column("/prediction/time/" + name, column, "s");
  for (const auto& [name, column] : bytes) file.column("/prediction/memory/" + name, column, "byte");
  std::vector<std::int64_t> in_flight;
  for (const MeshPrediction& mesh : prediction.meshes) in_flight.push_back(mesh.in_flight);
  file.column("/prediction/in_flight", in_flight, "1");
  std::vector<std::string> method, verdict, schedule;
  std::map<std::string, std::vector<double>> busiest;
  visit_time(names, [&](const char* name, double) { busiest[name]; });
  std::vector<double> step_s;
  std::vector<std::int64_t> memory;
  for (const Candidate& candidate : prediction.candidates) {
    method.push_back(candidate.method);
    verdict.push_back(candidate.verdict);
    schedule.push_back(candidate.schedule);
    step_s.push_back(candidate.step_s);
    memory.push_back(candidate.memory_bytes);
    visit_time(candidate.busiest, [&](const char* name, double s) { busiest[name].push_back(s); });
  }
  file.column("/candidates/method", method);
  file.column("/candidates/step_s", step_s, "s");
  file.column("/candidates/memory", memory, "byte");
  file.column("/candidates/verdict", verdict);
  file.column("/candidates/schedule", schedule);
  for (const auto& [name, column] : busiest) file.column("/candidates/busiest_mesh/" + name, column, "s");
  write_constraints(file, prediction);
}

class PlanReader {
 public:
  explicit PlanReader(const std::filesystem::path& path)
      : path_(path), file_(path, kPlanFormat, kPlanVersion) {
    if (const std::string version = file_.format_version();
        version.starts_with("1.") || version.starts_with("2.") || version.starts_with("3."))
      throw Error(ErrorKind::input,
                  fmt::format("plan '{}' is of format {}: plans were lowered differently then", path.string(),
                              version),
                  "make it again: " + (file_.has("/provenance")
                                           ? printable(file_.text_attribute("/provenance", "command"), "")
                                           : "alpa-plan"));
  }

  Plan read() {
    Plan plan;
    plan.model_name = file_.text_attribute("/model", "name");
    plan.graph_fingerprint = file_.text_attribute("/model", "graph_fingerprint");
    plan.micro_batch_samples = positive("/model", "micro_batch_samples");
    plan.micro_batches = static_cast<int>(positive("/model", "micro_batches"));
    plan.model_toml = file_.text("/model/toml");
    plan.schedule = find_schedule(file_.text_attribute("/stages", "schedule")).name;
    plan.method = file_.text_attribute("/stages", "method");
    plan.program_fingerprint = file_.text_attribute("/stages", "program_fingerprint");
    plan.profile_fingerprint = file_.text_attribute("/cluster", "profile_fingerprint");
    if (file_.has_attribute("/cluster", "extrapolated_from"))
      plan.extrapolated_from = file_.text_attribute("/cluster", "extrapolated_from");
    plan.cluster = read_cluster(file_);
    read_meshes(plan);
    read_stages(plan);
    read_layouts(plan);
    read_prediction(plan.prediction, std::ssize(plan.meshes));
    return plan;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::input, fmt::format("plan '{}': {}", path_.string(), what),
                "make the plan again with alpa-plan");
  }

  std::int64_t positive(const char* group, const char* name) const {
    const std::int64_t value = file_.int64_attribute(group, name);
    if (value < 1 || value > (1 << 30))
      refuse(fmt::format("{}/{} is {}, expected from 1 to 2^30", group, name, value));
    return value;
  }

  int small(const char* column, std::int64_t value) const {
    if (value < 0 || value > (1 << 24))
      refuse(fmt::format("{} has {}, expected from 0 to 2^24", column, value));
    return static_cast<int>(value);
  }

  bool flag(const std::string& column, std::size_t row, std::int64_t value) const {
    if (value != 0 && value != 1) refuse(fmt::format("{}, row {}: {}, expected 0 or 1", column, row, value));
    return value == 1;
  }

  /// Times and bytes are never negative.
  template <class Number>
  std::vector<Number> amounts(const std::string& column, std::vector<Number> values) const {
    for (std::size_t row = 0; row < values.size(); ++row)
      if (!(values[row] >= 0) || !std::isfinite(static_cast<double>(values[row])))
        refuse(fmt::format("{}, row {}: {}, expected 0 or more", column, row, values[row]));
    return values;
  }
  std::vector<double> seconds(const std::string& column, const Shape& rows) const {
    return amounts(column, file_.doubles(column, rows));
  }
  std::vector<std::int64_t> counts(const std::string& column, const Shape& rows) const {
    return amounts(column, file_.int64s(column, rows));
  }
  double second(const char* name) const {
    return amounts(std::string("/prediction/") + name,
                   std::vector<double>{file_.double_attribute("/prediction", name)})[0];
  }

  void read_meshes(Plan& plan) const {
    const std::vector<std::int64_t> first = file_.int64s("/meshes/first_device");
    const std::int64_t count = static_cast<std::int64_t>(first.size());
    const auto devices = file_.int64s("/meshes/devices", {count}),
               shape = file_.int64s("/meshes/shape", {count, kAxes});
    for (std::size_t m = 0; m < first.size(); ++m) {
      DeviceMesh mesh{DeviceIndex(small("/meshes/first_device", first[m])), {}};
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        const int extent = small("/meshes/shape", shape[m * kAxes + axis]);
        if (extent > 0) mesh.shape.push_back(extent);
      }
      std::int64_t made = 1;
      for (const int extent : mesh.shape) made = small("/meshes/shape", made * extent);
      if (devices[m] != made)
        refuse(fmt::format("/meshes/devices, row {}: {}, expected {}, as /meshes/shape has it", m, devices[m],
                           made));
      plan.meshes.push_back(std::move(mesh));
    }
  }

  void read_stages(Plan& plan) const {
    const std::vector<std::int64_t> first = file_.int64s("/stages/first_layer");
    const std::int64_t count = static_cast<std::int64_t>(first.size());
    const auto end = file_.int64s("/stages/end_layer", {count}), mesh = file_.int64s("/stages/mesh", {count}),
               recomputed_layers = file_.int64s("/stages/recomputed_layers", {count});
    for (std::size_t s = 0; s < first.size(); ++s) {
      if (mesh[s] < 0 || mesh[s] >= std::ssize(plan.meshes))
        refuse(fmt::format("/stages/mesh, row {}: {}, expected a row of /meshes, which has {}", s, mesh[s],
                           plan.meshes.size()));
      plan.stages.push_back({small("/stages/first_layer", first[s]), small("/stages/end_layer", end[s]),
                             MeshIndex(mesh[s]), small("/stages/recomputed_layers", recomputed_layers[s])});
    }
  }

  std::vector<SegmentLayouts> segment_layouts(const std::string& group, const Shape& rows) const {
    const auto forward = file_.strings(group + "/forward_layout", rows),
               backward = file_.strings(group + "/backward_layout", rows);
    std::vector<SegmentLayouts> all;
    for (std::size_t i = 0; i < forward.size(); ++i)
      all.push_back({parse_spec(forward[i]), parse_spec(backward[i])});
    return all;
  }

  void read_layouts(Plan& plan) const {
    const Shape nodes = file_.extent("/nodes/strategy");
    if (nodes.size() != 2 || nodes[1] != kAxes)
      refuse(fmt::format("/nodes/strategy has extent {}, expected Nx{}", shape_text(nodes), kAxes));
    const std::vector<std::int64_t> strategy = file_.int64s("/nodes/strategy");
    for (std::size_t n = 0; n < static_cast<std::size_t>(nodes[0]); ++n) {
      plan.node_strategy.push_back({});
      for (std::size_t axis = 0; axis < kAxes; ++axis)
        if (const std::int64_t factor = strategy[n * kAxes + axis]; factor != kNoAxis)
          plan.node_strategy.back().push_back(factor == kIdleAxis || factor == kPassPartialAxis
                                                  ? static_cast<int>(factor)
                                                  : small("/nodes/strategy", factor));
    }
    for (const std::string& layout : file_.strings("/values/layout"))
      plan.value_layout.push_back(parse_spec(layout));
    plan.segment_layouts =
        Indexed<ValueIndex, SegmentLayouts>(segment_layouts("/values", {std::ssize(plan.value_layout)}));
    const auto value = file_.int64s("/transfers/value");
    const Shape rows{static_cast<std::int64_t>(value.size())};
    const auto mesh = file_.int64s("/transfers/to_mesh", rows);
    const auto layout = file_.strings("/transfers/layout", rows);
    const std::vector<SegmentLayouts> in_segments = segment_layouts("/transfers", rows);
    for (std::size_t i = 0; i < value.size(); ++i)
      plan.transfers.push_back({ValueIndex(small("/transfers/value", value[i])),
                                MeshIndex(small("/transfers/to_mesh", mesh[i])), parse_spec(layout[i]),
                                in_segments[i]});
    const auto input = file_.int64s("/inputs/value");
    const Shape inputs{static_cast<std::int64_t>(input.size())};
    const auto fed = file_.int64s("/inputs/mesh", inputs);
    const std::vector<SegmentLayouts> of_inputs = segment_layouts("/inputs", inputs);
    for (std::size_t i = 0; i < input.size(); ++i)
      plan.inputs.push_back({ValueIndex(small("/inputs/value", input[i])),
                             MeshIndex(small("/inputs/mesh", fed[i])), of_inputs[i]});
  }

  void read_prediction(Prediction& prediction, std::int64_t meshes_of_plan) const {
    prediction.step_s = second("step_s");
    if (file_.has_attribute("/prediction", "step_error_s"))  // not known before 4.1
      prediction.step_error_s = second("step_error_s");
    prediction.estimate_s = second("estimate_s");
    prediction.lower_bound_s = second("lower_bound_s");
    prediction.bound_covers = file_.text_attribute("/prediction", "bound_covers");
    prediction.hit_time_limit =
        flag("/prediction/hit_time_limit", 0, file_.int64_attribute("/prediction", "hit_time_limit"));
    prediction.estimated_operators =
        small("/prediction/estimated_operators", file_.int64_attribute("/prediction", "estimated_operators"));
    const Shape meshes = file_.extent("/prediction/time/compute");
    if (meshes.size() != 1 || meshes[0] != meshes_of_plan)
      refuse(fmt::format("/prediction/time/compute has extent {}, expected {}, as /meshes has rows",
                         shape_text(meshes), meshes_of_plan));
    prediction.meshes.resize(static_cast<std::size_t>(meshes_of_plan));
    std::map<std::string, std::vector<double>> times;
    std::map<std::string, std::vector<std::int64_t>> bytes;
    const MeshPrediction names;
    visit_prediction(
        names,
        [&](const char* name, double) {
          times[name] = seconds(std::string("/prediction/time/") + name, meshes);
        },
        [&](const char* name, std::int64_t) {
          bytes[name] = counts(std::string("/prediction/memory/") + name, meshes);
        });
    for (const MeshIndex m : prediction.meshes.indices())
      visit_prediction(
          prediction.meshes[m], [&](const char* name, double& v) { v = times[name][m]; },
          [&](const char* name, std::int64_t& v) { v = bytes[name][m]; });
    const auto in_flight = counts("/prediction/in_flight", meshes);
    for (const MeshIndex m : prediction.meshes.indices()) prediction.meshes[m].in_flight = in_flight[m];
    const auto method = file_.strings("/candidates/method");
    const Shape rows{static_cast<std::int64_t>(method.size())};
    const auto step_s = seconds("/candidates/step_s", rows);
    const auto memory = counts("/candidates/memory", rows);
    const auto verdict = file_.strings("/candidates/verdict", rows);
    for (std::size_t i = 0; i < method.size(); ++i)
      prediction.candidates.push_back({method[i], step_s[i], memory[i], verdict[i]});
    if (file_.has("/candidates/schedule")) {  // not known before 4.2
      const auto schedule = file_.strings("/candidates/schedule", rows);
      for (std::size_t i = 0; i < method.size(); ++i) prediction.candidates[i].schedule = schedule[i];
    }
    visit_time(names, [&](const char* name, double) {
      times[name] = seconds(std::string("/candidates/busiest_mesh/") + name, rows);
    });
    for (std::size_t i = 0; i < method.size(); ++i)
      visit_time(prediction.candidates[i].busiest, [&](const char* name, double& v) { v = times[name][i]; });
    if (file_.has("/constraints")) read_constraints(prediction);
  }

  void read_constraints(Prediction& prediction) const {
    const auto text = file_.strings("/constraints/text");
    const Shape rows{std::ssize(text)};
    const auto where = file_.strings("/constraints/where", rows);
    const auto step_without_s = seconds("/constraints/step_without", rows);
    for (std::size_t i = 0; i < text.size(); ++i)
      prediction.constraints.push_back({text[i], where[i], step_without_s[i]});
    prediction.unconstrained_s =
        amounts("/constraints/unconstrained_s",
                std::vector<double>{file_.double_attribute("/constraints", "unconstrained_s")})[0];
  }

  std::filesystem::path path_;
  H5Reader file_;
};

}  // namespace

void write_plan(const std::filesystem::path& path, const Plan& plan, const Graph& graph,
                const Provenance& provenance) {
  in_step(fmt::format("writing plan '{}'", path.string()), [&] {
    H5Writer file(path, kPlanFormat, kPlanVersion);
    file.group("/model");
    file.attribute("/model", "name", plan.model_name);
    file.attribute("/model", "graph_fingerprint", plan.graph_fingerprint);
    file.attribute("/model", "micro_batch_samples", plan.micro_batch_samples);
    file.attribute("/model", "micro_batches", plan.micro_batches);
    file.text("/model/toml", plan.model_toml);
    write_cluster(file, plan.cluster);
    file.attribute("/cluster", "profile_fingerprint", plan.profile_fingerprint);
    if (!plan.extrapolated_from.empty())
      file.attribute("/cluster", "extrapolated_from", plan.extrapolated_from);
    write_meshes(file, plan);
    write_stages(file, plan);
    file.attribute("/stages", "schedule", plan.schedule);
    file.attribute("/stages", "method", plan.method);
    file.attribute("/stages", "program_fingerprint", plan.program_fingerprint);
    write_nodes(file, plan, graph);
    std::vector<std::int64_t> value, mesh;
    std::vector<std::string> layout;
    std::vector<SegmentLayouts> in_segments;
    for (const PlannedTransfer& transfer : plan.transfers) {
      in_segments.push_back(transfer.in_segments);
      value.push_back(transfer.value);
      mesh.push_back(transfer.to_mesh);
      layout.push_back(spec_text(transfer.layout));
    }
    file.column("/transfers/value", value, "1");
    file.column("/transfers/to_mesh", mesh, "1");
    file.column("/transfers/layout", layout);
    write_segment_layouts(file, "/transfers", in_segments);
    value.clear(), mesh.clear(), in_segments.clear();
    for (const InputLayouts& input : plan.inputs) {
      value.push_back(input.value);
      mesh.push_back(input.mesh);
      in_segments.push_back(input.in_segments);
    }
    file.column("/inputs/value", value, "1");
    file.column("/inputs/mesh", mesh, "1");
    write_segment_layouts(file, "/inputs", in_segments);
    write_prediction(file, plan.prediction);
    file.provenance(provenance);
    file.publish();
  });
}

Plan read_plan(const std::filesystem::path& path) {
  return in_step(fmt::format("reading plan '{}'", path.string()), [&] { return PlanReader(path).read(); });
}

}  // namespace alpa
