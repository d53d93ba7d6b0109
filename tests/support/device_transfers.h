#pragma once
#include "libalpa/program/program.h"

namespace alpa {

/// A tensor that one device sends another.
inline StageTransfer device_transfer(const TensorType& type, DeviceIndex from, DeviceIndex to) {
  const ShardingSpec whole = replicated_spec(type.shape.size());
  StageTransfer transfer;
  static_cast<Transfer&>(transfer) = {type, {from, {}}, {to, {}}, whole, whole};
  transfer.route.tasks = {{Shape(type.shape.size()), type.shape, {from}, {to}}};
  transfer.route.messages = {{0, from, to, 0, element_count(type.shape)}};
  return transfer;
}

}  // namespace alpa
