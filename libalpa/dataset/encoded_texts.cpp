#include "libalpa/dataset/encoded_texts.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/json_field.h"
#include "libalpa/dataset/packed_tokens.h"
#include "libalpa/dataset/text_lines.h"
#include "libalpa/dataset/token_formats.h"

namespace alpa {
namespace {

constexpr std::size_t text_piece_bytes = 256 << 10, most_json_line_bytes = 256 << 20, kept_ids = 1 << 16;

/// Tokens on their way into a scratch file, no wider than the vocabulary takes.
class TokenScratch {
 public:
  TokenScratch(std::int64_t vocabulary, const std::filesystem::path& folder)
      : type_(vocabulary <= 1 << 8    ? PackedType::u8
              : vocabulary <= 1 << 16 ? PackedType::u16
                                      : PackedType::u32),
        file_(folder) {}

  void append(const std::vector<std::int32_t>& ids) {
    const auto width = static_cast<int>(packed_bytes(type_));
    packed_.clear();
    for (const std::int32_t id : ids)
      for (int i = 0; i < width; ++i)
        packed_.push_back(static_cast<char>(static_cast<std::uint32_t>(id) >> (8 * i)));
    file_.append(packed_);
    count_ += std::ssize(ids);
  }

  PackedTokens finished(const std::filesystem::path& name) {
    return PackedTokens(file_.finished(name), type_, 0, count_, "text");
  }

 private:
  PackedType type_;
  ScratchFile file_;
  std::string packed_;
  std::int64_t count_ = 0;
};

/// Tokens in a scratch file, and what they were made of.
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

/// Gives documents to an encoder, and its tokens to a scratch file.
class DocumentEncoder {
 public:
  DocumentEncoder(const Tokenizer& tokenizer, std::optional<std::int32_t> end_of_text, TokenScratch& scratch)
      : encoder_(tokenizer.encoder()), end_of_text_(end_of_text), scratch_(scratch) {}

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
    if (std::exchange(is_empty_, true)) return;
    if (end_of_text_) ids_.push_back(*end_of_text_);
    ++documents_;
    if (ids_.size() >= kept_ids) flush();
  }

  void flush() {
    scratch_.append(ids_);
    ids_.clear();
  }

  std::int64_t documents() const { return documents_; }

 private:
  std::unique_ptr<TokenEncoder> encoder_;
  std::optional<std::int32_t> end_of_text_;
  TokenScratch& scratch_;
  std::vector<std::int32_t> ids_;
  bool is_empty_ = true;
  std::int64_t documents_ = 0;
};

/// Adds the bytes of a file to a progress as they are taken, compressed or not.
class FileProgress {
 public:
  explicit FileProgress(ByteProgress& progress) : progress_(progress) {}

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
                                          std::optional<std::int32_t> end_of_text,
                                          const ConvertSettings& settings,
                                          const std::filesystem::path& scratch_folder, Log& log) {
  std::int64_t bytes = 0;
  for (const TextFile& file : files) bytes += InputFile(file.path).bytes();
  ByteProgress progress(fmt::format("making tokens of {}", count_text(std::ssize(files), "file")), bytes,
                        log);
  TokenScratch scratch(tokenizer.vocabulary(), scratch_folder);
  DocumentEncoder encoder(tokenizer, end_of_text, scratch);
  for (const TextFile& file : files)
    in_step([&] { return fmt::format("making tokens of '{}'", file.path.string()); },
            [&] {
              if (file.has_json_lines)
                encode_json_lines(file, settings.field, encoder, FileProgress(progress));
              else
                encode_document(file, encoder, FileProgress(progress));
            });
  encoder.flush();
  PackedTokens tokens = scratch.finished(files.front().path);
  std::string description = fmt::format("{} of {}, {} ({})", count_text(encoder.documents(), "document"),
                                        count_text(std::ssize(files), "file"),
                                        count_text(tokens.size(), "token"), tokenizer.description());
  return std::make_unique<EncodedTexts>(std::move(tokens), std::move(description));
}

}  // namespace alpa
