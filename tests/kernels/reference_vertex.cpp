// Vertex functions, one vertex after another, each step by what its operator means.
#include <algorithm>

#include "libalpa/graph/vertex_body.h"
#include "libalpa/ops/vertex_states.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/reference_call.h"

namespace alpa {
namespace {

class OneByOne {
 public:
  explicit OneByOne(const ReferenceCall& c)
      : c_(c),
        body_(body_of(c.attributes, static_cast<int>(c.types.size()), vertex_catalog())),
        types_(value_types(body_, c.types)),
        rows_(c.attributes.integer("rows")),
        samples_(c.types[1].shape[0]),
        vertices_(c.types[1].shape[1]),
        children_(c.types[1].shape[2] - 1) {
    const std::size_t states = 8;
    published_.resize(states);
    given_back_.resize(states);
    for (const int value : body_.results)
      results_.emplace_back(static_cast<std::size_t>(element_count(type(value).shape)), 0.0);
  }

  ReferenceResults run() {
    const std::int64_t group = c_.attributes.integer("size_b") * vertices_;
    for (std::int64_t first = 0; first < samples_ * vertices_; first += group) {
      std::int64_t used = 0;
      for (std::int64_t row = 0; row < group; ++row) used = std::max(used, structure(first + row, children_));
      for (auto* rows : {&published_, &given_back_})
        for (std::vector<Values>& of_state : *rows) of_state.assign(static_cast<std::size_t>(group), {});
      // Rows stand in an order of rounds.
      for (std::int64_t i = 0; i < used; ++i) vertex(first, body_.states.empty() ? used - 1 - i : i);
    }
    return results_;
  }

 private:
  const TensorType& type(int value) const { return types_[static_cast<std::size_t>(value)]; }
  std::int64_t structure(std::int64_t row, std::int64_t column) const {
    return static_cast<std::int64_t>(c_.in[1][static_cast<std::size_t>(row * (children_ + 1) + column)]);
  }

  Values operand(int value, std::int64_t row) const {
    const Values& all = c_.in[static_cast<std::size_t>(value)];
    if (value >= rows_) return all;
    const auto width = type(value).shape.back();
    return {all.begin() + row * width, all.begin() + (row + 1) * width};
  }

  static void add(const Values& term, Values& sum) {
    if (sum.empty()) sum.assign(term.size(), 0.0);
    for (std::size_t i = 0; i < term.size(); ++i) sum[i] += term[i];
  }

  Values gathered(const Attributes& of, std::int64_t first, std::int64_t row) const {
    const std::vector<Values>& rows = published_[static_cast<std::size_t>(of.integer("state"))];
    const bool sum = of.integer("sum", 0) != 0;
    const auto width = static_cast<std::size_t>(of.integer("size_d") / (sum ? 1 : children_));
    Values together(sum ? width : 0, 0.0);
    for (std::int64_t c = 0; c < children_; ++c) {
      const std::int64_t child = structure(first + row, c);
      const Values of_child = child < 0 ? Values(width, 0.0) : rows[static_cast<std::size_t>(child)];
      if (sum)
        add(of_child, together);
      else
        together.insert(together.end(), of_child.begin(), of_child.end());
    }
    return together;
  }

  Values stepped(const VertexBody::Step& step, const std::vector<Values>& values) const {
    std::vector<TensorType> types;
    std::vector<Values> of;
    for (const int value : step.of) {
      TensorType one = type(value);
      if (one.shape.size() == 3) one.shape[0] = one.shape[1] = 1;
      types.push_back(one);
      of.push_back(values[static_cast<std::size_t>(value)]);
    }
    return reference(*step.op, {types, step.attributes}, of, c_.point)[0];
  }

  void vertex(std::int64_t first, std::int64_t row) {
    std::vector<Values> values;
    for (int i = 0; i < body_.operands; ++i) values.push_back(i == 1 ? Values() : operand(i, first + row));
    for (const VertexBody::Step& step : body_.steps) {
      if (step.op == &ops::gather) {
        values.push_back(gathered(step.attributes, first, row));
      } else if (step.op == &ops::received) {
        Values back = given_back_[static_cast<std::size_t>(step.attributes.integer("state"))]
                                 [static_cast<std::size_t>(row)];
        back.resize(static_cast<std::size_t>(step.attributes.integer("size_d")), 0.0);
        values.push_back(back);
      } else {
        values.push_back(stepped(step, values));
      }
    }
    for (std::size_t s = 0; s < body_.states.size(); ++s)
      published_[s][static_cast<std::size_t>(row)] = values[static_cast<std::size_t>(body_.states[s])];
    for (const VertexBody::Return& each : body_.returns) give_back(each, values, first, row);
    for (std::size_t r = 0; r < body_.results.size(); ++r) {
      const Values& of_row = values[static_cast<std::size_t>(body_.results[r])];
      if (is_sum_over_rows(type(body_.results[r])))
        add(of_row, results_[r]);
      else
        std::ranges::copy(of_row, results_[r].begin() + (first + row) * std::ssize(of_row));
    }
  }

  void give_back(const VertexBody::Return& each, const std::vector<Values>& values, std::int64_t first,
                 std::int64_t row) {
    const Values& all = values[static_cast<std::size_t>(each.value)];
    const std::int64_t width = each.to_each ? std::ssize(all) : std::ssize(all) / children_;
    for (std::int64_t c = 0; c < children_; ++c) {
      const std::int64_t child = structure(first + row, c), begin = each.to_each ? 0 : c * width;
      if (child >= 0)
        add({all.begin() + begin, all.begin() + begin + width},
            given_back_[static_cast<std::size_t>(each.state)][static_cast<std::size_t>(child)]);
    }
  }

  const ReferenceCall& c_;
  VertexBody body_;
  std::vector<TensorType> types_;
  std::int64_t rows_, samples_, vertices_, children_;
  std::vector<std::vector<Values>> published_, given_back_;  ///< [state][row of the group]
  ReferenceResults results_;
};

}  // namespace

ReferenceResults rounds_reference(const ReferenceCall& c) { return OneByOne(c).run(); }

}  // namespace alpa
