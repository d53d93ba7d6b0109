#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/dataset/token_formats.h"
#include "libalpa/h5/rows.h"
#include "libalpa/tokenizer/tokenizer.h"

namespace alpa {
namespace {

class Hdf5Tokens final : public TokenSource {
 public:
  explicit Hdf5Tokens(const std::filesystem::path& path)
      : path_(path),
        rows_(path, "/tokens",
              "store the values as '/tokens', a one-dimensional dataset of an integer type") {
    if (!rows_.is_integer() || rows_.extent().size() != 1)
      throw rows_.error("expected one dimension of integers");
    document_end_ = carried_end_of_text(path.string());
  }

  bool can_read_ahead() const override { return rows_.is_plain(); }
  std::int64_t held_bytes() const override { return rows_.held_bytes(); }
  std::optional<std::int32_t> document_end() const override { return document_end_; }
  std::int64_t size() const override { return rows_.extent()[0]; }
  void read(std::int64_t first, std::span<std::int32_t> into) const override {
    rows_.read(first, static_cast<std::int64_t>(into.size()), into.data());
  }
  std::string description() const override {
    return fmt::format("HDF5 tokens '{}', {} tokens", path_.string(), size());
  }

 private:
  std::filesystem::path path_;
  H5Rows rows_;
  std::optional<std::int32_t> document_end_;
};

}  // namespace

bool is_hdf5(std::string_view first_bytes) { return first_bytes.starts_with("\x89HDF\r\n\x1a\n"); }

std::unique_ptr<TokenSource> open_hdf5_tokens(const std::filesystem::path& path) {
  return std::make_unique<Hdf5Tokens>(path);
}

}  // namespace alpa
