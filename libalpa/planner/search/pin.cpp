#include "libalpa/planner/search/pin.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "libalpa/base/checked.h"
#include "libalpa/base/error.h"
#include "libalpa/base/names.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

constexpr int kMostStagesPerMesh = 64;
constexpr std::array<std::string_view, 8> kRoles{"free", "data",   "tensor",  "sequence",
                                                 "ring", "expert", "factors", "rows"};

/// Ends at `first` and a count of the table's, which a pin may have so many of over all stages.
int end_of(const TomlValue& given, const char* what, int first, std::int64_t count, std::int64_t most) {
  const std::optional<std::int64_t> end = checked_sum(first, count);
  if (end && *end <= most) return static_cast<int>(*end);
  given.fault(fmt::format("the stages up to here have more than {} {}", most, what));
  return first;
}

/// The extents of two devices or more.
MeshShape mesh_of(const TomlValue& given) {
  MeshShape mesh;
  std::optional<std::int64_t> devices = 1;
  if (!given.exists()) return mesh;
  for (const TomlValue& item : given.items()) {
    const std::int64_t extent = item.integer(between(1, kMostDevices));
    devices = checked_product(devices, extent);
    if (extent > 1) mesh.push_back(static_cast<int>(extent));
  }
  if (!devices || *devices > kMostDevices)
    given.fault(fmt::format("'mesh' has more than {} devices", kMostDevices));
  else if (std::ssize(mesh) > kMostMeshAxes)
    given.fault(fmt::format("'mesh' has {} axes of two devices or more, expected at most {}", mesh.size(),
                            kMostMeshAxes));
  else
    return mesh;
  return {};
}

PinnedPlan pin_of(TomlDocument document) {
  PinnedPlan pin;
  // By its name alone: where a pin lies makes no difference to the plan.
  pin.method = std::string(kPinnedMethod) +
               printable(std::filesystem::path(document.file_name()).filename().string(), "");
  const TomlTable root = document.root();
  pin.micro_batches = static_cast<int>(root.integer("micro_batches", 1, between(1, kMostMicroBatches)));
  pin.schedule = root.word("schedule", pin.schedule, schedule_choices());
  pin.overlap = root.word("overlap", pin.overlap, overlap_choices());
  pin.transfers = root.word("transfers", pin.transfers, transfer_choices());
  pin.updates = root.word("updates", pin.updates, update_choices());
  pin.sync = root.word("sync", pin.sync, sync_choices());
  pin.sync_order = root.word("sync_order", pin.sync_order, sync_order_choices());
  pin.owners = root.word("owners", pin.owners, owner_choices());
  pin.offload = root.word("offload", pin.offload, offload_choices());
  pin.stages_per_mesh = static_cast<int>(root.integer("stages_per_mesh", 1, between(1, kMostStagesPerMesh)));
  int layer = 0, devices = 0;
  for (const TomlTable& table : root.tables("stage")) {
    StageRequest stage;
    stage.first_layer = layer;
    const TomlValue layers = table.value("layers", "an integer"), mesh = table.value("mesh");
    layer = end_of(layers, "layers", layer, layers.integer(between(1, kMostLayers)), kMostLayers);
    stage.end_layer = layer;
    stage.mesh = mesh_of(mesh);
    devices = end_of(mesh, "devices", devices, device_count(stage.mesh), kMostDevices * pin.stages_per_mesh);
    const TomlValue axes = table.value("axes");
    if (axes.exists())
      for (const TomlValue& role : axes.items())
        stage.roles.push_back(static_cast<AxisRole>(role.word(kRoles)));
    if (axes.exists() && stage.roles.size() != stage.mesh.size())
      axes.fault("expected one word per mesh axis of two devices or more");
    stage.state_sharding = table.word("state_sharding", StateSharding::free,
                                      {{"free", StateSharding::free},
                                       {"none", StateSharding::none},
                                       {"optimizer", StateSharding::optimizer},
                                       {"gradients", StateSharding::gradients},
                                       {"parameters", StateSharding::parameters}});
    if (const TomlValue old = table.value("spread"); old.exists())
      old.fault("'spread' is called 'state_sharding'");
    const int own_layers = stage.end_layer - stage.first_layer;
    const auto recomputed = static_cast<int>(table.integer("recomputed_layers", 0, between(0, own_layers)));
    stage.recomputed_layers = table.boolean("rematerialize", false) ? own_layers : recomputed;
    if (const TomlValue form = table.value("recompute_form"); form.exists()) {
      stage.recompute_form = static_cast<RecomputeForm>(form.word(kRecomputeForms));
      if (stage.recomputed_layers == 0)
        form.fault("'recompute_form' without 'recomputed_layers' or 'rematerialize = true'");
    }
    pin.stages.push_back(std::move(stage));
    pin.stage_transfers.push_back(table.word("transfers", std::string(), transfer_choices()));
  }
  if (pin.stages.empty()) root.fault("expected at least one [[stage]]");
  if (pin.stages.size() % static_cast<std::size_t>(pin.stages_per_mesh) != 0)
    root.fault(fmt::format("'stages_per_mesh = {}' with {} stages, which is not a multiple of it",
                           pin.stages_per_mesh, pin.stages.size()));
  const auto has_other_mesh = [&](const StageRequest& stage) {
    return stage.mesh != pin.stages.front().mesh;
  };
  if (pin.stages_per_mesh > 1 && std::ranges::any_of(pin.stages, has_other_mesh))
    root.fault("stages that share meshes all have the same 'mesh'");
  document.finish();
  return pin;
}

}  // namespace

int device_count(const PinnedPlan& pin) {
  int devices = 0;
  for (const StageRequest& stage : pin.stages) devices += device_count(stage.mesh);
  return devices / pin.stages_per_mesh;
}

void check_pin(const PinnedPlan& pin, const Graph& graph, int devices) {
  const auto layers = static_cast<int>(graph.layers.size());
  const int used = device_count(pin);
  if (pin.stages.size() > 1 && !may_have(pin.schedule, pin.stages_per_mesh))
    throw Error(ErrorKind::input,
                fmt::format("{}: schedule '{}' with {} on each mesh", pin.method, pin.schedule,
                            count_text(pin.stages_per_mesh, "stage")),
                fmt::format("schedule = \"{}\", or stages_per_mesh = {}",
                            fmt::join(schedule_names(pin.stages_per_mesh), "\" or \""),
                            find_schedule(pin.schedule).shares_meshes() ? 2 : 1));
  if (pin.stages.back().end_layer != layers)
    throw Error(ErrorKind::input,
                fmt::format("{}: its stages have {} layers, the model has {}", pin.method,
                            pin.stages.back().end_layer, layers),
                "stages whose 'layers' add up to those of the model");
  if (used > devices)
    throw Error(ErrorKind::input,
                fmt::format("{}: its stages take {} devices, the cluster has {}", pin.method, used, devices),
                "smaller meshes, or another --cluster");
}

PinnedPlan read_pin(const std::filesystem::path& path) { return pin_of(read_toml(path)); }
PinnedPlan parse_pin(std::string_view text, const std::string& file_name) {
  return pin_of(TomlDocument::parse(text, file_name));
}

}  // namespace alpa
