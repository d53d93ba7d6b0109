#pragma once
#include <compare>
#include <cstdint>
#include <optional>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// What devices send of a tensor, where that is not all of it as it lies.
struct WireFormat {
  /// In which terms of a sum are sent and added up: a smaller type than the tensor's (lossy).
  std::optional<DType> sum_type = {};
  /// The ids that rows below the last dimension may have; 0: rows have no ids and are all sent. Those with id
  /// -1, which hold nothing, are not; on a device they come last.
  std::int64_t vocabulary = 0;
  /// The share of a device's rows that is expected to hold something; 0: as many as ids drawn uniformly would
  /// leave, on average the most of all ids that are drawn each for itself.
  double distinct_share = 0;

  auto operator<=>(const WireFormat&) const = default;

  /// Expected share of the rows of a device's tile that are sent: of n ids drawn from V, V (1 - (1 - 1/V)^n)
  /// differ.
  double sent_share(const Shape& tile) const;
};

}  // namespace alpa
