#pragma once
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {

/// A folder with sources that tests write.
class SmallSources : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::filesystem::path write_compressed(const std::string& name, const std::string& bytes) const {
    const gzFile file = gzopen(path(name).c_str(), "wb");
    EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    gzclose(file);
    return path(name);
  }

  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// An IDX file of bytes.
  static std::string idx(const std::vector<std::uint32_t>& extents, const std::string& values) {
    std::string bytes{'\0', '\0', '\x08', static_cast<char>(extents.size())};
    for (const std::uint32_t extent : extents)
      for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(extent >> shift));
    return bytes + values;
  }

  Log log_{"test", LogLevel::off};

 private:
  TemporaryFolder folder_;
};

}  // namespace alpa
