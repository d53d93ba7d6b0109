#include "libalpa/dataset/encoded_texts.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/json_field.h"
#include "libalpa/dataset/text_lines.h"
#include "libalpa/dataset/token_formats.h"

namespace alpa {
namespace {

constexpr std::size_t text_piece_bytes = 256 << 10, most_json_line_bytes = 256 << 20, kept_ids = 1 << 16;

/// Tokens in a file beside --out, and what they were made of.
class EncodedTexts final : public TokenSource {
 public:
  EncodedTexts(PackedTokens tokens, std::string description)
      : tokens_(std::move(tokens)), description_(std::move(description)) {}

  std::int64_t size() const override { return tokens_.size(); }
  void read(std::int64_t first, std::span<std::int32_t> into) const override { tokens_.read(first, into); }
  std::string description() const override { return description_; }

 private:
  PackedTokens tokens_;
  std::string description_;
};

/// Gives documents to an encoder, and its tokens to a file, and knows the place between documents that it has
/// reached.
class DocumentEncoder {
 public:
  DocumentEncoder(const Tokenizer& tokenizer, std::optional<std::int32_t> end_of_text, PartialTokens& tokens,
                  const TextPlace& begin)
      : encoder_(tokenizer.encoder()), end_of_text_(end_of_text), tokens_(tokens), place_(begin) {}

  const TextPlace& place() const { return place_; }

  void add(std::string_view text) {
    is_empty_ = is_empty_ && text.empty();
    for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(text_piece_bytes, text.size()))) {
      encoder_->add(text.substr(0, text_piece_bytes), ids_);
      if (ids_.size() >= kept_ids) flush();
    }
  }

  /// Of a document without a byte nothing is left.
  void end_document() {
    encoder_->end(ids_);
    if (!std::exchange(is_empty_, true)) {
      if (end_of_text_) ids_.push_back(*end_of_text_);
      ++place_.documents;
      if (ids_.size() >= kept_ids) flush();
    }
    place_.tokens = tokens_.count() + std::ssize(ids_);
  }

  /// So much of the file is before the place.
  void reach(std::int64_t lines, std::int64_t bytes) {
    place_.lines = lines;
    place_.bytes = bytes;
    record_if_due();
  }

  void end_file() {
    ++place_.file;
    place_.lines = place_.bytes = 0;
    record_if_due();
  }

  PackedTokens finished() {
    flush();
    return tokens_.finished(place_);
  }

 private:
  void flush() {
    tokens_.append(ids_);
    ids_.clear();
  }

  void record_if_due() {
    if (!tokens_.record_is_due()) return;
    flush();
    tokens_.record(place_);
  }

  std::unique_ptr<TokenEncoder> encoder_;
  std::optional<std::int32_t> end_of_text_;
  PartialTokens& tokens_;
  TextPlace place_;
  std::vector<std::int32_t> ids_;
  bool is_empty_ = true;
};

/// Adds the bytes of a file to a progress as they are taken, compressed or not.
class FileProgress {
 public:
  explicit FileProgress(ByteProgress& progress) : progress_(progress) {}

  void begins_at(std::int64_t bytes) { progress_.was_done(reported_ = bytes); }
  void reached(std::int64_t bytes) { progress_.add(bytes - std::exchange(reported_, bytes)); }

 private:
  ByteProgress& progress_;
  std::int64_t reported_ = 0;
};

void encode_document(const TextFile& file, DocumentEncoder& encoder, FileProgress progress) {
  ByteStream stream(file.path);
  std::string piece(text_piece_bytes, '\0');
  while (const std::size_t bytes = stream.read(piece.data(), piece.size())) {
    encoder.add(std::string_view(piece).substr(0, bytes));
    progress.reached(stream.bytes_taken());
  }
  encoder.end_document();
}

void encode_json_lines(const TextFile& file, const std::string& field, DocumentEncoder& encoder,
                       FileProgress progress) {
  TextLines lines(file.path, "documents in lines of their own", most_json_line_bytes);
  if (const TextPlace& place = encoder.place(); place.lines > 0) {
    lines.skip(place.lines, place.bytes);
    progress.begins_at(lines.bytes_taken());
  }
  while (std::optional<std::string_view> line = lines.next()) {
    if (lines.number() == 1) line->remove_prefix(byte_order_mark(*line));
    if (line->find_first_not_of(" \t") == std::string_view::npos) continue;
    const JsonField found = json_field(*line, field);
    if (!found.problem.empty())
      throw lines.error(found.problem,
                        "--field NAME says where the text is; --from text takes the lines as they are");
    in_step([&] { return fmt::format("encoding line {}", lines.number()); },
            [&] {
              encoder.add(found.text);
              encoder.end_document();
            });
    encoder.reach(lines.number(), lines.position());
    progress.reached(lines.bytes_taken());
  }
}

}  // namespace

std::optional<std::int32_t> end_of_text_id(const Tokenizer& tokenizer, std::optional<std::int32_t> usual,
                                           const ConvertSettings& settings) {
  const std::string& asked = settings.end_of_text;
  if (asked == "none") return std::nullopt;
  if (asked == "auto") return usual;
  if (const auto id = tokenizer.special_token(asked)) return id;
  std::int32_t id = -1;
  const auto [end, failed] = std::from_chars(asked.data(), asked.data() + asked.size(), id);
  if (failed != std::errc{} || end != asked.data() + asked.size() || id < 0 || id >= tokenizer.vocabulary())
    throw Error(ErrorKind::usage,
                fmt::format("--end-of-text '{}' is neither a special token of the tokenizer ({}) nor an id",
                            asked, tokenizer.description()),
                fmt::format("auto, none, or an id from 0 to {}", tokenizer.vocabulary() - 1));
  return id;
}

std::unique_ptr<TokenSource> encode_texts(const std::vector<TextFile>& files, const Tokenizer& tokenizer,
                                          std::optional<std::int32_t> end_of_text, const std::string& field,
                                          PartialTokens& tokens, Log& log) {
  std::vector<std::int64_t> bytes;
  for (const TextFile& file : files) bytes.push_back(InputFile(file.path).bytes());
  DocumentEncoder encoder(tokenizer, end_of_text, tokens, tokens.begin(files));
  const auto first = static_cast<std::size_t>(encoder.place().file);
  ByteProgress progress(fmt::format("making tokens of {}", count_text(std::ssize(files), "file")),
                        std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}), log);
  progress.was_done(std::accumulate(bytes.begin(), bytes.begin() + encoder.place().file, std::int64_t{0}));
  for (std::size_t i = first; i < files.size(); ++i)
    in_step([&] { return fmt::format("making tokens of '{}'", files[i].path.string()); },
            [&] {
              tokens.file_begins(encoder.place());
              if (files[i].has_json_lines)
                encode_json_lines(files[i], field, encoder, FileProgress(progress));
              else
                encode_document(files[i], encoder, FileProgress(progress));
              encoder.end_file();
            });
  PackedTokens made = encoder.finished();
  std::string description = fmt::format(
      "{} of {}, {} ({})", count_text(encoder.place().documents, "document"),
      count_text(std::ssize(files), "file"), count_text(made.size(), "token"), tokenizer.description());
  return std::make_unique<EncodedTexts>(std::move(made), std::move(description));
}

}  // namespace alpa
