#include "tests/planner/planning_targets.h"

#include "libalpa/base/toml_document.h"

namespace alpa {
namespace {

SpeedTargets read_speed(const TomlTable& table) {
  SpeedTargets targets;
  targets.largest_memory_gib = table.number("largest_memory_gib");
  for (const TomlTable& each : table.tables("case"))
    targets.cases.push_back({each.string("model"), each.string("cluster"), each.string("optimizer", ""),
                             each.number("seconds"), each.boolean("refused", false)});
  const TomlTable scaling = table.table("scaling");
  targets.scaling.model = scaling.string("model");
  targets.scaling.cluster = scaling.string("cluster");
  targets.devices = scaling.integers("devices");
  targets.largest_exponent = scaling.number("largest_exponent");
  const TomlTable kept = table.table("kept");
  targets.kept.model = kept.string("model");
  targets.kept.cluster = kept.string("cluster");
  targets.least_gain = kept.number("least_gain");
  return targets;
}

QualityTargets read_quality(const TomlTable& table) {
  QualityTargets targets;
  targets.cluster = table.string("cluster");
  targets.largest_deviation = table.number("largest_deviation");
  targets.most_excuses = table.integer("most_excuses");
  targets.least_gain_over_deepspeed = table.number("least_gain_over_deepspeed");
  targets.most_crossing_ms = table.number("most_crossing_ms");
  targets.largest_gap = table.number("largest_gap");
  for (const TomlTable& family : table.tables("family")) {
    targets.families.push_back(
        {family.string("name"), family.string("blocks", ""), family.strings("systems"), {}});
    for (const TomlTable& row : family.tables("row"))
      targets.families.back().rows.push_back({row.string("model"), static_cast<int>(row.integer("devices")),
                                              row.number("tflops"), row.number("pflop", 0),
                                              row.string("excuse", "")});
  }
  return targets;
}

}  // namespace

PlanningTargets read_planning_targets() {
  TomlDocument document = read_toml(ALPA_SOURCE_DIR "/tests/planner/planning_targets.toml");
  const TomlTable root = document.root();
  PlanningTargets targets{read_speed(root.table("speed")), read_quality(root.table("quality"))};
  document.finish();
  return targets;
}

}  // namespace alpa
