#include "libalpa/planner/search/pipeline_bound.h"

#include <algorithm>
#include <array>
#include <span>

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

bool is_below(const Floor& a, const Floor& b) {
  return a.runs_s <= b.runs_s && a.steps_s <= b.steps_s && a.turn_s <= b.turn_s;
}

Floor least_of(const Floor& a, const Floor& b) {
  return {std::min(a.runs_s, b.runs_s), std::min(a.steps_s, b.steps_s), std::min(a.turn_s, b.turn_s)};
}

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
  const double own_s = form.whole_backwards
                           ? others * stage.micro_batch_s + turn_s +
                                 waits_s(form, left, stage, stage.micro_batch_s, after.turn_s)
                           : others * turn_s + turn_s;
  floor.runs_s = std::max(own_s, turn_s + after.runs_s);
  // The longer its micro-batches take, the less it waits; but they take no more than all of its step.
  const double longest = stage.step_s / form.micro_batches;
  floor.steps_s = std::max({stage.step_s + waits_s(form, left, stage, longest, after.turn_s),
                            stage.forward_s + after.steps_s, floor.runs_s + stage.update_s});
  return floor;
}

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

/// Of pipelines that end alike, those that none is below in all; of very many some stand for two.
class LeastPipelineTable {
 public:
  LeastPipelineTable(const FloorChoices& choices, const PipelineForm& form,
                     const std::function<bool()>& stops)
      : choices_(choices) {
    const auto before = [&](int left, int first, int end, std::size_t s) {
      return [=, &form, this](int devices, const Entry& after, Entry& with) {
        const int size = choices_.sizes()[s];
        for (const FloorChoices::Way& way :
             choices_.ways(first, end, s, choices_.places().sides(size, devices)))
          if (way.most_in_flight >= form.in_flight[left])
            for (int rest = 0; rest < after.count; ++rest)
              with.add({with_before(form, left, way.floor, after.pipelines[rest].floor), &way.floor, end,
                        size, rest});
      };
    };
    Entry nothing;
    nothing.add({});
    table_.fill(BoundedStages(choices, form), nothing, stops, before);
  }

  /// No stages: there is none.
  LeastPipeline of(int count) const {
    LeastPipeline found;
    int first = 0, devices = choices_.devices();
    const Entry* entry = table_.at(count, first, devices);
    if (!entry || entry->count == 0) return found;
    const Pipeline* pipeline =
        &*std::ranges::min_element(entry->all(), {}, [](const Pipeline& each) { return each.floor.steps_s; });
    found.seconds = pipeline->floor.steps_s;
    for (int left = count; left > 0; --left) {
      found.stages.push_back({pipeline->end_layer, pipeline->devices, *pipeline->stage});
      first = pipeline->end_layer;
      devices -= pipeline->devices;
      pipeline = &table_.at(left - 1, first, devices)->pipelines[pipeline->rest];
    }
    return found;
  }

 private:
  struct Pipeline {
    Floor floor = {};
    const StageFloor* stage = nullptr;  ///< the first one
    int end_layer = 0, devices = 0;     ///< its own
    int rest = 0;                       ///< which pipeline behind it
  };

  struct Entry {
    static constexpr int kMost = 8;
    std::array<Pipeline, kMost + 1> pipelines;  ///< ascending by runs_s
    int count = 0;

    std::span<const Pipeline> all() const { return std::span(pipelines).first(count); }

    void add(const Pipeline& added) {
      for (int i = 0; i < count; ++i)
        if (is_below(pipelines[i].floor, added.floor)) return;
      int kept = 0;
      for (int i = 0; i < count; ++i)
        if (!is_below(added.floor, pipelines[i].floor)) pipelines[kept++] = pipelines[i];
      int at = kept++;
      for (; at > 0 && pipelines[at - 1].floor.runs_s > added.floor.runs_s; --at)
        pipelines[at] = pipelines[at - 1];
      pipelines[at] = added;
      count = kept;
      if (count > kMost) merge();
    }

    /// The two next to each other that lose the least: what both take at least.
    void merge() {
      const auto lost = [&](int i) {
        const Floor &a = pipelines[i].floor, &b = pipelines[i + 1].floor, both = least_of(a, b);
        return a.runs_s + b.runs_s - 2 * both.runs_s + a.steps_s + b.steps_s - 2 * both.steps_s + a.turn_s +
               b.turn_s - 2 * both.turn_s;
      };
      int least = 0;
      for (int i = 1; i + 1 < count; ++i)
        if (lost(i) < lost(least)) least = i;
      Pipeline &one = pipelines[least], &other = pipelines[least + 1];
      const Floor both = least_of(one.floor, other.floor);
      if (other.floor.steps_s < one.floor.steps_s) one = other;
      one.floor = both;
      std::move(pipelines.begin() + least + 2, pipelines.begin() + count, pipelines.begin() + least + 1);
      --count;
    }
  };

  const FloorChoices& choices_;
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
  return floor.steps_s;
}

void FloorChoices::offer(int first, int end, int size, const StageSides& sides, Way way) {
  const auto at = static_cast<std::size_t>(std::ranges::find(sizes_, size) - sizes_.begin());
  ways_.at(first, end, at)[sides].push_back(way);
}

std::vector<LeastPipeline> least_pipelines(const FloorChoices& choices, const PipelineForm& form,
                                           int least_stages, const std::function<bool()>& stops) {
  const LeastPipelineTable least(choices, form, stops);
  std::vector<LeastPipeline> found;
  const int most_stages = static_cast<int>(form.in_flight.size()) - 1;
  for (int count = std::max(1, least_stages); count <= most_stages && !(stops && stops()); ++count)
    if (LeastPipeline pipeline = least.of(count); !pipeline.stages.empty())
      found.push_back(std::move(pipeline));
  return found;
}

}  // namespace alpa
