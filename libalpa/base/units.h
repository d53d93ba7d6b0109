#pragma once
#include <cstdint>
#include <string>

namespace alpa {

std::string bytes_text(double bytes);  ///< "512 B", "1.50 MiB", "2.00 GiB" (powers of 1024)
std::string bytes_text(std::int64_t bytes);
std::string seconds_text(
    double seconds);  ///< "0 s", "12.3 us", "4.56 ms", "7.89 s", "2m05s", "3h07m", "5.0 days", "3.2 years"
std::string rate_text(double per_s,
                      const char* unit);  ///< 1.5e9, "FLOP/s" -> "1.50 GFLOP/s" (powers of 1000)

std::string count_text(std::int64_t count, const std::string& noun);  ///< "1 stage", "2 stages", "4 batches"

}  // namespace alpa
