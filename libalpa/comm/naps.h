#pragma once

namespace alpa {

/// How long a thread that moves messages sleeps between two looks at them when nothing has moved. Times in
/// seconds.
class Naps {
 public:
  explicit Naps(double now_s) : moved_s_(now_s) {}

  /// Something has moved, so the next answer may come at once.
  void moved(double now_s);

  /// The next nap; 0: look again without one. `is_waited_for`: nobody computes meanwhile.
  double next_s(double now_s, bool is_waited_for);

 private:
  // A nap is at most a hundredth of the time since something moved, so nothing comes later than by that for
  // it. Where somebody computes meanwhile naps soon become longer: to wake takes some 20 us from that
  // (caches, and virtual machines' timers), and with naps of 50 us products of matrices took half as long
  // again. What is answered at once comes in the first, short ones.
  static constexpr double kShortest_s = 20e-6, kBesideComputation_s = 500e-6, kLongest_s = 1e-3;
  static constexpr int kPollsWhenWaitedFor = 100;  // without a nap

  double moved_s_, beside_computation_s_ = kShortest_s;
  int polls_ = 0;
};

}  // namespace alpa
