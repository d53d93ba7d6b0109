#include "libalpa/planner/search/pipeline_bound.h"

#include <algorithm>

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

double turn_of(const PipelineForm& form, const StageFloor& stage) {
  return form.whole_backwards ? stage.turn_s : stage.inputs_turn_s;
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
  const double turn_s = turn_of(form, stage);
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

/// What the stages before some layer take at least until the stage behind them gets its first micro-batch,
/// and with what follows its last backward, in any number of stages.
class LeastBefore {
 public:
  LeastBefore(const FloorChoices& choices, const PipelineForm& form)
      : devices_(choices.devices()), least_(place(choices.layers(), 0) + 1) {
    least_[0] = {0, 0};
    for (int first = 0; first < choices.layers(); ++first)
      for (std::size_t s = 0; s < choices.sizes().size(); ++s)
        for (int end = first + 1; end <= choices.layers(); ++end)
          if (std::ranges::any_of(kEverySides, [&](const StageSides& sides) {
                return !choices.ways(first, end, s, sides).empty();
              }))
            add(choices, form, first, end, s);
  }

  struct Least {
    double forwards_s = infinity, turns_s = infinity;
  };

  /// What follows is on so many devices. Infinite: no stages are before it.
  const Least& of(int layer, int devices) const { return least_[place(layer, devices)]; }

 private:
  std::size_t place(int layer, int devices) const {
    return static_cast<std::size_t>(layer) * (static_cast<std::size_t>(devices_) + 1) +
           static_cast<std::size_t>(devices_ - devices);
  }

  void add(const FloorChoices& choices, const PipelineForm& form, int first, int end, std::size_t s) {
    const int size = choices.sizes()[s];
    BySides<Least> ways;
    for (const StageSides& sides : kEverySides)
      for (const FloorChoices::Way& way : choices.ways(first, end, s, sides)) {
        Least& least = ways[sides];
        least.forwards_s = std::min(least.forwards_s, way.floor.forward_s);
        least.turns_s = std::min(least.turns_s, turn_of(form, way.floor));
      }
    for (int left = devices_; left >= size; --left) {
      const Least& before = of(first, left);
      if (before.forwards_s == infinity) continue;
      const Least& stage = ways[choices.places().sides(size, left)];
      Least& with = least_[place(end, left - size)];
      with.forwards_s = std::min(with.forwards_s, before.forwards_s + stage.forwards_s);
      with.turns_s = std::min(with.turns_s, before.turns_s + stage.turns_s);
    }
  }

  int devices_;
  std::vector<Least> least_;  ///< [layer, devices before it]
};

/// Of pipelines that end alike and may take less than `below_s`, those that none is below in all; of very
/// many some stand for two.
class LeastPipelineTable {
 public:
  LeastPipelineTable(const FloorChoices& choices, const PipelineForm& form, double below_s,
                     const FillOptions& options)
      : choices_(choices) {
    const LeastBefore least_before(choices, form);
    const auto before = [&](int left, int first, int end, std::size_t s) {
      return [=, &form, &least_before, this](int devices, const Entry& after, Entry& with) {
        const int size = choices_.sizes()[s];
        const auto& [forwards_s, turns_s] = least_before.of(first, devices);
        if (forwards_s >= below_s) return;
        for (const FloorChoices::Way& way :
             choices_.ways(first, end, s, choices_.places().sides(size, devices)))
          if (way.most_in_flight >= form.in_flight[left])
            for (int rest = 0; rest < std::ssize(after.pipelines); ++rest) {
              const Floor floor =
                  with_before(form, left, way.floor, after.pipelines[static_cast<std::size_t>(rest)].floor);
              if (forwards_s + floor.steps_s < below_s && turns_s + floor.runs_s < below_s)
                with.add({floor, &way.floor, end, size, rest});
            }
      };
    };
    Entry nothing;
    nothing.add({});
    table_.fill(BoundedStages(choices, form), nothing, options, before);
  }

  /// No stages: there is none.
  LeastPipeline of(int count) const {
    LeastPipeline found;
    int first = 0, devices = choices_.devices();
    const Entry* entry = table_.at(count, first, devices);
    if (!entry || entry->empty()) return found;
    const Pipeline* pipeline = &*std::ranges::min_element(
        entry->pipelines, {}, [](const Pipeline& each) { return each.floor.steps_s; });
    found.seconds = pipeline->floor.steps_s;
    for (int left = count; left > 0; --left) {
      found.stages.push_back({pipeline->end_layer, pipeline->devices, *pipeline->stage});
      first = pipeline->end_layer;
      devices -= pipeline->devices;
      pipeline = &table_.at(left - 1, first, devices)->pipelines[static_cast<std::size_t>(pipeline->rest)];
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
    static constexpr std::size_t kMost = 8;
    std::vector<Pipeline> pipelines;  ///< ascending by runs_s

    bool empty() const { return pipelines.empty(); }
    void add(const Pipeline& added) {
      if (std::ranges::any_of(pipelines,
                              [&](const Pipeline& known) { return is_below(known.floor, added.floor); }))
        return;
      std::erase_if(pipelines, [&](const Pipeline& known) { return is_below(added.floor, known.floor); });
      pipelines.insert(std::ranges::upper_bound(pipelines, added.floor.runs_s, {},
                                                [](const Pipeline& each) { return each.floor.runs_s; }),
                       added);
      if (pipelines.size() > kMost) merge();
    }

    /// The two next to each other that lose the least: what both take at least.
    void merge() {
      const auto lost = [&](std::size_t i) {
        const Floor &a = pipelines[i].floor, &b = pipelines[i + 1].floor, both = least_of(a, b);
        return a.runs_s + b.runs_s - 2 * both.runs_s + a.steps_s + b.steps_s - 2 * both.steps_s + a.turn_s +
               b.turn_s - 2 * both.turn_s;
      };
      std::size_t least = 0;
      for (std::size_t i = 1; i + 1 < pipelines.size(); ++i)
        if (lost(i) < lost(least)) least = i;
      Pipeline &one = pipelines[least], &other = pipelines[least + 1];
      const Floor both = least_of(one.floor, other.floor);
      if (other.floor.steps_s < one.floor.steps_s) one = other;
      one.floor = both;
      pipelines.erase(pipelines.begin() + static_cast<std::ptrdiff_t>(least) + 1);
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
      const std::vector<StageRun> order = schedule.of_stage(stage, stages, micro_batches);
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

std::optional<std::vector<LeastPipeline>> least_pipelines(const FloorChoices& choices,
                                                          const PipelineForm& form, int least_stages,
                                                          double below_s, const FillOptions& options) {
  const LeastPipelineTable least(choices, form, below_s, options);
  if (options.stopped()) return std::nullopt;
  std::vector<LeastPipeline> found;
  const int most_stages = static_cast<int>(form.in_flight.size()) - 1;
  for (int count = std::max(1, least_stages); count <= most_stages; ++count)
    if (LeastPipeline pipeline = least.of(count); !pipeline.stages.empty())
      found.push_back(std::move(pipeline));
  return found;
}

}  // namespace alpa
