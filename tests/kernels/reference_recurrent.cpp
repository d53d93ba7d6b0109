#include <algorithm>
#include <cmath>

#include "tests/kernels/reference_call.h"

namespace alpa {
namespace {

/// Where sequences lie in operands [b s h], [b s g h] and weights [h g h].
struct Sequences {
  std::size_t batch, steps, gates, h;
  bool reverse;
  const Values& lengths;

  Sequences(const ReferenceCall& c, std::size_t gates_at, std::size_t lengths_at)
      : batch(c.extent(gates_at, 0)),
        steps(c.extent(gates_at, 1)),
        gates(c.extent(gates_at, 2)),
        h(c.extent(gates_at, 3)),
        reverse(c.attributes.integer("reverse", 0) != 0),
        lengths(c.in[lengths_at]) {}

  std::size_t state_size() const { return batch * steps * h; }
  std::size_t gates_size() const { return state_size() * gates; }

  std::size_t state(std::size_t b, std::size_t t, std::size_t j) const { return (b * steps + t) * h + j; }
  std::size_t gate(std::size_t b, std::size_t t, std::size_t g, std::size_t j) const {
    return ((b * steps + t) * gates + g) * h + j;
  }
  std::size_t weight(std::size_t k, std::size_t g, std::size_t j) const { return (k * gates + g) * h + j; }

  /// The steps of a sample in the order of the recurrence.
  std::vector<std::size_t> order(std::size_t b) const {
    std::vector<std::size_t> order;
    for (std::size_t t = 0; t < steps && static_cast<double>(t) < lengths[b]; ++t) order.push_back(t);
    if (reverse) std::reverse(order.begin(), order.end());
    return order;
  }

  /// Element j of gate g of the product of a state with the weight.
  double product(const Values& state, const Values& w, std::size_t g, std::size_t j) const {
    double sum = 0;
    for (std::size_t k = 0; k < h; ++k) sum += state[k] * w[weight(k, g, j)];
    return sum;
  }

  /// dstate[k] += sum over gates and j of dproducts[g, j] weight[k, g, j]
  void add_back(const Values& dproducts, std::size_t b, std::size_t t, const Values& w,
                Values& dstate) const {
    for (std::size_t k = 0; k < h; ++k)
      for (std::size_t g = 0; g < gates; ++g)
        for (std::size_t j = 0; j < h; ++j) dstate[k] += dproducts[gate(b, t, g, j)] * w[weight(k, g, j)];
  }
};

}  // namespace

ReferenceResults lstm_reference(const ReferenceCall& c) {
  const Sequences q(c, 0, 2);
  const Values &x = c.in[0], &w = c.in[1];
  Values hidden(q.state_size()), cells(q.state_size()), activations(q.gates_size());
  for (std::size_t b = 0; b < q.batch; ++b) {
    Values state(q.h, 0.0), cell(q.h, 0.0);
    for (const std::size_t t : q.order(b)) {
      Values after(q.h);
      for (std::size_t j = 0; j < q.h; ++j) {
        double gate[4];
        for (std::size_t g = 0; g < 4; ++g) {
          const double sum = x[q.gate(b, t, g, j)] + q.product(state, w, g, j);
          gate[g] = g == 2 ? std::tanh(sum) : logistic(sum);
          activations[q.gate(b, t, g, j)] = gate[g];
        }
        cell[j] = gate[1] * cell[j] + gate[0] * gate[2];
        after[j] = gate[3] * std::tanh(cell[j]);
        cells[q.state(b, t, j)] = cell[j];
        hidden[q.state(b, t, j)] = after[j];
      }
      state = after;
    }
  }
  return {hidden, cells, activations};
}

ReferenceResults lstm_grad_reference(const ReferenceCall& c) {
  const Sequences q(c, 3, 5);
  const Values &dhidden = c.in[0], &hidden = c.in[1], &cells = c.in[2], &activations = c.in[3];
  Values dgates(q.gates_size()), previous(q.state_size());
  for (std::size_t b = 0; b < q.batch; ++b) {
    Values dstate(q.h, 0.0), dcell(q.h, 0.0);
    const std::vector<std::size_t> order = q.order(b);
    for (std::size_t n = order.size(); n-- > 0;) {
      const std::size_t t = order[n];
      for (std::size_t j = 0; j < q.h; ++j) {
        const auto gate = [&](std::size_t g) { return activations[q.gate(b, t, g, j)]; };
        const double i = gate(0), f = gate(1), g = gate(2), o = gate(3);
        const double y = std::tanh(cells[q.state(b, t, j)]);
        const double cell_before = n > 0 ? cells[q.state(b, order[n - 1], j)] : 0;
        if (n > 0) previous[q.state(b, t, j)] = hidden[q.state(b, order[n - 1], j)];
        const double dh = dstate[j] + dhidden[q.state(b, t, j)];
        const double dc = dcell[j] + dh * o * (1 - y * y);
        dgates[q.gate(b, t, 0, j)] = dc * g * i * (1 - i);
        dgates[q.gate(b, t, 1, j)] = dc * cell_before * f * (1 - f);
        dgates[q.gate(b, t, 2, j)] = dc * i * (1 - g * g);
        dgates[q.gate(b, t, 3, j)] = dh * y * o * (1 - o);
        dcell[j] = dc * f;
      }
      std::fill(dstate.begin(), dstate.end(), 0.0);
      q.add_back(dgates, b, t, c.in[4], dstate);
    }
  }
  return {dgates, previous};
}

ReferenceResults gru_reference(const ReferenceCall& c) {
  const Sequences q(c, 0, 3);
  const Values &x = c.in[0], &w = c.in[1], &bias = c.in[2];
  Values hidden(q.state_size()), activations(q.gates_size()), recurrent(q.state_size());
  for (std::size_t b = 0; b < q.batch; ++b) {
    Values state(q.h, 0.0);
    for (const std::size_t t : q.order(b)) {
      Values after(q.h);
      for (std::size_t j = 0; j < q.h; ++j) {
        const auto p = [&](std::size_t g) { return q.product(state, w, g, j) + bias[g * q.h + j]; };
        const double r = logistic(x[q.gate(b, t, 0, j)] + p(0)), z = logistic(x[q.gate(b, t, 1, j)] + p(1));
        const double n = std::tanh(x[q.gate(b, t, 2, j)] + r * p(2));
        after[j] = (1 - z) * n + z * state[j];
        activations[q.gate(b, t, 0, j)] = r;
        activations[q.gate(b, t, 1, j)] = z;
        activations[q.gate(b, t, 2, j)] = n;
        recurrent[q.state(b, t, j)] = p(2);
        hidden[q.state(b, t, j)] = after[j];
      }
      state = after;
    }
  }
  return {hidden, activations, recurrent};
}

ReferenceResults gru_grad_reference(const ReferenceCall& c) {
  const Sequences q(c, 3, 5);
  const Values &dhidden = c.in[0], &hidden = c.in[1], &recurrent = c.in[2], &activations = c.in[3];
  Values dgates(q.gates_size()), dproducts(q.gates_size()), previous(q.state_size());
  for (std::size_t b = 0; b < q.batch; ++b) {
    Values dstate(q.h, 0.0);
    const std::vector<std::size_t> order = q.order(b);
    for (std::size_t at = order.size(); at-- > 0;) {
      const std::size_t t = order[at];
      for (std::size_t j = 0; j < q.h; ++j) {
        const double r = activations[q.gate(b, t, 0, j)], z = activations[q.gate(b, t, 1, j)],
                     n = activations[q.gate(b, t, 2, j)];
        const double before = at > 0 ? hidden[q.state(b, order[at - 1], j)] : 0;
        previous[q.state(b, t, j)] = before;
        const double dh = dstate[j] + dhidden[q.state(b, t, j)];
        const double dn = dh * (1 - z) * (1 - n * n);
        const double dr = dn * recurrent[q.state(b, t, j)] * r * (1 - r),
                     dz = dh * (before - n) * z * (1 - z);
        const double of_gates[] = {dr, dz, dn}, of_products[] = {dr, dz, dn * r};
        for (std::size_t g = 0; g < 3; ++g) {
          dgates[q.gate(b, t, g, j)] = of_gates[g];
          dproducts[q.gate(b, t, g, j)] = of_products[g];
        }
        dstate[j] = dh * z;
      }
      q.add_back(dproducts, b, t, c.in[4], dstate);
    }
  }
  return {dgates, dproducts, previous};
}

ReferenceResults step_weights_reference(const ReferenceCall& c) {
  const auto steps = static_cast<std::size_t>(c.attributes.integer("size_s"));
  Values weights;
  for (const double length : c.in[0])
    for (std::size_t t = 0; t < steps; ++t) {
      const double inside = std::min(length, static_cast<double>(steps));
      weights.push_back(static_cast<double>(t) >= inside  ? 0
                        : c.attributes.integer("mean", 0) ? 1 / inside
                                                          : 1);
    }
  return {weights};
}

ReferenceResults pool_steps_reference(const ReferenceCall& c) {
  const Values &x = c.in[0], &weights = c.in[1];
  const std::size_t width = x.size() / weights.size(), steps = c.extent(1, 1);
  Values sums(c.extent(1, 0) * width);
  for (std::size_t i = 0; i < x.size(); ++i)
    sums[i / width / steps * width + i % width] += weights[i / width] * x[i];
  return {sums};
}

ReferenceResults pool_steps_grad_reference(const ReferenceCall& c) {
  const Values &dy = c.in[0], &weights = c.in[1];
  const std::size_t width = dy.size() / c.extent(1, 0), steps = c.extent(1, 1);
  Values dx(weights.size() * width);
  for (std::size_t i = 0; i < dx.size(); ++i)
    dx[i] = weights[i / width] * dy[i / width / steps * width + i % width];
  return {dx};
}

}  // namespace alpa
