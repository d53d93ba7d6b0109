#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/dataset/mixed_tokens.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/dataset/token_formats.h"
#include "libalpa/h5/rows.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

struct MixedSource {
  std::string data;
  double weight;
  std::int64_t repeat;
};

/// Paths are beside the file.
std::vector<MixedSource> read_mix(const fs::path& file) {
  TomlDocument document = read_toml(file);
  std::vector<MixedSource> sources;
  for (const TomlTable& table : document.root().tables("source")) {
    std::string data = table.string("data");
    if (names_mix(data)) table.fault("a mix within a mix");
    if (!data.starts_with("synthetic:")) data = (file.parent_path() / data).string();
    sources.push_back(
        {std::move(data), table.number("weight", more_than(0)), table.integer("repeat", 1, between(1, 1e6))});
  }
  if (sources.empty() && document.fault_count() == 0)
    document.root().fault("expected a table [[source]] for each source");
  document.finish();
  return sources;
}

/// As much of the tokenizer in a file as tells it from others; "" where it has none.
std::string tokenizer_sign(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return "";
  const InputFile input(file);
  std::string first(static_cast<std::size_t>(std::min<std::int64_t>(input.bytes(), 8)), '\0');
  input.read(0, first.data(), first.size());
  if (!is_hdf5(first) || !has_dataset(file, "/tokenizer")) return "";
  const H5Rows rows(file, "/tokenizer", "convert the text again");
  if (!rows.is_bytes() || rows.extent().size() != 1) throw rows.error("expected one dimension of bytes");
  const std::int64_t bytes = rows.extent()[0], end = std::min<std::int64_t>(bytes, 4096);
  std::string sign(static_cast<std::size_t>(end), '\0');
  if (end > 0) rows.read(bytes - end, end, reinterpret_cast<std::uint8_t*>(sign.data()));
  return fmt::format("{} {}", bytes, sign);
}

}  // namespace

bool names_mix(const std::string& data) { return data.ends_with(".toml"); }

std::unique_ptr<TokenSource> open_mixed_tokens(const fs::path& file) {
  std::vector<MixedTokens::Part> parts;
  std::string sign, signed_name;
  for (const MixedSource& source : read_mix(file)) {
    const std::string own = tokenizer_sign(source.data);
    if (!sign.empty() && !own.empty() && own != sign)
      throw Error(ErrorKind::input,
                  fmt::format("'{}': the tokens of '{}' and '{}' were made by different tokenizers",
                              file.string(), signed_name, source.data),
                  "convert the texts with one");
    if (!own.empty()) std::tie(sign, signed_name) = std::pair(own, source.data);
    parts.push_back({open_tokens(source.data), source.data, source.weight, source.repeat});
  }
  return std::make_unique<MixedTokens>(file.string(), std::move(parts));
}

std::vector<fs::path> mixed_files(const fs::path& file) {
  std::vector<fs::path> files;
  try {
    for (const MixedSource& source : read_mix(file))
      for (fs::path& one : data_files(source.data)) files.push_back(std::move(one));
  } catch (const Error&) {  // which is reported where the mix is opened
  }
  return files;
}

}  // namespace alpa
