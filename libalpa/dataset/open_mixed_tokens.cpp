#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/toml_document.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/mixed_tokens.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/dataset/token_formats.h"
#include "libalpa/h5/rows.h"
#include "libalpa/tokenizer/tokenizer.h"

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

/// What the tokenizer of a file and no other has; "" where it is not known. The bytes of a text are tokens
/// too.
std::string tokenizer_sign(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return "";
  const std::string first = first_bytes_of(file, format_bytes);
  if (is_hdf5(first))
    return has_dataset(file, "/tokenizer") ? fingerprint(read_tokenizer_file(file.string()).content) : "";
  const bool are_tokens =
      is_llmc(first) || is_megatron_index(first) || file.extension() == ".bin" || file.extension() == ".idx";
  return are_tokens ? "" : fingerprint("bytes");
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
