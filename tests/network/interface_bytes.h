#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace alpa {

/// Bytes that have left this host by its network, headers among them.
inline double interface_bytes() {
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double column = 0;
    if (words >> name; name != "eth0:") continue;
    for (int c = 0; c < 9; ++c) words >> column;  // eight of what came in, then the bytes that went out
    return column;
  }
  return -1;
}

/// That as many bytes as `payload` are what has left the host, and little else: 3 % of TCP/IP and 5 % more.
/// Headers of 66 bytes for each 1448, and an acknowledgement of as many for each second such packet that came
/// in, are 6.9 % where as much comes in as goes out (less where the kernel joins packets); the rest is for
/// what is lost and sent again.
inline void expect_left(double bytes, double payload) {
  EXPECT_GT(bytes, payload);
  EXPECT_LT(bytes, 1.03 * 1.05 * payload);
}

}  // namespace alpa
