#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/commands/timed_runs.h"

namespace alpa {

inline constexpr int kLayers = 8, kRank = 4, kTables = 4;
inline constexpr double kPixels = 64, kClasses = 10;

/// What is measured on. Links of many hosts are slower, as all of them take two cores, and tensors smaller.
struct Scale {
  int hosts = 4;
  double mbit = 1000, mbit_of_servers = 200;  ///< the second where as many hosts again send all the time
  double width = 1024;                        ///< of the perceptron
  int one_width = 3072;                       ///< of a perceptron of one layer
  double ids = 40'000, numbers = 256;         ///< rows of a table, and what is in one
  double looked_up = 4096;                    ///< ids of a device

  double bytes_per_s() const { return link_bytes_per_s(mbit); }
};
inline constexpr Scale kScaleOf4{}, kScaleOf8{8, 200, 100, 512, 1024, 10'000, 128, 512};
inline Scale scale = kScaleOf4;  ///< set before anything is measured

/// What one data-parallel step of bench_synchronisation's models takes by arithmetic alone, with that many
/// samples a device.
struct Formula {
  double samples, flops_per_s;

  static double weights() {
    return kLayers * scale.width * scale.width + kPixels * scale.width;
  }  ///< large ones
  static double others() { return scale.width * kClasses + kLayers * scale.width; }
  static double share() { return (scale.hosts - 1.0) / scale.hosts; }

  double forward_s() const { return 2 * samples * (weights() + others()) / flops_per_s; }
  /// Of the layers after the first no gradient is left out; the images have none.
  double backward_s() const { return 2 * forward_s() - 2 * samples * kPixels * scale.width / flops_per_s; }
  /// An all-reduce takes each device 2 (P - 1) / P of its bytes.
  static double sums_s(double elements) { return 2 * share() * 4 * elements / scale.bytes_per_s(); }
  /// Both factors of every large weight from the other devices, but for the images, which each reads.
  double factors_s() const {
    return (scale.hosts - 1) * samples * 4 * (kLayers * 2 * scale.width + scale.width) / scale.bytes_per_s();
  }
  double more_products_s() const { return 2 * (scale.hosts - 1) * samples * weights() / flops_per_s; }

  /// Of all gradients to as many servers as devices, and of all parameters back: each interface has as many
  /// bytes as one device sends.
  static double exchange_s(double mbit) { return 4 * (weights() + others()) / link_bytes_per_s(mbit); }
  /// In the step, or beside the next ones. What goes to one device comes from another meanwhile, in the other
  /// direction.
  double stale_s(int staleness, double mbit) const {
    const double computes_s = forward_s() + backward_s(), way_s = exchange_s(mbit);
    return staleness == 0 ? computes_s + way_s : std::max(computes_s, way_s);
  }

  /// All sums with k <= P further hosts, which makes 2 P (P - 1) / (P^2 + k P - 2 k) of their bytes (BytePS,
  /// OSDI'20).
  static double served_s(double k) {
    const double p = scale.hosts, bytes = 4 * (weights() + others());
    return 2 * p * (p - 1) / (p * p + k * p - 2 * k) * bytes / scale.bytes_per_s();
  }

  double in_turn_s() const { return forward_s() + backward_s() + sums_s(weights() + others()); }
  /// One device adds up all of it and hands it out (a lone parameter server): its interface takes the bytes
  /// of all others, once in each direction.
  double lone_owner_s() const {
    return forward_s() + backward_s() +
           2 * (scale.hosts - 1) * 4 * (weights() + others()) / scale.bytes_per_s();
  }
  /// Both factors of that rank of each large weight in place of its gradient (PowerSGD, NeurIPS'19), and the
  /// products with the gradient and its error that they take: two for each factor, and what is left out.
  double low_rank_s(double rank) const {
    const double factors = rank * (kLayers * 2 * scale.width + kPixels + scale.width);
    return forward_s() + backward_s() + sums_s(factors + others()) + 10 * rank * weights() / flops_per_s;
  }
  /// Sums of a step before are added up beside all of the next one.
  double delayed_s() const { return std::max(forward_s() + backward_s(), sums_s(weights() + others())); }
  double in_turn_in_bf16_s() const { return forward_s() + backward_s() + sums_s(weights() + others()) / 2; }
  /// The first sum begins when a layer's backward is done, the last ends one layer's sum after the backward
  /// or all sums, whichever takes longer (wait-free backpropagation: Poseidon, ATC'17, algorithm 1).
  double overlapped_s() const {
    const double backward = backward_s() / kLayers, sum = sums_s(weights() + others()) / kLayers;
    return forward_s() + backward + (kLayers - 1) * std::max(backward, sum) + sum;
  }
  /// Without a barrier, and what is used first first: a backward, then the next forward, of which each layer
  /// waits for its sum (ByteScheduler, SOSP'19, without preemption). Layers are alike.
  double without_barrier_s() const {
    const double forward = forward_s() / kLayers, backward = backward_s() / kLayers,
                 sum = sums_s(weights() + others()) / kLayers;
    double channel_s = 0, now_s = kLayers * backward;
    std::vector<double> done_s(kLayers, 0);
    for (int left = kLayers; left > 0; --left) {
      channel_s = std::max(channel_s, (kLayers - left + 1) * backward);  // the first that is left is there
      const auto ready_s = [&](int layer) { return (kLayers - layer) * backward; };
      for (int layer = 0; layer < kLayers; ++layer)
        if (done_s[layer] == 0 && ready_s(layer) <= channel_s * (1 + 1e-12)) {
          done_s[layer] = channel_s += sum;
          break;
        }
    }
    for (const double done : done_s) now_s = std::max(now_s, done) + forward;
    return now_s;
  }
  /// ZeRO-1 (Rajbhandari et al., SC'20): each half of a sum, its scatter beside the backward, and its gather,
  /// of what is updated when the norm is there, beside the next forward.
  double split_beside_s() const {
    const double forward = forward_s() / kLayers, backward = backward_s() / kLayers,
                 half = sums_s(weights() + others()) / kLayers / 2;
    return backward + (kLayers - 1) * std::max(backward, half) + half +  //
           half + (kLayers - 1) * std::max(forward, half) + forward;
  }
  /// Of NeuMF's perceptron: 2 n to 2 n, to n, to n / 2 numbers, and the score of these and n more.
  static double head() {
    return 2 * scale.numbers * (2 * scale.numbers + 1) + scale.numbers * (2 * scale.numbers + 1) +
           scale.numbers / 2 * (scale.numbers + 1) + 1.5 * scale.numbers + 1;
  }
  static double tables_s() { return sums_s(kTables * scale.ids * scale.numbers + head()); }
  /// A row for each id that a device has, from the other devices, and an id for each sample.
  double rows_s() const {
    const double different = scale.ids * (1 - std::pow(1 - 1 / scale.ids, samples));
    return (scale.hosts - 1) * kTables * 4 * (different * scale.numbers + samples) / scale.bytes_per_s() +
           sums_s(head());
  }
  double hybrid_s() const {
    return forward_s() + backward_s() + more_products_s() + factors_s() + sums_s(others());
  }
};

}  // namespace alpa
