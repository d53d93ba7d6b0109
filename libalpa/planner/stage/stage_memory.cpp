#include "libalpa/planner/stage/stage_memory.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "libalpa/base/checked.h"
#include "libalpa/planner/stage/stage_clock.h"
#include "libalpa/planner/stage/stage_edges.h"
#include "libalpa/planner/stage/stage_messages.h"
#include "libalpa/planner/stage/stage_sums.h"
#include "libalpa/planner/stage/value_times.h"

namespace alpa {
namespace {

class MemoryOverTime {
 public:
  MemoryOverTime(const StageScope& scope, const StageRequest& request, const MeshCosts& mesh_costs,
                 StageVariables& stage)
      : scope_(scope),
        request_(request),
        mesh_costs_(mesh_costs),
        stage_(stage),
        clock_(scope),
        times_(scope, clock_) {
    for (const Phase segment : {Phase::forward, Phase::backward, Phase::update})
      for (const NodeIndex n : scope_.order(segment))
        if (scope_.canonical_node(n) == n) add_run(n, segment);
    for (const auto& [edge, flow] : stage_.edges) add_flow(edge, flow);
    for (auto& [what, ticks] : held_) hold_result(what, ticks);
    for (auto& [index, ticks] : held_layouts_) hold_layout(index, ticks);
    add_message_memory(scope_, request_, mesh_costs_, clock_, stage_);
    add_workspace_of_sums(scope_, mesh_costs_, clock_, stage_);
    stage_.clock = clock_.end();
  }

 private:
  struct Result {
    int variable, result;
    auto operator<=>(const Result&) const = default;
  };

  StageVariable& variable(int index) { return stage_.variables[index]; }
  std::int64_t bytes(ValueIndex v, int layout) const { return mesh_costs_.layouts(v).bytes(layout); }

  bool rests(ValueIndex v) const { return stage_.of_value.contains(scope_.canonical_value(v)); }

  /// The buffer that a node makes a value in ends with the segment, or (nullopt) that depends on layouts.
  std::optional<bool> made_for_segment(ValueIndex v, NodeIndex n, Phase segment) const {
    const Node& node = scope_.node(n);
    const auto result = static_cast<std::size_t>(place_of(node.results, v));
    if (scope_.value(v).kind == ValueKind::state || node.op->overwritten(result) >= 0) return false;
    if (node.op->sums_micro_batches || scope_.planning().uses.summed_over_step[v]) return false;
    if (scope_.planning().uses.state_after_value(v) >= 0) return false;  // it rests
    // Recomputed, or fetched; else users start from what was kept.
    if (node.phase != segment) return !scope_.stays(v);
    if (scope_.stays(v)) return rests(v) ? std::nullopt : std::optional(false);
    for (const NodeIndex user : scope_.users(v))
      if (scope_.kernel_of_sum(user) >= 0) return std::nullopt;
    return true;
  }

  void add_run(NodeIndex n, Phase segment) {
    StageVariable& of = variable(stage_.of_node.at(n));
    SelectionProblem::Memory first{clock_.runs(n, segment), clock_.runs(n, segment) + 1, {}},
        later{first.end, first.end + 1, {}};
    for (std::size_t c = 0; c < of.choices.size(); ++c) {
      first.bytes.push_back(option_of(of, c, mesh_costs_).workspace);
      later.bytes.push_back(option_of(of, c, mesh_costs_).later_workspace);
    }
    of.hold(std::move(first));
    of.hold(std::move(later));
    const Node& node = scope_.node(n);
    for (std::size_t r = 0; r < node.results.size(); ++r)
      if (made_for_segment(node.results[r], n, segment).value_or(false)) {
        const bool leaves_device = scope_.is_offloaded(node.results[r]) && !rests(node.results[r]);
        held_[{stage_.of_node.at(n), static_cast<int>(r)}].push_back(
            {clock_.runs(n, segment), leaves_device ? clock_.settles(n, segment, static_cast<int>(r)) + 1
                                                    : clock_.runs(n, segment) + 2});
      }
  }

  /// When what the host has is fetched, or what was made in the segment is.
  Moment start_in_segment(ValueIndex v, NodeIndex maker, Phase segment) const {
    if (scope_.is_offloaded(v) && scope_.node(maker).phase != segment)
      return times_.start_of_uses(v, segment);
    return {clock_.runs(maker, segment), scope_.node(maker).layer};
  }

  void hold_result(const Result& what, const Ticks& ticks) {
    StageVariable& of = variable(what.variable);
    const auto result = static_cast<std::size_t>(what.result);
    const ValueIndex v = scope_.node(of.node).results[result];
    for (const auto& [begin, end] : united(ticks)) {
      SelectionProblem::Memory memory{begin, end, {}};
      for (std::size_t c = 0; c < of.choices.size(); ++c)
        memory.bytes.push_back(bytes(v, option_of(of, c, mesh_costs_).results[result]));
      of.hold(std::move(memory));
    }
  }

  void hold_layout(int index, const Ticks& ticks) {
    StageVariable& of = variable(index);
    for (const auto& [begin, end] : united(ticks)) {
      SelectionProblem::Memory memory{begin, end, {}};
      for (std::size_t c = 0; c < of.choices.size(); ++c)
        memory.bytes.push_back(!of.at_rest.empty() && of.at_rest[c] ? 0 : bytes(of.value, of.choices[c]));
      of.hold(std::move(memory));
    }
  }

  /// What a flow starts from.
  struct Start {
    bool lasts = false;      ///< in memory that is counted as lasting, or as somebody else's
    bool always = true;      ///< `lasts` holds whatever the layouts are
    Moment at = {};          ///< where it does not last, when it is there
    Ticks* ticks = nullptr;  ///< where those go in which it is held by the variable itself
  };

  Start start_of(const StageEdge& edge, const StageFlow& flow) {
    const Phase segment = edge.phase;
    const StageVariable& from = variable(edge.from);
    const Value& value = scope_.value(flow.value);
    if (edge.from_operand) return {.lasts = true};  // counted for that user, which is the last
    Start start;
    if (from.node >= 0) {
      const NodeIndex maker = value.kind == ValueKind::state ? from.node : value.producer;
      const std::optional<bool> ends = made_for_segment(flow.value, maker, segment);
      start.lasts = !ends.value_or(true);
      start.always = ends.has_value();
      start.at =
          start.lasts ? Moment{0, scope_.node(maker).layer} : start_in_segment(flow.value, maker, segment);
      if (ends.value_or(false)) start.ticks = &held_[{edge.from, edge.from_place}];
      return start;
    }
    if (from.segment || value.kind == ValueKind::input) {  // made, or loaded, for the first of its users
      start.at = times_.start_of_uses(flow.value, segment);
      start.lasts = !from.segment && scope_.lasts(flow.value);
    } else {
      // In the update stage_moves has what is fetched of states.
      const bool is_moved = segment == Phase::update && value.kind == ValueKind::state;
      start.lasts = is_moved || scope_.lasts(flow.value);
      const bool made = scope_.makes(flow.value) && scope_.node(value.producer).phase == segment;
      if (made) {
        const int place = place_of(scope_.node(value.producer).results, flow.value);
        start.at = {clock_.settles(value.producer, segment, place), scope_.node(value.producer).layer};
      } else if (scope_.is_fetched(flow.value)) {
        start.at = times_.start_of_uses(flow.value, segment);
      } else {
        start.at.tick = clock_.begin(segment);  // comes before all, so its layer does not matter
      }
    }
    if (!start.lasts) start.ticks = &held_layouts_[edge.from];
    return start;
  }

  void add_flow(const StageEdge& edge, const StageFlow& flow) {
    if (scope_.planning().uses.summed_over_step[flow.value]) return;
    if (flow.user >= 0) return add_use(edge, flow);
    const StageVariable& to = variable(edge.to);
    const Value& value = scope_.value(flow.value);
    if (to.segment) {
      const bool made = scope_.makes(flow.value) && scope_.node(value.producer).phase == edge.phase;
      return made && rests(flow.value) ? add_start_beside_rest(edge, flow) : add_start(edge, flow);
    }
    const bool has_segment = stage_.of_segment.contains({scope_.canonical_value(flow.value), edge.phase});
    if (edge.phase != Phase::update && has_segment)
      variable(edge.from).segment ? add_rest_from_segment(edge, flow) : add_made_beside_rest(edge, flow);
    else
      add_rest(edge, flow);
  }

  static ConversionEnd at_rest(bool lasts) { return lasts ? ConversionEnd::in_place : ConversionEnd::fresh; }

  /// What a conversion holds at its tick, where what it starts from is counted in `held` or (0) elsewhere.
  std::int64_t peak(ValueIndex v, int from, int to, ConversionEnd end, std::int64_t held) {
    const ConversionBytes& beside = beside_conversion(v, from, to, end);
    return std::max(held + beside.first, beside.later);
  }

  const ConversionBytes& beside_conversion(ValueIndex v, int from, int to, ConversionEnd end) {
    if (const std::tuple conversions(v, from, end); row_ != conversions) {
      row_ = conversions;
      bytes_of_row_ = &mesh_costs_.conversion_bytes(v, from, end);  // shared by threads, so it locks
    }
    return (*bytes_of_row_)[to];
  }

  /// The same where what it ends in is counted elsewhere too. (Where there is no way, none.)
  std::int64_t extra(ValueIndex v, int from, int to, std::int64_t held) {
    return std::max<std::int64_t>(0, peak(v, from, to, ConversionEnd::fresh, held) - bytes(v, to));
  }

  /// A node takes the value.
  void add_use(const StageEdge& edge, const StageFlow& flow) {
    const Phase segment = edge.phase;
    const ValueIndex v = flow.value;
    const int operand = edge.to_place;
    const Node& node = scope_.node(flow.user);
    const auto& measured = scope_.planning().uses.measured[flow.user];
    int tick = clock_.converts(flow.user, segment, operand);
    const bool is_input = scope_.value(v).kind == ValueKind::input;
    if (segment == Phase::update && !edge.from_operand &&
        !is_input) {  // brought into that layout for the first user
      const StageScope::Use first = times_.first_use(v, segment);
      if (first.node != flow.user) tick = clock_.starts(first.node, segment, first.operand);
    }
    int others = 0;  // copies of the node, whose operands are all measured before the first is taken
    if (segment == Phase::update && std::ranges::find(measured, operand) != measured.end()) {
      tick = clock_.measures(scope_.canonical_node(flow.user), operand);
      others = scope_.copies(scope_.canonical_node(flow.user)) - 1;
      hold_workspace_of_norm(v, flow.user, operand, tick);
    }
    int end = clock_.runs(flow.user, segment) + 2;
    for (const NodeOption& o : mesh_costs_.options(flow.user))
      if (std::ranges::find(o.goes_on, operand) != o.goes_on.end()) end = clock_.runs(flow.user, segment) + 1;
    if (const auto result = std::ranges::find(node.op->overwrites, operand);
        result != std::end(node.op->overwrites))
      end = clock_.settles(flow.user, segment, static_cast<int>(result - std::begin(node.op->overwrites)));
    const Start start = start_of(edge, flow);
    const StageScope::Use last = times_.last_use(v, segment);
    const bool for_copies = times_.used_by_equal_layers(v, node.layer, segment);
    const bool is_last = !for_copies && last.operand == operand &&
                         scope_.canonical_node(last.node) == scope_.canonical_node(flow.user);
    const int needed = for_copies ? clock_.of_layer(node.layer, segment).second : tick;
    const Ticks before = times_.between(start.at, {needed, node.layer}, segment);
    if (start.ticks) start.ticks->insert(start.ticks->end(), before.begin(), before.end());
    const bool sum = variable(edge.to).sums_in_kernel && !start.always;
    const bool in_place = segment == Phase::update && !edge.from_operand && scope_.sums_gradient(v);
    const ConversionEnd end_of_it = in_place ? ConversionEnd::over_source : ConversionEnd::fresh;
    const Ticks pieces{{tick, tick + 1},
                       {tick + 1, end},
                       {start.at.tick, sum ? tick : start.at.tick},
                       {tick, others > 0 ? clock_.of_layer(node.layer, segment).second : tick}};
    add_conversion(
        edge, -1, pieces,
        [=, this](const EdgeEnd& from, const EdgeEnd& to, bool) -> std::vector<std::int64_t> {
          const bool same = from.layout == to.layout;
          if (same && sum) return {0, 0, 0, 0};  // the gradient's kernel adds to the sum
          // Where it is taken as it is, it is counted here from its last use on.
          const std::int64_t before_it = start.lasts || from.at_rest || !is_last ? 0 : bytes(v, from.layout);
          if (same) return {before_it, before_it, 0, 0};
          const std::int64_t after = beside_conversion(v, from.layout, to.layout, end_of_it).end;
          return {peak(v, from.layout, to.layout, end_of_it, before_it), after, before_it, others * after};
        },
        others);
  }

  /// What the kernel wants that takes the square of an operand.
  void hold_workspace_of_norm(ValueIndex v, NodeIndex user, int operand, int tick) {
    const OpDef& norm = *scope_.node(scope_.planning().uses.norm).op;
    StageVariable& of = variable(stage_.of_node.at(scope_.canonical_node(user)));
    SelectionProblem::Memory memory{tick, tick + 1, {}};
    for (std::size_t c = 0; c < of.choices.size(); ++c)
      memory.bytes.push_back(
          mesh_costs_.workspace_of_one(norm, v, option_of(of, c, mesh_costs_).operands[operand]));
    of.hold(std::move(memory));
  }

  /// The layout of a segment, from what arrives, is kept, or is made and does not rest.
  void add_start(const StageEdge& edge, const StageFlow& flow) {
    const auto [tick, layer] = times_.start_of_uses(flow.value, edge.phase);
    const Start start = start_of(edge, flow);
    const Ticks before = times_.between(start.at, {tick, layer}, edge.phase);
    if (start.ticks) start.ticks->insert(start.ticks->end(), before.begin(), before.end());
    add_conversion(edge, -1, {{tick, tick + 1}}, [=, this](const EdgeEnd& from, const EdgeEnd& to, bool) {
      if (from.layout == to.layout) return std::vector<std::int64_t>{0};
      const std::int64_t held = start.lasts ? 0 : bytes(flow.value, from.layout);
      return std::vector{extra(flow.value, from.layout, to.layout, held)};
    });
  }

  /// From how a value is made to where it rests, from where its users start.
  void add_rest(const StageEdge& edge, const StageFlow& flow) {
    const NodeIndex maker = scope_.value(flow.value).producer;
    const int tick = clock_.settles(maker, edge.phase, edge.from_place);
    const Start start = start_of(edge, flow);
    const bool in_place = scope_.node(maker).op->overwritten(edge.from_place) >= 0;
    const bool lasts = in_place || scope_.lasts(flow.value);
    if (start.ticks) start.ticks->push_back({start.at.tick, tick});
    if (!lasts) held_layouts_[edge.to].push_back({tick, tick + 1});
    add_conversion(edge, -1, {{tick, tick + 1}, {start.always ? tick : start.at.tick, tick}},
                   [=, this](const EdgeEnd& from, const EdgeEnd& to, bool) -> std::vector<std::int64_t> {
                     if (from.layout == to.layout) return {0, 0};
                     const std::int64_t held = start.lasts && !in_place ? 0 : bytes(flow.value, from.layout);
                     return {lasts ? peak(flow.value, from.layout, to.layout, ConversionEnd::in_place, held)
                                   : extra(flow.value, from.layout, to.layout, held),
                             held};
                   });
  }

  /// What is made, until it is brought to the segment's layout, unless it rests as it is made.
  void add_made_beside_rest(const StageEdge& edge, const StageFlow& flow) {
    const NodeIndex maker = scope_.value(flow.value).producer;
    const int begin = clock_.runs(maker, edge.phase),
              tick = clock_.settles(maker, edge.phase, edge.from_place);
    if (!scope_.lasts(flow.value)) {
      held_[{edge.from, edge.from_place}].push_back({begin, tick});
      return;
    }
    add_conversion(edge, -1, {{begin, tick}}, [=, this](const EdgeEnd& from, const EdgeEnd& to, bool) {
      return std::vector{to.as_made ? 0 : bytes(flow.value, from.layout)};
    });
  }

  /// From how it is made to the segment's layout: right away, if it rests in what that is turned into; where
  /// it rests as it is made, at the first use.
  void add_start_beside_rest(const StageEdge& edge, const StageFlow& flow) {
    const ValueIndex v = flow.value;
    const NodeIndex maker = scope_.value(v).producer;
    const int settles = clock_.settles(maker, edge.phase, edge.from_place);
    const auto [tick, layer] = times_.start_of_uses(v, edge.phase);
    Ticks pieces{{settles, settles + 1}, {tick, tick + 1}};
    const Ticks meanwhile =
        times_.between({settles + 1, scope_.node(maker).layer}, {tick, layer}, edge.phase);
    pieces.insert(pieces.end(), meanwhile.begin(), meanwhile.end());
    const bool lasts = scope_.lasts(v);
    add_conversion(edge, stage_.of_value.at(scope_.canonical_value(v)), pieces,
                   [=, this](const EdgeEnd& from, const EdgeEnd& to, bool as_made) {
                     const std::int64_t made = bytes(v, from.layout),
                                        started = to.at_rest ? 0 : bytes(v, to.layout);
                     const bool same = from.layout == to.layout;
                     std::vector<std::int64_t> held(pieces.size(), 0);
                     if (as_made) {
                       const std::int64_t resting = lasts ? 0 : made;
                       if (!same) held[1] = extra(v, from.layout, to.layout, resting);
                       held[0] = resting;
                       for (std::size_t i = 2; i < held.size(); ++i) held[i] = resting;
                       return held;
                     }
                     held[0] = same ? started : peak(v, from.layout, to.layout, at_rest(to.at_rest), made);
                     for (std::size_t i = 2; i < held.size(); ++i) held[i] = started;
                     return held;
                   });
  }

  /// From the segment's layout, which is still needed, to where the value rests.
  void add_rest_from_segment(const StageEdge& edge, const StageFlow& flow) {
    const ValueIndex v = flow.value;
    const NodeIndex maker = scope_.value(v).producer;
    const int tick = clock_.rests(maker, edge.phase, place_of(scope_.node(maker).results, v));
    const bool lasts = scope_.lasts(v);
    add_conversion(edge, -1, {{tick, tick + 1}}, [=, this](const EdgeEnd& from, const EdgeEnd& rest, bool) {
      if (from.layout == rest.layout || rest.as_made) return std::vector<std::int64_t>{0};
      return std::vector{peak(v, from.layout, rest.layout, at_rest(lasts), 0)};
    });
  }

  /// `copies`: of a layer, which hold what the conversion ends in too.
  void add_conversion(const StageEdge& edge, int rest, const Ticks& pieces, HeldBytes held, int copies = 0) {
    if (edge.from == edge.to) return hold_own_conversion(edge, pieces, held);
    constexpr std::int64_t kBuffers = 8;  // what it starts from, passes and ends in, packed and unpacked
    stage_.conversions.push_back(
        {edge, rest, pieces, std::move(held),
         checked_product(kBuffers + copies, buffer_bytes(mesh_costs_.layouts(edge.value).whole()))});
  }

  /// Equal layers that hand on to each other choose alike.
  void hold_own_conversion(const StageEdge& edge, const Ticks& pieces, const HeldBytes& held) {
    StageVariable& of = variable(edge.from);
    std::vector<SelectionProblem::Memory> memory;
    for (const auto& [begin, end] : pieces) memory.push_back({begin, end, {}});
    for (std::size_t c = 0; c < of.choices.size(); ++c) {
      const std::vector<std::int64_t> bytes =
          held(start_of_edge(stage_, edge, c, mesh_costs_), end_of_edge(stage_, edge, c, mesh_costs_), false);
      for (std::size_t p = 0; p < memory.size(); ++p) memory[p].bytes.push_back(bytes[p]);
    }
    for (SelectionProblem::Memory& each : memory) of.hold(std::move(each));
  }

  const StageScope& scope_;
  const StageRequest& request_;
  const MeshCosts& mesh_costs_;
  StageVariables& stage_;
  const StageClock clock_;
  const ValueTimes times_;
  std::map<Result, Ticks> held_;
  std::map<int, Ticks> held_layouts_;                           ///< by variable
  std::tuple<ValueIndex, int, ConversionEnd> row_{{}, -1, {}};  ///< value, its layout: asked for last
  const std::vector<ConversionBytes>* bytes_of_row_ = nullptr;
};

}  // namespace

void add_memory_over_time(const StageScope& scope, const StageRequest& request, const MeshCosts& mesh_costs,
                          StageVariables& stage) {
  stage.memory = std::make_shared<MemoryOverTime>(scope, request, mesh_costs, stage);
}

}  // namespace alpa
