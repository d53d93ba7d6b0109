#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace alpa {

/// The document of a page once its script has run; "" where there is no browser.
std::string shown_page(const std::filesystem::path& page);

/// Texts of the cells of the first table of that class, row by row, without their titles.
std::vector<std::vector<std::string>> cells_of(const std::string& dom, const std::string& name);

/// What in a page would make a request to a network; "" where nothing does.
std::string asks_network(const std::filesystem::path& page);

}  // namespace alpa
