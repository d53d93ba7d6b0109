#include "libalpa/planner/search/pipeline_bound.h"

#include <algorithm>
#include <array>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/pipeline_table.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

/// What the stages from some on take at least, from when the first of them gets its first micro-batch.
struct Floor {
  double runs_s = 0;   ///< until the stage before has all that it gets
  double steps_s = 0;  ///< until all have had their updates
  double turn_s = 0;   ///< one micro-batch through all of them and back
};

constexpr std::array kParts{&Floor::runs_s, &Floor::steps_s, &Floor::turn_s};

/// What a stage waits for those behind it at least, the first time that it may take no further micro-batch,
/// and for its last. Meanwhile it does the others that it holds, at first their forwards, in the end their
/// backwards. How long either takes is not known, but both together. In the end there may be gradients of
/// weights to do as well.
double waits_s(const PipelineForm& form, int left, const StageFloor& stage, double micro_batch_s,
               double behind_s) {
  if (!stage.sends_last) return 0;
  const int held = form.in_flight[left], others = held - 1;
  if (!form.whole_backwards) return std::max(0.0, behind_s - others * (micro_batch_s - stage.backward_s));
  const double both = 2 * behind_s - others * micro_batch_s;
  return std::max(0.0, form.micro_batches > held ? both : both / 2);  // else both times are the same
}

/// With a stage before them: `left` in all.
Floor with_before(const PipelineForm& form, int left, const StageFloor& stage, const Floor& after) {
  Floor floor;
  const double turn_s = form.whole_backwards ? stage.turn_s : stage.inputs_turn_s;
  floor.turn_s = turn_s + after.turn_s;
  const double others = form.micro_batches - 1;
  const double own = form.whole_backwards ? others * stage.micro_batch_s + turn_s +
                                                waits_s(form, left, stage, stage.micro_batch_s, after.turn_s)
                                          : others * turn_s + turn_s;
  floor.runs_s = std::max(own, turn_s + after.runs_s);
  // The longer its micro-batches take, the less it waits; but they take no more than all of its step.
  const double longest = stage.step_s / form.micro_batches;
  floor.steps_s = std::max(stage.step_s + waits_s(form, left, stage, longest, after.turn_s),
                           stage.forward_s + after.steps_s);
  return floor;
}

double seconds_of(const Floor& floor) { return std::max(floor.runs_s, floor.steps_s); }

/// Those stages that there is a way to run, as of PipelineStages.
class BoundedStages {
 public:
  BoundedStages(const FloorChoices& choices, const PipelineForm& form) : choices_(choices), form_(form) {
    for (int first = 0; first < layers(); ++first)
      for (std::size_t s = 0; s < sizes().size(); ++s) {
        int end = layers();
        while (end > first && !allows(0, first, end, s)) --end;
        last_end_.push_back(end);
      }
  }

  int layers() const { return choices_.layers(); }
  int devices() const { return choices_.devices(); }
  int most_stages() const { return static_cast<int>(form_.in_flight.size()) - 1; }
  const std::vector<int>& sizes() const { return choices_.sizes(); }
  int last_end(int first, std::size_t size) const {
    return last_end_[static_cast<std::size_t>(first) * sizes().size() + size];
  }
  bool allows(int left, int first, int end, std::size_t size) const {
    return std::ranges::any_of(kEverySides, [&](const StageSides& sides) {
      return std::ranges::any_of(choices_.ways(first, end, size, sides), [&](const FloorChoices::Way& way) {
        return way.most_in_flight >= form_.in_flight[left];
      });
    });
  }

 private:
  const FloorChoices& choices_;
  const PipelineForm& form_;
  std::vector<int> last_end_;  ///< [first layer, size]
};

/// Each part of the floor is the least by itself, which a pipeline is not above with all of them.
class LeastPipelines {
 public:
  LeastPipelines(const FloorChoices& choices, const PipelineForm& form, const std::function<bool()>& stops)
      : choices_(choices), form_(form) {
    const auto before = [&](int left, int first, int end, std::size_t s) {
      return [=, this](int devices, const Entry& after, Entry& with) {
        if (after.floor.turn_s == infinity) return;
        const int size = choices_.sizes()[s];
        for (const FloorChoices::Way& way :
             choices_.ways(first, end, s, choices_.places().sides(size, devices)))
          if (way.most_in_flight >= form_.in_flight[left])
            take(with_before(form_, left, way.floor, after.floor), {end, size, way.floor.step_s}, with);
      };
    };
    table_.fill(BoundedStages(choices, form), Entry{{}, {}}, stops, before);
  }

  /// No stages: there is none.
  LeastPipeline of(int count) const {
    LeastPipeline found;
    int first = 0, devices = choices_.devices();
    const Entry* whole = table_.at(count, first, devices);
    if (!whole || seconds_of(whole->floor) == infinity) return found;
    found.seconds = seconds_of(whole->floor);
    const std::size_t part = whole->floor.runs_s > whole->floor.steps_s ? 0 : 1;
    for (int left = count; left > 0; --left) {
      found.stages.push_back(table_.at(left, first, devices)->stage[part]);
      first = found.stages.back().end_layer;
      devices -= found.stages.back().devices;
    }
    return found;
  }

 private:
  struct Entry {
    Floor floor{infinity, infinity, infinity};
    std::array<LeastPipeline::Stage, kParts.size()> stage;  ///< [part] that it is the least with
  };

  static void take(const Floor& floor, const LeastPipeline::Stage& stage, Entry& entry) {
    for (std::size_t part = 0; part < kParts.size(); ++part)
      if (floor.*kParts[part] < entry.floor.*kParts[part]) {
        entry.floor.*kParts[part] = floor.*kParts[part];
        entry.stage[part] = stage;
      }
  }

  const FloorChoices& choices_;
  const PipelineForm& form_;
  PipelineTable<Entry> table_;
};

}  // namespace

PipelineForm form_of(const std::string& name, int micro_batches, int most_stages) {
  const PipelineSchedule& schedule = find_schedule(name);
  PipelineForm form{micro_batches, std::vector<int>(static_cast<std::size_t>(most_stages) + 1, 0), true};
  for (int stages = 1; stages <= most_stages; ++stages)
    for (const StageIndex stage : indices_to<StageIndex>(static_cast<std::size_t>(stages))) {
      const std::vector<StageRun> order = schedule.order(stage, stages, micro_batches);
      int& most = form.in_flight[stages - stage];
      most = std::max(most, most_in_flight(order));
      form.whole_backwards = form.whole_backwards && std::ranges::none_of(order, [](const StageRun& run) {
                               return run.kind == SegmentKind::backward_weights;
                             });
    }
  return form;
}

double least_pipeline_s(const std::vector<StageFloor>& stages, const PipelineForm& form) {
  Floor floor;
  for (std::size_t left = 1; left <= stages.size(); ++left)
    floor = with_before(form, static_cast<int>(left), stages[stages.size() - left], floor);
  return seconds_of(floor);
}

void FloorChoices::offer(int first, int end, int size, const StageSides& sides, Way way) {
  const auto at = static_cast<std::size_t>(std::ranges::find(sizes_, size) - sizes_.begin());
  ways_.at(first, end, at)[sides].push_back(way);
}

std::vector<LeastPipeline> least_pipelines(const FloorChoices& choices, const PipelineForm& form,
                                           int least_stages, const std::function<bool()>& stops) {
  const LeastPipelines least(choices, form, stops);
  std::vector<LeastPipeline> found;
  const int most_stages = static_cast<int>(form.in_flight.size()) - 1;
  for (int count = std::max(1, least_stages); count <= most_stages && !(stops && stops()); ++count)
    if (LeastPipeline pipeline = least.of(count); !pipeline.stages.empty())
      found.push_back(std::move(pipeline));
  return found;
}

}  // namespace alpa
