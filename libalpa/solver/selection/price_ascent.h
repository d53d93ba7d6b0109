#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/selection/dual_certificate.h"
#include "libalpa/solver/selection/message_passing.h"

namespace alpa {

/// Prices of memory for large networks, where no step of a search can afford an exact minimum: after each
/// sweep of messages the prices follow the overloads of the choice read off, smoothed over steps
/// (multiplicative weights: Arora, Hazan and Kale, 2012). Where the bound has not risen for some steps, the
/// best prices are taken up again and the pace slows. Borrows the network.
class PriceAscent {
 public:
  /// `start`: prices to begin with; empty: none are known.
  PriceAscent(const SelectionNetwork&, const std::vector<std::vector<int>>& incident,
              std::vector<double> start);

  /// One sweep, and new prices.
  void step();
  /// Keeps a pace at which choices differ from step to step.
  void wander() { pace_ = least_pace_ = 0.1; }
  bool has_settled() const { return pace_ < 1e-3; }

  double bound() const { return bound_; }  ///< the best so far, up to rounding
  const std::vector<double>& best_price() const { return best_price_; }
  const std::vector<double>& price() const { return price_; }  ///< of the present choice
  const std::vector<int>& choice() const { return messages_.choice(); }
  const MessagePassing& messages() const { return messages_; }
  double step_work() const;  ///< edge entries that a step looks at

  /// Sweeps at the best prices until the bound is steady, and proves it.
  Certificate certificate(const Deadline&);
  double certificate_work() const { return kCertificateSweeps * step_work(); }  ///< at most

 private:
  static constexpr int kCertificateSweeps = 30;

  double evaluate(const std::vector<double>& price);
  void find_first_prices();

  const SelectionNetwork& network_;
  MessagePassing messages_;
  std::vector<double> price_, next_price_, best_price_;
  std::vector<double> unit_;      // bytes per time point that count as all
  std::vector<double> overload_;  // smoothed, in units
  double bound_, pace_ = 0.5, least_pace_ = 0;
  int stalled_ = 0;
};

}  // namespace alpa
