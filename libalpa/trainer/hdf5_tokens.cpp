#include <fmt/core.h>

#include "libalpa/h5/integer_row.h"
#include "libalpa/trainer/token_formats.h"

namespace alpa {
namespace {

class Hdf5Tokens final : public TokenSource {
 public:
  explicit Hdf5Tokens(const std::filesystem::path& path) : path_(path), row_(path, "/tokens") {}

  std::int64_t size() const override { return row_.size(); }
  void read(std::int64_t first, std::span<std::int32_t> into) const override { row_.read(first, into); }
  std::string description() const override {
    return fmt::format("HDF5 tokens '{}', {} tokens", path_.string(), row_.size());
  }

 private:
  std::filesystem::path path_;
  H5IntegerRow row_;
};

}  // namespace

bool is_hdf5(std::string_view first_bytes) { return first_bytes.starts_with("\x89HDF\r\n\x1a\n"); }

std::unique_ptr<TokenSource> open_hdf5_tokens(const std::filesystem::path& path) {
  return std::make_unique<Hdf5Tokens>(path);
}

}  // namespace alpa
