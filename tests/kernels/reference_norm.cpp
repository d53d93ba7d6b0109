#include <algorithm>
#include <cmath>

#include "tests/kernels/reference_call.h"

namespace alpa {
namespace {

/// Tensors [n ... (g c)] and their statistics [n g].
struct ChannelGroups {
  std::size_t n, places, g, c;

  explicit ChannelGroups(const ReferenceCall& call)
      : n(call.extent(0, 0)),
        places(call.in[0].size() / n / call.width(0)),
        g(static_cast<std::size_t>(call.attributes.integer("size_g"))),
        c(call.width(0) / g) {}

  double count() const { return static_cast<double>(places * c); }

  /// body(element, statistic, channel)
  template <class Body>
  void for_elements(const Body& body) const {
    for (std::size_t i = 0; i < n * places * g * c; ++i)
      body(i, i / (places * g * c) * g + i % (g * c) / c, i % (g * c));
  }
};

/// Tensors [(m b) ... c] and their statistics [m c].
struct SampleGroups {
  std::size_t m, rows, c;

  explicit SampleGroups(const ReferenceCall& call)
      : m(call.extent(0, 0) / static_cast<std::size_t>(call.attributes.integer("size_b"))),
        rows(call.in[0].size() / m / call.width(0)),
        c(call.width(0)) {}

  double count() const { return static_cast<double>(rows); }

  /// body(element, statistic, channel)
  template <class Body>
  void for_elements(const Body& body) const {
    for (std::size_t i = 0; i < m * rows * c; ++i) body(i, i / (rows * c) * c + i % c, i % c);
  }
};

double scale_of(const ReferenceCall& call, double variance) {
  return 1 / std::sqrt(variance + call.attributes.number("epsilon"));
}

}  // namespace

ReferenceResults running_statistic_reference(const ReferenceCall& call) { return {call.in[0]}; }

ReferenceResults running_update_reference(const ReferenceCall& call) {
  const double momentum = call.attributes.number("momentum");
  Values averages;
  for (std::size_t c = 0; c < call.in[0].size(); ++c) {
    const double mean =
        call.in[1][c] / static_cast<double>(call.attributes.integer("groups")) * call.in[2][3];
    averages.push_back((1 - momentum) * call.in[0][c] +
                       momentum * call.attributes.number("correction", 1) * mean);
  }
  return {averages};
}

ReferenceResults group_norm_reference(const ReferenceCall& call) {
  const ChannelGroups groups(call);
  const Values& x = call.in[0];
  Values y(x.size()), means(groups.n * groups.g, 0.0), scales(groups.n * groups.g, 0.0);
  groups.for_elements([&](std::size_t i, std::size_t s, std::size_t) { means[s] += x[i] / groups.count(); });
  groups.for_elements([&](std::size_t i, std::size_t s, std::size_t) {
    scales[s] += std::pow(x[i] - means[s], 2) / groups.count();
  });
  for (double& scale : scales) scale = scale_of(call, scale);
  groups.for_elements([&](std::size_t i, std::size_t s, std::size_t c) {
    y[i] = (x[i] - means[s]) * scales[s] * call.in[1][c] + call.in[2][c];
  });
  return {y, means, scales};
}

ReferenceResults group_norm_grad_reference(const ReferenceCall& call) {
  const ChannelGroups groups(call);
  const Values &dy = call.in[0], &x = call.in[1], &gain = call.in[2], &mean = call.in[3], &scale = call.in[4];
  Values dx(x.size()), dgain(gain.size(), 0.0), dbias(gain.size(), 0.0);
  Values mean_g(mean.size(), 0.0), mean_gh(mean.size(), 0.0);
  groups.for_elements([&](std::size_t i, std::size_t s, std::size_t c) {
    const double h = (x[i] - mean[s]) * scale[s];
    dgain[c] += dy[i] * h;
    dbias[c] += dy[i];
    mean_g[s] += dy[i] * gain[c] / groups.count();
    mean_gh[s] += dy[i] * gain[c] * h / groups.count();
  });
  groups.for_elements([&](std::size_t i, std::size_t s, std::size_t c) {
    const double h = (x[i] - mean[s]) * scale[s];
    dx[i] = scale[s] * (dy[i] * gain[c] - mean_g[s] - h * mean_gh[s]);
  });
  return {dx, dgain, dbias};
}

ReferenceResults channel_mean_reference(const ReferenceCall& call) {
  const SampleGroups groups(call);
  Values means(groups.m * groups.c, 0.0);
  groups.for_elements(
      [&](std::size_t i, std::size_t s, std::size_t) { means[s] += call.in[0][i] / groups.count(); });
  return {means};
}

ReferenceResults channel_variance_reference(const ReferenceCall& call) {
  const SampleGroups groups(call);
  Values variances(groups.m * groups.c, 0.0);
  groups.for_elements([&](std::size_t i, std::size_t s, std::size_t) {
    variances[s] += std::pow(call.in[0][i] - call.in[1][s], 2) / groups.count();
  });
  return {variances};
}

ReferenceResults batch_norm_reference(const ReferenceCall& call) {
  Values y(call.in[0].size());
  SampleGroups(call).for_elements([&](std::size_t i, std::size_t s, std::size_t c) {
    y[i] = (call.in[0][i] - call.in[1][s]) * scale_of(call, call.in[2][s]) * call.in[3][c] + call.in[4][c];
  });
  return {y};
}

ReferenceResults batch_norm_relu_reference(const ReferenceCall& call) {
  ReferenceResults results = batch_norm_reference(call);
  for (double& y : results[0]) y = std::max(y, 0.0);
  return results;
}

ReferenceResults batch_norm_add_relu_reference(const ReferenceCall& call) {
  ReferenceResults results = batch_norm_reference(call);
  for (std::size_t i = 0; i < results[0].size(); ++i)
    results[0][i] = std::max(results[0][i] + call.in[5][i], 0.0);
  return results;
}

ReferenceResults batch_norm_sums_reference(const ReferenceCall& call) {
  const SampleGroups groups(call);
  Values dy_sums(groups.m * groups.c, 0.0), dyh_sums(groups.m * groups.c, 0.0);
  groups.for_elements([&](std::size_t i, std::size_t s, std::size_t) {
    dy_sums[s] += call.in[0][i];
    dyh_sums[s] += call.in[0][i] * (call.in[1][i] - call.in[2][s]) * scale_of(call, call.in[3][s]);
  });
  return {dy_sums, dyh_sums};
}

ReferenceResults batch_norm_grad_reference(const ReferenceCall& call) {
  const SampleGroups groups(call);
  Values dx(call.in[0].size());
  groups.for_elements([&](std::size_t i, std::size_t s, std::size_t c) {
    const double scale = scale_of(call, call.in[3][s]), h = (call.in[1][i] - call.in[2][s]) * scale;
    dx[i] = scale * call.in[4][c] *
            (call.in[0][i] - call.in[5][s] / groups.count() - h * call.in[6][s] / groups.count());
  });
  return {dx};
}

namespace {

/// dy where the norm of x with gain and bias, operands 4 and 5, is positive, else 0.
Values gradient_under_relu(const ReferenceCall& call) {
  Values dy = call.in[0];
  SampleGroups(call).for_elements([&](std::size_t i, std::size_t s, std::size_t c) {
    const double h = (call.in[1][i] - call.in[2][s]) * scale_of(call, call.in[3][s]);
    if (h * call.in[4][c] + call.in[5][c] <= 0) dy[i] = 0;
  });
  return dy;
}

}  // namespace

ReferenceResults batch_norm_relu_sums_reference(const ReferenceCall& call) {
  std::vector<Values> in(call.in.begin(), call.in.end());
  in[0] = gradient_under_relu(call);
  return batch_norm_sums_reference({call.op, call.types, call.attributes, in, call.point});
}

ReferenceResults batch_norm_relu_grad_reference(const ReferenceCall& call) {
  std::vector<Values> in(call.in.begin(), call.in.end());
  in[0] = gradient_under_relu(call);
  in.erase(in.begin() + 5);
  return batch_norm_grad_reference({call.op, call.types, call.attributes, in, call.point});
}

ReferenceResults layer_norm_reference(const ReferenceCall& c) {
  const std::size_t n = c.width(0), rows = c.in[0].size() / n;
  Values y(c.in[0].size()), means, scales;
  for (std::size_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < n; ++i) mean += c.in[0][r * n + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      variance += std::pow(c.in[0][r * n + i] - mean, 2) / static_cast<double>(n);
    means.push_back(mean);
    scales.push_back(1 / std::sqrt(variance + c.attributes.number("epsilon")));
    for (std::size_t i = 0; i < n; ++i)
      y[r * n + i] = (c.in[0][r * n + i] - mean) * scales[r] * c.in[1][i] + c.in[2][i];
  }
  return {y, means, scales};
}

ReferenceResults layer_norm_grad_reference(const ReferenceCall& c) {
  const std::size_t n = c.width(0), rows = c.in[0].size() / n;
  Values dx(c.in[0].size()), dgain(n, 0.0), dbias(n, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    const double mean = c.in[3][r], scale = c.in[4][r];
    double mean_g = 0, mean_gh = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double dy = c.in[0][r * n + i], h = (c.in[1][r * n + i] - mean) * scale;
      dgain[i] += dy * h;
      dbias[i] += dy;
      mean_g += dy * c.in[2][i] / static_cast<double>(n);
      mean_gh += dy * c.in[2][i] * h / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double h = (c.in[1][r * n + i] - mean) * scale;
      dx[r * n + i] = scale * (c.in[0][r * n + i] * c.in[2][i] - mean_g - h * mean_gh);
    }
  }
  return {dx, dgain, dbias};
}

ReferenceResults rms_norm_reference(const ReferenceCall& c) {
  const std::size_t n = c.width(0), rows = c.in[0].size() / n;
  Values y(c.in[0].size()), scales;
  for (std::size_t r = 0; r < rows; ++r) {
    double square = 0;
    for (std::size_t i = 0; i < n; ++i)
      square += c.in[0][r * n + i] * c.in[0][r * n + i] / static_cast<double>(n);
    scales.push_back(1 / std::sqrt(square + c.attributes.number("epsilon")));
    for (std::size_t i = 0; i < n; ++i) y[r * n + i] = c.in[0][r * n + i] * scales[r] * c.in[1][i];
  }
  return {y, scales};
}

ReferenceResults rms_norm_grad_reference(const ReferenceCall& c) {
  const std::size_t n = c.width(0), rows = c.in[0].size() / n;
  Values dx(c.in[0].size()), dgain(n, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    const double scale = c.in[3][r];
    double mean_gh = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double dy = c.in[0][r * n + i], h = c.in[1][r * n + i] * scale;
      dgain[i] += dy * h;
      mean_gh += dy * c.in[2][i] * h / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i)
      dx[r * n + i] = scale * (c.in[0][r * n + i] * c.in[2][i] - c.in[1][r * n + i] * scale * mean_gh);
  }
  return {dx, dgain};
}

}  // namespace alpa
