#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/dataset/converted_file.h"
#include "libalpa/h5/rows_writer.h"

namespace alpa {
namespace {

constexpr std::int64_t piece_tokens = 1 << 16;

/// Calls take(first, tokens) for pieces of [first, last).
template <class Take>
void for_each_piece(const TokenSource& source, std::int64_t first, std::int64_t last, ByteProgress& progress,
                    Take&& take) {
  std::vector<std::int32_t> tokens;
  while (first < last) {
    tokens.resize(static_cast<std::size_t>(std::min(piece_tokens, last - first)));
    source.read(first, tokens);
    take(first, std::span<const std::int32_t>(tokens));
    first += std::ssize(tokens);
    progress.add(std::ssize(tokens) * static_cast<std::int64_t>(sizeof(std::int32_t)));
  }
}

// Those that did not fit 32 bits were made the highest or lowest that do.
std::int32_t highest_of(const TokenSource& source, ByteProgress& progress) {
  std::int32_t highest = 0;
  for_each_piece(source, 0, source.size(), progress,
                 [&](std::int64_t first, std::span<const std::int32_t> tokens) {
                   check_tokens(source, first, tokens, std::numeric_limits<std::int32_t>::max());
                   highest = std::max(highest, *std::max_element(tokens.begin(), tokens.end()));
                 });
  return highest;
}

template <class Stored>
void append_as(H5RowsWriter& file, int dataset, std::span<const std::int32_t> tokens) {
  const std::vector<Stored> stored(tokens.begin(), tokens.end());
  file.append(dataset, std::ssize(stored), stored.data());
}

/// A file of the tokens [first, last), whose highest is known.
class TokensFile {
 public:
  TokensFile(const std::filesystem::path& path, std::int64_t tokens, std::int32_t highest,
             const std::optional<MadeBy>& made_by, const Provenance& provenance)
      : file_(path, converted_format, converted_version),
        type_(highest < 1 << 8    ? RowsType::u8
              : highest < 1 << 16 ? RowsType::u16
                                  : RowsType::i32),
        dataset_(file_.declare("/tokens", type_, {tokens})) {
    file_.attribute("/tokens", "highest", std::int64_t{highest});
    const int tokenizer = made_by ? declare(*made_by) : -1;
    file_.provenance(provenance);
    if (made_by) file_.append(tokenizer, std::ssize(made_by->file.content), made_by->file.content.data());
  }

  void append(std::span<const std::int32_t> tokens) {
    if (type_ == RowsType::u8)
      append_as<std::uint8_t>(file_, dataset_, tokens);
    else if (type_ == RowsType::u16)
      append_as<std::uint16_t>(file_, dataset_, tokens);
    else
      append_as<std::int32_t>(file_, dataset_, tokens);
  }

  void publish() { file_.publish(); }

 private:
  int declare(const MadeBy& made_by) {
    const int dataset = file_.declare("/tokenizer", RowsType::u8, {std::ssize(made_by.file.content)});
    file_.attribute("/tokenizer", "description", std::string_view(made_by.description));
    file_.attribute("/tokenizer", "vocabulary", made_by.vocabulary);
    if (made_by.end_of_text) file_.attribute("/tokenizer", "end_of_text", std::int64_t{*made_by.end_of_text});
    return dataset;
  }

  H5RowsWriter file_;
  RowsType type_;
  int dataset_;
};

}  // namespace

void convert_tokens(const TokenSource& source, const std::optional<MadeBy>& made_by,
                    const ConvertSettings& settings, const Provenance& provenance, Log& log) {
  const std::int64_t held_out = held_out_rows(settings, source.size()), kept = source.size() - held_out;
  const std::int64_t bytes = source.size() * static_cast<std::int64_t>(sizeof(std::int32_t));
  ByteProgress looking("looking through the tokens", bytes, log);
  const std::int32_t highest = highest_of(source, looking);
  if (made_by && highest >= made_by->vocabulary)
    throw Error(ErrorKind::input,
                fmt::format("{}: ids up to {}, and the tokenizer '{}' has ids below {}", source.description(),
                            highest, made_by->file.name, made_by->vocabulary),
                "--tokenizer with the one that made the tokens");
  ByteProgress writing(fmt::format("writing '{}'", settings.out.string()), bytes, log);
  TokensFile training(settings.out, kept, highest, made_by, provenance);
  std::optional<TokensFile> evaluation;
  if (held_out > 0) evaluation.emplace(hold_out_file(settings), held_out, highest, made_by, provenance);
  const auto write = [&](TokensFile& file, std::int64_t first, std::int64_t last) {
    for_each_piece(source, first, last, writing,
                   [&](std::int64_t, std::span<const std::int32_t> tokens) { file.append(tokens); });
  };
  write(training, 0, kept);
  if (evaluation) write(*evaluation, kept, source.size());
  training.publish();
  if (evaluation) evaluation->publish();
  log.info(fmt::format("{}: ids from 0 to {}; {}", source.description(), highest,
                       where_rows_went(settings, kept, held_out)));
}

}  // namespace alpa
