#include "libalpa/dataset/open_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/dataset/mixed_tokens.h"
#include "libalpa/dataset/token_formats.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

fs::path with_ending(const fs::path& path, const char* ending) {
  const bool has_one = path.extension() == ".bin" || path.extension() == ".idx";
  return (has_one ? path.parent_path() / path.stem() : path).string() + ending;
}

bool is_megatron_pair(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(with_ending(path, ".idx"), ignored) &&
         fs::is_regular_file(with_ending(path, ".bin"), ignored);
}

std::unique_ptr<TokenSource> open_megatron_pair(const fs::path& path) {
  return open_megatron_tokens(with_ending(path, ".idx"), with_ending(path, ".bin"));
}

std::unique_ptr<TokenSource> open_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) && is_megatron_pair(path)) return open_megatron_pair(path);
  InputFile file(path);
  std::string first_bytes(static_cast<std::size_t>(std::min(file.bytes(), format_bytes)), '\0');
  file.read(0, first_bytes.data(), first_bytes.size());
  if (is_hdf5(first_bytes)) return open_hdf5_tokens(path);
  if (is_llmc(first_bytes)) return open_llmc_tokens(std::move(file));
  if (is_megatron_index(first_bytes)) return open_megatron_pair(path);
  if (path.extension() != ".bin" && path.extension() != ".idx") {
    check_is_text(path, first_bytes);
    return open_text_tokens(std::move(file));
  }
  if (is_megatron_pair(path)) return open_megatron_pair(path);
  throw Error(
      ErrorKind::input,
      fmt::format("cannot find out what '{}' holds: it does not begin as a token file of llm.c, and no "
                  "Megatron pair of .bin and .idx is there",
                  path.string()),
      "add the missing file; bare ids, as nanoGPT has them, go into an HDF5 file: f['tokens'] = "
      "numpy.fromfile('" +
          path.string() + "', 'uint16') with h5py");
}

}  // namespace

std::unique_ptr<TokenSource> open_tokens(const std::string& data) {
  constexpr std::string_view synthetic = "synthetic:";
  std::error_code ignored;
  if (data.starts_with("synthetic") && !data.starts_with(synthetic) && !fs::exists(data, ignored))
    throw Error(ErrorKind::input, fmt::format("cannot make tokens from '{}'", data),
                "synthetic:VOCABULARY, e.g. synthetic:256");
  if (data.starts_with(synthetic)) return make_synthetic_tokens(data.substr(synthetic.size()));
  if (names_mix(data)) return open_mixed_tokens(data);
  auto source = open_file(data);
  if (source->size() == 0)
    throw Error(ErrorKind::input, fmt::format("'{}' is empty", data), "check the path");
  return source;
}

std::vector<fs::path> data_files(const std::string& data) {
  if (data.empty()) return {};
  if (names_mix(data)) {
    std::vector<fs::path> files = mixed_files(data);
    files.push_back(data);
    return files;
  }
  if (!is_megatron_pair(data)) return {data};
  return {data, with_ending(data, ".idx"), with_ending(data, ".bin")};
}

}  // namespace alpa
