#include "libalpa/ops/vertex_program.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <string_view>

#include "libalpa/graph/vertex_body.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/vertex_states.h"

namespace alpa {
namespace {

class ProgramMaker {
 public:
  ProgramMaker(const OpCall& call, RoundOrder order)
      : body_(body_of(call.attributes, static_cast<int>(call.operands.size()), vertex_catalog())),
        types_(value_types(body_, call.operands)),
        rows_(static_cast<int>(call.attributes.integer("rows"))),
        fuses_(rounds_form_of(call.attributes).fused),
        places_(types_.size()),
        in_pass_(types_.size(), -1),
        order_(order),
        streams_(types_.size(), RoundStream::leading) {
    const Shape& structure = call.operands[1].shape;
    const std::int64_t group = call.attributes.integer("size_b");
    program_.groups = structure[0] / group;
    program_.rows = group * structure[1];
    program_.children = static_cast<int>(structure[2]) - 1;
    program_.against = body_.states.empty();
    if (order_ == RoundOrder::streams) find_streams();
  }

  VertexProgram run() {
    arrange();
    find_places();
    for (const std::vector<int>& together : arranged_) {
      add(together);
      program_.streams.resize(program_.steps.size(), streams_[index(together.front())]);
    }
    for (std::size_t r = 0; r < body_.results.size(); ++r) {
      const int value = body_.results[r];
      program_.result_widths.push_back(is_sum(value) ? 0 : width(value));
      if (is_sum(value)) continue;
      copy(value, {RowPlace::In::result, static_cast<int>(r), 0, 0, width(value)});
      program_.streams.resize(program_.steps.size(), stream_of_result(value));
    }
    program_.windows_of_all_rounds = program_.streams_used() > 1;
    for (const VertexBody::Return& each : body_.returns)
      program_.returns.push_back(
          {places_[index(each.value)], received_.at(each.state), returned_width(each), each.to_each});
    return std::move(program_);
  }

 private:
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }
  const VertexBody::Step& step(int value) const { return body_.steps[index(body_.step_of(value))]; }
  std::int64_t width(int value) const { return types_[index(value)].shape.back(); }
  bool is_step(int value) const { return body_.step_of(value) >= 0; }
  bool is(int value, const OpDef& op) const { return is_step(value) && step(value).op == &op; }
  bool is_sum(int value) const { return is_step(value) && is_sum_over_rows(types_[index(value)]); }
  std::vector<TensorType> operands_of(int value) const {
    std::vector<TensorType> types;
    for (const int of : step(value).of) types.push_back(types_[index(of)]);
    return types;
  }
  bool is_function(int value) const { return is_step(value) && row_function_of(*step(value).op).has_value(); }

  void find_streams() {
    std::vector<bool> waits(types_.size(), false), leads(types_.size(), false);
    for (int value = body_.operands; value < body_.values(); ++value)
      waits[index(value)] = is(value, ops::gather) || is(value, ops::received) ||
                            std::ranges::any_of(step(value).of, [&](int of) { return waits[index(of)]; });
    for (const int state : body_.states) leads[index(state)] = true;
    for (const VertexBody::Return& each : body_.returns) leads[index(each.value)] = true;
    for (int value = body_.values() - 1; value >= body_.operands; --value) {
      if (leads[index(value)])
        for (const int of : step(value).of) leads[index(of)] = true;
      streams_[index(value)] = !leads[index(value)]  ? RoundStream::late
                               : waits[index(value)] ? RoundStream::leading
                                                     : RoundStream::early;
    }
  }

  /// Where a value is copied to a result, from which later rounds gather states.
  RoundStream stream_of_result(int value) const {
    const bool is_state = std::ranges::find(body_.states, value) != body_.states.end();
    return order_ == RoundOrder::one_stream || is_state ? RoundStream::leading : RoundStream::late;
  }

  /// Steps that can run go on until none can: all functions of one width together, all else one by one.
  void arrange() {
    std::vector<bool> done(types_.size(), false);
    std::fill_n(done.begin(), body_.operands, true);
    std::size_t left = body_.steps.size();
    const auto each_ready = [&](const auto& may, const auto& body) {
      bool any = false;
      for (int value = body_.operands; value < body_.values(); ++value) {
        if (done[index(value)] || !may(value)) continue;
        if (!std::ranges::all_of(step(value).of, [&](int of) { return done[index(of)]; })) continue;
        body(value);
        done[index(value)] = any = true;
        --left;
      }
      return any;
    };
    const auto is_place = [&](int value) { return is(value, ops::slice) || is(value, ops::received); };
    const auto pass_over_places = [&] { each_ready(is_place, [](int) {}); };
    while (left > 0) {
      pass_over_places();
      if (each_ready([&](int value) { return !is_function(value) && !is_place(value); },
                     [&](int value) { arranged_.push_back({value}); }))
        continue;
      std::vector<int> together;
      const auto fits = [&](int value) {
        return is_function(value) &&
               (together.empty() || (fuses_ && width(value) == width(together.front()) &&
                                     streams_[index(value)] == streams_[index(together.front())]));
      };
      while (each_ready(fits, [&](int value) {
        in_pass_[index(value)] = static_cast<int>(arranged_.size());
        together.push_back(value);
      }))
        pass_over_places();
      arranged_.push_back(std::move(together));
    }
  }

  std::int64_t take(std::int64_t numbers) {
    const std::int64_t at = program_.scratch;
    program_.scratch += (numbers + 15) / 16 * 16;
    return at;
  }

  /// Users of a value, steps; slices' users are the value's.
  bool is_needed_in_memory(int value) const {
    for (int user = body_.operands; user < body_.values(); ++user) {
      if (std::ranges::find(step(user).of, value) == step(user).of.end()) continue;
      if (!is_function(user) || in_pass_[index(user)] != in_pass_[index(value)]) return true;
    }
    for (const VertexBody::Return& each : body_.returns)
      if (each.value == value) return true;
    return false;
  }

  std::int64_t returned_width(const VertexBody::Return& each) const {
    return each.to_each ? width(each.value) : width(each.value) / program_.children;
  }

  void receive(int state, std::int64_t width) {
    if (received_.contains(state)) return;
    received_[state] = {RowPlace::In::received, state, take(program_.rows * width), 0, width};
  }

  void find_places() {
    for (int i = 0; i < body_.operands; ++i)
      places_[index(i)] = {RowPlace::In::operand, i, 0, 0, i < rows_ ? width(i) : 0};
    for (int value = body_.operands; value < body_.values(); ++value)
      if (is(value, ops::received)) {
        const auto state = static_cast<int>(step(value).attributes.integer("state"));
        receive(state, width(value));
        places_[index(value)] = received_.at(state);
      }
    for (const VertexBody::Return& each : body_.returns) receive(each.state, returned_width(each));
    program_.received = program_.scratch;
    for (std::size_t r = 0; r < body_.results.size(); ++r)
      if (const int value = body_.results[r]; !is_placed(value) && !is(value, ops::slice) && !is_sum(value))
        place(value, {RowPlace::In::result, static_cast<int>(r), 0, 0, width(value)});
    // Joined values first, the last made ones before those that they are made of: their parts lie in them.
    for (int value = body_.values() - 1; value >= body_.operands; --value) {
      if (is(value, ops::slice) || is_sum(value) || is_placed(value)) continue;
      if (is_function(value) && !is_needed_in_memory(value) &&
          lanes_[in_pass_[index(value)]] < kMostRowLanes) {
        std::int64_t& lanes = lanes_[in_pass_[index(value)]];
        place(value, {RowPlace::In::lane, 0, lanes++, 0, 0});
        continue;
      }
      place(value, {RowPlace::In::window, 0, take(program_.rows * width(value)), 0, width(value)});
    }
    for (int value = body_.operands; value < body_.values(); ++value)
      if (is(value, ops::slice) && !is_placed(value)) {
        RowPlace place = places_[index(step(value).of[0])];
        place.offset += step(value).attributes.integer("begin");
        places_[index(value)] = place;
      }
  }

  bool is_placed(int value) const {
    return !is_step(value) || is(value, ops::received) || placed_.contains(value);
  }

  void place(int value, RowPlace at) {
    places_[index(value)] = at;
    placed_.insert(value);
    if (!is(value, ops::concat)) return;
    for (const int part : step(value).of) {
      // What is elsewhere already is copied.
      if (!is_placed(part) && !is(part, ops::slice)) place(part, at);
      at.offset += width(part);
    }
  }

  void add(const std::vector<int>& together) {
    const int first = together.front();
    if (is(first, ops::gather)) return add_gather(first);
    if (is_sum(first)) return add_sum(first);
    if (is(first, ops::einsum)) return add_product(first);
    if (is(first, ops::concat)) return add_copies(first);
    RowPass pass{width(first), {}};
    for (const int value : together) {
      const VertexBody::Step& of = step(value);
      assert(is_function(value));
      RowPass::Function function{
          *row_function_of(*of.op), places_[index(of.of[0])], {}, places_[index(value)]};
      if (of.of.size() > 1) function.b = places_[index(of.of[1])];
      if (function.function == RowFunction::scale)
        function.factor = static_cast<float>(of.attributes.number("factor"));
      pass.functions.push_back(function);
    }
    program_.steps.push_back(std::move(pass));
  }

  void copy(int value, const RowPlace& to) {
    const RowPlace& from = places_[index(value)];
    if (from != to) program_.steps.push_back(RowPass{width(value), {{RowFunction::copy, from, {}, to}}});
  }

  /// Parts of a joined value that lie elsewhere.
  void add_copies(int value) {
    RowPlace to = places_[index(value)];
    for (const int part : step(value).of) {
      copy(part, to);
      to.offset += width(part);
    }
  }

  /// Where a state has the rows of all rounds before: what a step makes is a result.
  RowPlace kept(int state) const {
    const auto result = std::ranges::find(body_.results, state);
    if (!is_step(state) || result == body_.results.end()) return places_[index(state)];
    return {RowPlace::In::result, static_cast<int>(result - body_.results.begin()), 0, 0, width(state)};
  }

  void add_gather(int value) {
    const Attributes& of = step(value).attributes;
    const int state = body_.states[static_cast<std::size_t>(of.integer("state"))];
    program_.steps.push_back(
        GatherRows{kept(state), places_[index(value)], width(state), of.integer("sum", 0) != 0});
  }

  void add_product(int value) {
    const std::vector<int>& of = step(value).of;
    const bool weight_first = of[0] >= rows_ && !is_step(of[0]);
    const int left = of[weight_first ? 1 : 0], weight = of[weight_first ? 0 : 1];
    const Shape& shape = types_[index(weight)].shape;
    // "b v d, d e -> b v e", or "b v e, d e -> b v d".
    const ShardingRule rule = rule_of(*step(value).op, {operands_of(value), step(value).attributes});
    const int summed = rule.operands[weight_first ? 1 : 0].back().front();
    const bool transposed = rule.operands[weight_first ? 0 : 1].back().front() == summed;
    program_.steps.push_back(MultiplyRows{places_[index(left)], places_[index(value)], weight, transposed,
                                          width(left), width(value), shape.back()});
  }

  void add_sum(int value) {
    const auto result = static_cast<int>(std::ranges::find(body_.results, value) - body_.results.begin());
    assert(result < std::ssize(body_.results));
    const std::vector<int>& of = step(value).of;
    if (of.size() == 1) {
      program_.steps.push_back(SumRows{{}, places_[index(of[0])], result, 1, width(value)});
      return;
    }
    // "b v d, b v e -> d e", or the operands the other way.
    const ShardingRule rule = rule_of(*step(value).op, {operands_of(value), step(value).attributes});
    const std::size_t right = rule.operands[1].back() == rule.results[0].back() ? 1 : 0;
    program_.steps.push_back(SumRows{places_[index(of[1 - right])], places_[index(of[right])], result,
                                     width(of[1 - right]), width(value)});
  }

  VertexBody body_;
  std::vector<TensorType> types_;
  int rows_;
  bool fuses_;
  std::vector<RowPlace> places_;
  std::vector<int> in_pass_;  ///< [value] of those arranged together; -1: no function
  RoundOrder order_;
  std::vector<RoundStream> streams_;  ///< [value]
  std::vector<std::vector<int>> arranged_;
  std::map<int, std::int64_t> lanes_;  ///< of each pass
  std::map<int, RowPlace> received_;   ///< by state
  std::set<int> placed_;
  VertexProgram program_;
};

}  // namespace

std::optional<RowFunction> row_function_of(const OpDef& op) {
  static const std::map<std::string_view, RowFunction> functions{
      {"add", RowFunction::add},
      {"bias_add", RowFunction::add},
      {"mul", RowFunction::mul},
      {"scale", RowFunction::scale},
      {"sigmoid", RowFunction::sigmoid},
      {"tanh", RowFunction::tanh},
      {"relu", RowFunction::relu},
      {"sigmoid_grad", RowFunction::sigmoid_grad},
      {"tanh_grad", RowFunction::tanh_grad},
      {"relu_grad", RowFunction::relu_grad},
  };
  const auto found = functions.find(op.name);
  return found == functions.end() ? std::nullopt : std::optional(found->second);
}

bool takes_two(RowFunction function) {
  switch (function) {
    case RowFunction::add:
    case RowFunction::mul:
    case RowFunction::sigmoid_grad:
    case RowFunction::tanh_grad:
    case RowFunction::relu_grad:
      return true;
    default:
      return false;
  }
}

bool works_on_rows(const OpDef& op, const OpCall& call) {
  if (&op == &ops::bias_add) return call.operands[1].shape.size() == 1;
  if (&op != &ops::einsum)
    return &op == &ops::slice || &op == &ops::concat || row_function_of(op).has_value();
  const ShardingRule rule = rule_of(op, call);
  for (const std::size_t rows : {0, 1}) {
    const std::vector<DimensionFactors>&of = rule.operands[rows], &weight = rule.operands[1 - rows],
          &result = rule.results[0];
    if (of.size() != 3 || weight.size() != 2 || result.size() != 3) continue;
    if (of[0] != result[0] || of[1] != result[1]) continue;
    if (std::pair(weight[0], weight[1]) == std::pair(of[2], result[2]) ||
        std::pair(weight[1], weight[0]) == std::pair(of[2], result[2]))
      return true;
  }
  return false;
}

bool sums_up_rows(const OpDef& op, const OpCall& call) {
  if (&op == &ops::reduce_leading)
    return call.operands[0].shape.size() == 3 && call.attributes.integer("keep") == 1;
  if (&op != &ops::einsum) return false;
  const ShardingRule rule = rule_of(op, call);
  const std::vector<DimensionFactors>&a = rule.operands[0], &b = rule.operands[1], &sum = rule.results[0];
  return a.size() == 3 && b.size() == 3 && sum.size() == 2 && a[0] == b[0] && a[1] == b[1] &&
         (std::pair(sum[0], sum[1]) == std::pair(a[2], b[2]) ||
          std::pair(sum[0], sum[1]) == std::pair(b[2], a[2]));
}

bool VertexProgram::uses(RoundStream stream) const {
  return stream == RoundStream::leading || std::ranges::find(streams, stream) != streams.end();
}
int VertexProgram::streams_used() const {
  return static_cast<int>(
      std::ranges::count_if(kRoundStreams, [this](RoundStream each) { return uses(each); }));
}

VertexProgram vertex_program(const OpCall& call, RoundOrder order) { return ProgramMaker(call, order).run(); }

}  // namespace alpa
