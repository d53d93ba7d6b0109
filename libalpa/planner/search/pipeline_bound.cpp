#include "libalpa/planner/search/pipeline_bound.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "libalpa/base/infinity.h"
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
/// backwards. How long either takes is not known, but both together.
double waits_s(const PipelineForm& form, int left, const StageFloor& stage, double micro_batch_s,
               double behind_s) {
  if (!form.whole_backwards || !stage.sends_last) return 0;
  const int held = form.in_flight[left], others = held - 1;
  const double both = 2 * behind_s - others * micro_batch_s;
  return std::max(0.0, form.micro_batches > held ? both : both / 2);  // else both times are the same
}

/// With a stage before them: `left` in all.
Floor with_before(const PipelineForm& form, int left, const StageFloor& stage, const Floor& after) {
  Floor floor;
  floor.turn_s = stage.turn_s + after.turn_s;
  if (form.whole_backwards) {
    const double own = (form.micro_batches - 1) * stage.micro_batch_s + stage.turn_s;
    floor.runs_s = std::max(own + waits_s(form, left, stage, stage.micro_batch_s, after.turn_s),
                            stage.turn_s + after.runs_s);
  }
  // The longer its micro-batches take, the less it waits; but they take no more than all of its step.
  const double longest = stage.step_s / form.micro_batches;
  floor.steps_s = std::max(stage.step_s + waits_s(form, left, stage, longest, after.turn_s),
                           stage.forward_s + after.steps_s);
  return floor;
}

double seconds_of(const Floor& floor) { return std::max(floor.runs_s, floor.steps_s); }

/// Each part of the floor is the least by itself, which a pipeline is not above with all of them.
class LeastPipelines {
 public:
  LeastPipelines(const FloorChoices& choices, const PipelineForm& form, const std::function<bool()>& stops)
      : choices_(choices), form_(form), stops_(stops), unit_(choices.devices()) {
    for (const int size : choices.sizes()) unit_ = std::gcd(unit_, size);
    for (int first = 0; first < choices.layers(); ++first)
      for (std::size_t s = 0; s < choices.sizes().size(); ++s) {
        int end = choices.layers();
        while (end > first && choices.ways(first, end, s).empty()) --end;
        last_end_.push_back(end);
      }
  }

  void fill() {
    const std::vector<int> before = fewest_before();
    std::vector<int> fewest = before;
    std::ranges::fill(fewest, none());
    fewest.back() = 0;
    rows_.assign(1, std::vector<Row>(fewest.size()));
    rows_[0].back() = {0, {Entry{{}, {}}}};
    for (int left = 1; left <= most_stages() && !stopped(); ++left) {
      fewest = with_one_more(left, fewest);
      rows_.emplace_back(fewest.size());
      for (int first = 0; first + left <= choices_.layers() && !stopped(); ++first) {
        const int most = first == 0 ? choices_.devices() : choices_.devices() - before[first];
        const int least = first == 0 ? choices_.devices() : fewest[first];
        if (fewest[first] <= most) fill(left, first, least, most);
      }
    }
  }

  bool stopped() const { return stops_ && stops_(); }

  /// No stages: there is none.
  LeastPipeline of(int count) const {
    LeastPipeline found;
    int first = 0, devices = choices_.devices();
    const Entry* whole = at(count, first, devices);
    if (!whole || seconds_of(whole->floor) == infinity) return found;
    found.seconds = seconds_of(whole->floor);
    const std::size_t part = whole->floor.runs_s > whole->floor.steps_s ? 0 : 1;
    for (int left = count; left > 0; --left) {
      found.stages.push_back(at(left, first, devices)->stage[part]);
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
  /// Of so many stages from one layer on, by their devices.
  struct Row {
    int least = 0;
    std::vector<Entry> entries;  ///< by unit_ apart
  };

  int most_stages() const { return static_cast<int>(form_.in_flight.size()) - 1; }
  int none() const { return choices_.devices() + 1; }
  int last_end(int first, std::size_t size) const {
    return last_end_[static_cast<std::size_t>(first) * choices_.sizes().size() + size];
  }
  bool allows(int left, int first, int end, std::size_t size) const {
    return std::ranges::any_of(choices_.ways(first, end, size), [&](const FloorChoices::Way& way) {
      return left == 0 || way.most_in_flight >= form_.in_flight[left];
    });
  }

  /// [layer] Devices for all layers before it, whatever is in flight.
  std::vector<int> fewest_before() const {
    std::vector<int> fewest(static_cast<std::size_t>(choices_.layers()) + 1, none());
    fewest[0] = 0;
    for (int first = 0; first < choices_.layers(); ++first)
      for (std::size_t s = 0; s < choices_.sizes().size(); ++s)
        for (int end = first + 1; end <= last_end(first, s); ++end)
          if (allows(0, first, end, s))
            fewest[end] = std::min(fewest[end], fewest[first] + choices_.sizes()[s]);
    return fewest;
  }

  /// [first layer] Devices for that many stages from it on, with those for one fewer.
  std::vector<int> with_one_more(int left, const std::vector<int>& after) const {
    std::vector<int> fewest(after.size(), none());
    for (int first = 0; first + left <= choices_.layers(); ++first)
      for (std::size_t s = 0; s < choices_.sizes().size(); ++s)
        for (int end = first + 1; end <= last_end(first, s); ++end) {
          const int devices = choices_.sizes()[s] + after[end];
          if (devices < fewest[first] && allows(left, first, end, s)) fewest[first] = devices;
        }
    return fewest;
  }

  const Entry* at(int left, int first, int devices) const {
    if (left >= std::ssize(rows_)) return nullptr;
    const Row& row = rows_[left][first];
    const int place = (devices - row.least) / unit_;
    return devices < row.least || place >= std::ssize(row.entries) ? nullptr : &row.entries[place];
  }

  void fill(int left, int first, int least, int most) {
    Row& row = rows_[left][first];
    row.least = least;
    row.entries.resize(static_cast<std::size_t>((most - least) / unit_ + 1));
    for (std::size_t s = 0; s < choices_.sizes().size(); ++s)
      for (int end = first + 1; end <= last_end(first, s); ++end)
        if (const Row& after = rows_[left - 1][end]; !after.entries.empty())
          for (const FloorChoices::Way& way : choices_.ways(first, end, s))
            if (way.most_in_flight >= form_.in_flight[left])
              prepend(left, {end, choices_.sizes()[s], way.floor.step_s}, way.floor, after, row, most);
  }

  void prepend(int left, const LeastPipeline::Stage& stage, const StageFloor& floor, const Row& after,
               Row& row, int most) const {
    const int size = stage.devices;
    const int last = std::min(most, size + after.least + unit_ * static_cast<int>(after.entries.size() - 1));
    for (int devices = std::max(row.least, size + after.least); devices <= last; devices += unit_) {
      const Entry& rest = after.entries[(devices - size - after.least) / unit_];
      if (rest.floor.turn_s == infinity) continue;
      const Floor with = with_before(form_, left, floor, rest.floor);
      Entry& entry = row.entries[(devices - row.least) / unit_];
      for (std::size_t part = 0; part < kParts.size(); ++part)
        if (with.*kParts[part] < entry.floor.*kParts[part]) {
          entry.floor.*kParts[part] = with.*kParts[part];
          entry.stage[part] = stage;
        }
    }
  }

  const FloorChoices& choices_;
  const PipelineForm& form_;
  const std::function<bool()>& stops_;
  int unit_;                            ///< devices that stages have a multiple of
  std::vector<int> last_end_;           ///< [first layer, size] of the longest stage that there is
  std::vector<std::vector<Row>> rows_;  ///< [stages left][first layer]
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

FloorChoices::FloorChoices(int layers, int devices, std::vector<int> sizes)
    : layers_(layers), devices_(devices), sizes_(std::move(sizes)) {
  ways_.resize(static_cast<std::size_t>(layers) * static_cast<std::size_t>(layers + 1) * sizes_.size());
}

void FloorChoices::offer(int first, int end, int size, Way way) {
  const auto at = static_cast<std::size_t>(std::ranges::find(sizes_, size) - sizes_.begin());
  ways_[place(first, end, at)].push_back(way);
}

std::vector<LeastPipeline> least_pipelines(const FloorChoices& choices, const PipelineForm& form,
                                           int least_stages, const std::function<bool()>& stops) {
  LeastPipelines least(choices, form, stops);
  least.fill();
  std::vector<LeastPipeline> found;
  const int most_stages = static_cast<int>(form.in_flight.size()) - 1;
  for (int count = std::max(1, least_stages); count <= most_stages && !least.stopped(); ++count)
    if (LeastPipeline pipeline = least.of(count); !pipeline.stages.empty())
      found.push_back(std::move(pipeline));
  return found;
}

}  // namespace alpa
