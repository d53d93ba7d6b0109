#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"

namespace alpa {

/// Small host values known to all ranks. Keeps references.
class RankExchange {
 public:
  RankExchange(Device&, Communicator&);

  /// [rank][i], the same on every rank. All ranks give as many values.
  std::vector<std::vector<double>> gather(std::span<const double> mine);

  /// Every rank's text, cut to 255 characters.
  std::vector<std::string> gather(const std::string& mine);

  void barrier() { world_.barrier(); }

 private:
  std::vector<char> gather_bytes(const void* mine, std::int64_t bytes);

  Device& device_;
  Communicator& world_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace alpa
