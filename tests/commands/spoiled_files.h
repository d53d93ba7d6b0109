#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

// Ways to spoil an HDF5 file that was good.

namespace alpa {

void cut_in_half(const std::filesystem::path&);
/// Turns round one bit of the first place that holds this text; throws where there is none.
void flip_bit_in(const std::filesystem::path&, const std::string& text);

/// Each sets something that HDF5 itself finds in order.
void set_text_attribute(const std::filesystem::path&, const std::string& object, const std::string& name,
                        const std::string& value);
void add_external_link(const std::filesystem::path&);
void set_number(const std::filesystem::path&, const std::string& dataset,
                std::int64_t value);  ///< of the first element
void set_number_attribute(const std::filesystem::path&, const std::string& object, const std::string& name,
                          std::int64_t value);

/// Paths of all datasets of integers.
std::vector<std::string> integer_datasets(const std::filesystem::path&);

}  // namespace alpa
