#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/cluster/cluster_columns.h"
#include "libalpa/h5/file.h"
#include "libalpa/plan/plan_columns.h"
#include "libalpa/plan/plan_file.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

class PlanReader {
 public:
  explicit PlanReader(const std::filesystem::path& path)
      : path_(path), file_(path, kPlanFormat, kPlanVersion) {
    if (const std::string version = file_.format_version(); !version.starts_with("5."))
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
    plan.overlap = find_overlap(file_.text_attribute("/stages", "overlap"));
    if (file_.has_attribute("/stages", "updates"))  // plans of earlier releases say nothing of it
      plan.updates = find_update_order(file_.text_attribute("/stages", "updates"));
    if (file_.has_attribute("/stages", "staleness"))  // those whose devices keep step have none
      plan.staleness = small("/stages/staleness", file_.int64_attribute("/stages", "staleness"));
    plan.method = file_.text_attribute("/stages", "method");
    plan.program_fingerprint = file_.text_attribute("/stages", "program_fingerprint");
    plan.profile_fingerprint = file_.text_attribute("/cluster", "profile_fingerprint");
    if (file_.has_attribute("/cluster", "extrapolated_from"))
      plan.extrapolated_from = file_.text_attribute("/cluster", "extrapolated_from");
    plan.cluster = read_cluster(file_);
    read_meshes(plan);
    read_stages(plan);
    read_layouts(plan);
    read_sync(plan);
    read_moves(plan);
    read_prediction(plan.prediction, std::ssize(plan.meshes));
    read_transfer_predictions(plan.prediction, {std::ssize(plan.transfers)});
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
               shape = file_.int64s("/meshes/shape", {count, kAxisColumns});
    for (std::size_t m = 0; m < first.size(); ++m) {
      DeviceMesh mesh{DeviceIndex(small("/meshes/first_device", first[m])), {}};
      for (std::size_t axis = 0; axis < kAxisColumns; ++axis) {
        const int extent = small("/meshes/shape", shape[m * kAxisColumns + axis]);
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
    const std::vector<RecomputeForm> forms = recompute_forms(count);
    for (std::size_t s = 0; s < first.size(); ++s) {
      if (mesh[s] < 0 || mesh[s] >= std::ssize(plan.meshes))
        refuse(fmt::format("/stages/mesh, row {}: {}, expected a row of /meshes, which has {}", s, mesh[s],
                           plan.meshes.size()));
      plan.stages.push_back({small("/stages/first_layer", first[s]), small("/stages/end_layer", end[s]),
                             MeshIndex(mesh[s]), small("/stages/recomputed_layers", recomputed_layers[s]),
                             forms[s]});
    }
  }

  void read_sync(Plan& plan) const {
    if (!file_.has("/sync")) return;  // in plans of earlier releases every sum is by itself
    const std::vector<std::int64_t> value = file_.int64s("/sync/value");
    const auto bucket = file_.int64s("/sync/bucket", {std::ssize(value)});
    const auto turn = file_.has("/sync/turn") ? file_.int64s("/sync/turn", {std::ssize(value)})
                                              : std::vector<std::int64_t>(value.size());
    const auto parts = file_.has("/sync/parts") ? file_.int64s("/sync/parts", {std::ssize(value)})
                                                : std::vector<std::int64_t>(value.size(), 1);
    std::map<std::int64_t, std::vector<OwnedRows>> owners = read_owners();
    for (std::size_t row = 0; row < value.size(); ++row) {
      GradientSync sync{ValueIndex(small("/sync/value", value[row])),
                        bucket[row] == -1 ? -1 : small("/sync/bucket", bucket[row]),
                        small("/sync/turn", turn[row]),
                        {},
                        small("/sync/parts", parts[row])};
      if (auto found = owners.extract(value[row])) sync.owners = std::move(found.mapped());
      if (!sync.is_by_itself_when_ready()) plan.sync.push_back(std::move(sync));
    }
    for (auto& [sum, parts] : owners)  // of those that the update makes of several
      plan.sync.push_back({ValueIndex(small("/sync/owners/value", sum)), -1, 0, std::move(parts)});
    std::ranges::sort(plan.sync, {}, &GradientSync::sum);
  }

  /// By the sum of gradients.
  std::map<std::int64_t, std::vector<OwnedRows>> read_owners() const {
    std::map<std::int64_t, std::vector<OwnedRows>> owners;
    if (!file_.has("/sync/owners")) return owners;
    const std::vector<std::int64_t> value = file_.int64s("/sync/owners/value");
    const auto rows = file_.int64s("/sync/owners/rows", {std::ssize(value)});
    const auto owner = file_.int64s("/sync/owners/owner", {std::ssize(value)});
    for (std::size_t row = 0; row < value.size(); ++row)
      owners[value[row]].push_back({rows[row], small("/sync/owners/owner", owner[row])});
    return owners;
  }

  void read_moves(Plan& plan) const {
    if (!file_.has("/host")) return;  // in plans of earlier releases nothing rests there
    for (const std::int64_t value : file_.int64s("/host/value"))
      plan.on_host.push_back(ValueIndex(small("/host/value", value)));
    if (!std::ranges::is_sorted(plan.on_host)) refuse("/host/value is not sorted");
  }

  std::vector<RecomputeForm> recompute_forms(std::int64_t rows) const {
    const std::string column = "/stages/recompute_form";
    std::vector<RecomputeForm> forms(static_cast<std::size_t>(rows), RecomputeForm::full);
    const std::vector<std::string> words = file_.strings(column, {rows});
    for (std::size_t row = 0; row < words.size(); ++row) {
      const auto at = std::ranges::find(kRecomputeForms, words[row]);
      if (at == kRecomputeForms.end())
        refuse(fmt::format("{}, row {}: '{}', expected {}", column, row, words[row],
                           fmt::join(kRecomputeForms, " or ")));
      forms[row] = static_cast<RecomputeForm>(at - kRecomputeForms.begin());
    }
    return forms;
  }

  std::vector<SegmentLayouts> segment_layouts(const std::string& group, const Shape& rows) const {
    const auto forward = file_.strings(group + "/forward_layout", rows),
               backward = file_.strings(group + "/backward_layout", rows);
    std::vector<SegmentLayouts> all;
    for (std::size_t i = 0; i < forward.size(); ++i)
      all.push_back({parse_spec(forward[i]), parse_spec(backward[i])});
    return all;
  }

  /// How what crosses gets there.
  void read_ways(Plan& plan, const Shape& rows) const {
    const auto strategy = file_.strings("/transfers/strategy", rows);
    const auto chunks = file_.int64s("/transfers/chunks", rows);
    for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
      const TransferStrategy found = find_transfer_strategy(strategy[i]);
      const int most = found == TransferStrategy::broadcast ? kMostTransferChunks : 1;
      if (chunks[i] < 1 || chunks[i] > most)
        refuse(
            fmt::format("/transfers/chunks has {} of a {}, expected 1 to {}", chunks[i], strategy[i], most));
      plan.transfers[i].way = {found, static_cast<int>(chunks[i])};
    }
  }

  void read_layouts(Plan& plan) const {
    const Shape nodes = file_.extent("/nodes/strategy");
    if (nodes.size() != 2 || nodes[1] != kAxisColumns)
      refuse(fmt::format("/nodes/strategy has extent {}, expected Nx{}", shape_text(nodes), kAxisColumns));
    const std::vector<std::int64_t> strategy = file_.int64s("/nodes/strategy");
    for (std::size_t n = 0; n < static_cast<std::size_t>(nodes[0]); ++n) {
      plan.node_strategy.push_back({});
      for (std::size_t axis = 0; axis < kAxisColumns; ++axis)
        if (const std::int64_t factor = strategy[n * kAxisColumns + axis]; factor != kNoAxis)
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
    read_ways(plan, rows);
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
    prediction.step_error_s = second("step_error_s");
    prediction.estimate_s = second("estimate_s");
    prediction.lower_bound_s = second("lower_bound_s");
    prediction.bound_covers = file_.text_attribute("/prediction", "bound_covers");
    prediction.hit_time_limit =
        flag("/prediction/hit_time_limit", 0, file_.int64_attribute("/prediction", "hit_time_limit"));
    prediction.estimated_operators =
        small("/prediction/estimated_operators", file_.int64_attribute("/prediction", "estimated_operators"));
    if (file_.has_attribute("/prediction", "estimated_share"))  // of measured costs
      prediction.estimated_share = second("estimated_share");
    if (prediction.estimated_share > 1)
      refuse(fmt::format("/prediction/estimated_share is {}, expected no more than 1",
                         *prediction.estimated_share));
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
          const std::string column = std::string("/prediction/memory/") + name;
          const bool is_of_before = name == std::string(kHostArena) && !file_.has(column);
          bytes[name] = is_of_before ? std::vector<std::int64_t>(static_cast<std::size_t>(meshes_of_plan))
                                     : counts(column, meshes);
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
    const auto schedule = file_.strings("/candidates/schedule", rows);
    for (std::size_t i = 0; i < method.size(); ++i) prediction.candidates[i].schedule = schedule[i];
    visit_time(names, [&](const char* name, double) {
      times[name] = seconds(std::string("/candidates/busiest_mesh/") + name, rows);
    });
    for (std::size_t i = 0; i < method.size(); ++i)
      visit_time(prediction.candidates[i].busiest, [&](const char* name, double& v) { v = times[name][i]; });
    if (file_.has("/constraints")) read_constraints(prediction);
  }

  void read_transfer_predictions(Prediction& prediction, const Shape& rows) const {
    const auto time = seconds("/prediction/transfers/time", rows);
    const auto sent = counts("/prediction/transfers/sent", rows),
               between_nodes = counts("/prediction/transfers/sent_between_nodes", rows);
    for (std::size_t i = 0; i < time.size(); ++i)
      prediction.transfers.push_back({time[i], sent[i], between_nodes[i]});
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

Plan read_plan(const std::filesystem::path& path) {
  return in_step(fmt::format("reading plan '{}'", path.string()), [&] { return PlanReader(path).read(); });
}

}  // namespace alpa
