#include "libalpa/planner/search/constraints_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "libalpa/base/limits.h"
#include "libalpa/base/names.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/planner/planner_options.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

class ConstraintsReader {
 public:
  explicit ConstraintsReader(TomlDocument document)
      : document_(std::move(document)),
        // By its name alone: where the file lies makes no difference to the plan.
        file_(printable(std::filesystem::path(document_.file_name()).filename().string(), "")) {}

  PlanConstraints read() {
    const TomlTable root = document_.root();
    numbers(root);
    words(root);
    options(root);
    for (const TomlTable& table : root.tables("tensor")) tensor(table);
    for (const TomlTable& table : root.tables("gradient")) gradient(table);
    for (const TomlTable& table : root.tables("boundary")) boundary(table);
    for (const TomlTable& table : root.tables("together")) together(table);
    for (const TomlTable& table : root.tables("apart")) apart(table);
    if (read_.empty()) root.fault("expected at least one constraint");
    document_.finish();
    std::ranges::stable_sort(read_, {}, &Read::line);
    PlanConstraints constraints;
    for (Read& each : read_)
      constraints.all.push_back({std::move(each.demand), fmt::format("{}:{}", file_, each.line)});
    return constraints;
  }

 private:
  struct Read {
    std::int64_t line = 0;
    Demand demand;
  };

  void add(const TomlValue& given, Demand demand) { add(given.location(), std::move(demand)); }
  void add(TomlLocation at, Demand demand) { read_.push_back({at.line, std::move(demand)}); }

  void numbers(const TomlTable& root) {
    const auto number = [](const TomlValue& given, Range range) {
      return static_cast<int>(given.integer(range));
    };
    if (const TomlValue given = root.value("most_tensor_parallel"); given.exists())
      add(given, MostTensorParallel{number(given, between(1, kMostDevices))});
    if (const TomlValue given = root.value("most_zero"); given.exists())
      add(given, MostZero{number(given, between(0, 3))});
    const TomlValue exactly = root.value("stages"), at_most = root.value("most_stages");
    if (exactly.exists() && at_most.exists())
      at_most.fault("'most_stages' together with 'stages', expected one");
    if (exactly.exists()) {
      const int stages = number(exactly, between(1, kMostLayers));
      add(exactly, StageCount{stages, stages});
    } else if (at_most.exists()) {
      add(at_most, StageCount{1, number(at_most, between(1, kMostLayers))});
    }
    if (const TomlValue given = root.value("micro_batches"); given.exists()) {
      MicroBatchCounts counts;
      for (const TomlValue& item : given.items())
        counts.allowed.push_back(number(item, between(1, kMostMicroBatches)));
      std::ranges::sort(counts.allowed);
      counts.allowed.erase(std::unique(counts.allowed.begin(), counts.allowed.end()), counts.allowed.end());
      if (counts.allowed.empty()) given.fault("'micro_batches': expected a list of one number or more");
      add(given, counts);
    }
  }

  void words(const TomlTable& root) {
    if (const TomlValue given = root.value("recompute"); given.exists()) {
      constexpr std::array<std::string_view, 3> choices{"never", "always", "selective"};
      constexpr std::array<std::optional<RecomputeForm>, 3> forms{std::nullopt, RecomputeForm::full,
                                                                  RecomputeForm::selective};
      add(given, Recomputation{forms[given.word(choices)]});
    }
    if (const TomlValue given = root.value("schedule"); given.exists()) {
      std::vector<std::string_view> names;
      for (const PipelineSchedule& schedule : schedules()) names.push_back(schedule.name);
      add(given, ScheduleOf{std::string(names[given.word(names)])});
    }
  }

  void options(const TomlTable& root) {
    for (const SyncOption& option : sync_options()) {
      const TomlValue given = root.value(option.key);
      if (!given.exists()) continue;
      std::vector<std::string_view> names;
      for (const Word<std::string>& word : option.choices) names.push_back(word.name);
      add(given, OptionWord{option.name, option.choices[given.word(names)].value});
    }
  }

  void gradient(const TomlTable& table) {
    GradientWay gradient{table.string("name")};
    const TomlValue way = table.value("way", "how its gradient is synchronised");
    std::vector<std::string_view> names;
    const auto words = sync_way_words().subspan(1);  // but that of a plan that is there
    for (const Word<SyncWay>& word : words) names.push_back(word.name);
    if (way.exists()) gradient.way = words[way.word(names)].value;
    add(table.location(), std::move(gradient));
  }

  void tensor(const TomlTable& table) {
    TensorSplit tensor{table.string("name"), kWholeTensor};
    const TomlValue split = table.value("split"), whole = table.value("whole");
    if (split.exists() == whole.exists())
      table.fault("expected either 'split = DIMENSION' or 'whole = true'");
    if (split.exists()) tensor.dimension = static_cast<int>(split.integer(between(0, 63)));
    if (whole.exists() && !whole.boolean()) whole.fault("'whole': expected true; or 'split = DIMENSION'");
    add(table.location(), std::move(tensor));
  }

  void boundary(const TomlTable& table) {
    const TomlValue after = table.value("after"), before = table.value("before");
    if (after.exists() == before.exists()) table.fault("expected either 'after = LAYER' or 'before = LAYER'");
    add(table.location(), StageBoundary{after.exists() ? after.string() : before.string(), after.exists()});
  }

  /// "expected two layers"
  std::vector<TomlValue> pair(const TomlTable& table, const char* key, const char* expected) {
    const TomlValue given = table.value(key, expected);
    const std::vector<TomlValue> items = given.exists() ? given.items() : std::vector<TomlValue>{};
    if (items.size() == 2) return items;
    if (given.exists()) given.fault(fmt::format("'{}': expected {}", key, expected));
    return {};
  }

  void together(const TomlTable& table) {
    const std::vector<TomlValue> layers = pair(table, "layers", "the first and the last layer");
    if (!layers.empty()) add(table.location(), LayersTogether{layers[0].string(), layers[1].string()});
  }

  void apart(const TomlTable& table) {
    const std::vector<TomlValue> devices = pair(table, "devices", "two devices");
    if (devices.empty()) return;
    const auto [one, other] =
        std::minmax({static_cast<int>(devices[0].integer(between(0, kMostDevices - 1))),
                     static_cast<int>(devices[1].integer(between(0, kMostDevices - 1)))});
    if (one == other) table.fault("expected two devices, found one twice");
    add(table.location(), DevicesApart{one, other});
  }

  TomlDocument document_;
  std::string file_;
  std::vector<Read> read_;
};

}  // namespace

PlanConstraints read_constraints(const std::filesystem::path& path) {
  return ConstraintsReader(read_toml(path)).read();
}
PlanConstraints parse_constraints(std::string_view text, const std::string& file_name) {
  return ConstraintsReader(TomlDocument::parse(text, file_name)).read();
}

}  // namespace alpa
