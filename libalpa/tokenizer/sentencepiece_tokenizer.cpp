#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/tokenizer/tokenizer_kinds.h"

#ifdef ALPA_WITH_SENTENCEPIECE
#include <sentencepiece_processor.h>
#endif

namespace alpa {

// The first piece, a message that begins with its text, as <unk>.
bool is_sentencepiece(std::string_view content) {
  return content.size() > 4 && content[0] == '\n' && content[2] == '\n' && content[3] < content[1];
}

#ifdef ALPA_WITH_SENTENCEPIECE
namespace {

constexpr std::size_t most_document_bytes = 16 << 20;

/// Whether the fields of the model, a message of protocol buffers, end where it does, and the one that says
/// how texts are normalized (3) is among them: it stands behind the pieces, and the library does without it.
bool is_whole_model(std::string_view content) {
  bool has_normalizer = false;
  while (!content.empty()) {
    const auto field = static_cast<unsigned char>(content[0]);
    std::uint64_t bytes = 0;
    std::size_t at = 1;
    for (int shift = 0; at < content.size() && shift < 35; shift += 7) {
      const auto byte = static_cast<unsigned char>(content[at++]);
      bytes |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if ((field & 7) != 2 || bytes > content.size() - at) return false;
    has_normalizer = has_normalizer || field >> 3 == 3;
    content.remove_prefix(at + bytes);
  }
  return has_normalizer;
}

template <class Status>
void check_sentencepiece(const Status& status, const std::string& what, const char* hint) {
  if (status.ok()) return;
  const std::string says = status.ToString();
  throw Error(ErrorKind::input, fmt::format("{}: {}", what, says.substr(0, says.find('\n'))), hint);
}

/// Takes documents whole, as SentencePiece does.
class SentencePieceEncoder final : public TokenEncoder {
 public:
  explicit SentencePieceEncoder(const sentencepiece::SentencePieceProcessor& processor)
      : processor_(processor) {}

  void add(std::string_view text, std::vector<std::int32_t>&) override {
    document_ += text;
    if (document_.size() > most_document_bytes)
      throw Error(ErrorKind::input,
                  fmt::format("a document of more than {} MiB, and SentencePiece takes each as a whole",
                              most_document_bytes >> 20),
                  "documents of their own, e.g. JSON lines with one in each");
  }

  void end(std::vector<std::int32_t>& ids) override {
    std::vector<int> all;
    check_sentencepiece(processor_.Encode(document_, &all), "SentencePiece cannot make tokens of a text",
                        "another tokenizer");
    ids.insert(ids.end(), all.begin(), all.end());
    document_.clear();
  }

 private:
  const sentencepiece::SentencePieceProcessor& processor_;
  std::string document_;
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const TokenizerFile& file) {
    if (!is_whole_model(file.content))
      throw Error(
          ErrorKind::input,
          fmt::format("tokenizer '{}' is a damaged model of SentencePiece: it is cut short, or altered",
                      file.name),
          "fetch the file again");
    check_sentencepiece(processor_.LoadFromSerializedProto(file.content),
                        fmt::format("tokenizer '{}' is a damaged model of SentencePiece", file.name),
                        "fetch the file again");
  }

  std::unique_ptr<TokenEncoder> encoder(SpecialTokens) const override {
    return std::make_unique<SentencePieceEncoder>(processor_);
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    for (const std::int32_t id : ids)
      if (id < 0 || id >= vocabulary())
        throw Error(ErrorKind::input, fmt::format("no token has the id {}: {}", id, description()),
                    "the tokenizer that made the tokens");
    std::string text;
    check_sentencepiece(processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text),
                        "SentencePiece cannot make text of tokens", "another tokenizer");
    return text;
  }

  std::int64_t vocabulary() const override { return processor_.GetPieceSize(); }

  std::optional<std::int32_t> special_token(std::string_view text) const override {
    const int id = processor_.PieceToId(absl::string_view(text.data(), text.size()));
    return processor_.IdToPiece(id) == text && processor_.IsControl(id) ? std::optional(id) : std::nullopt;
  }

  std::optional<std::int32_t> end_of_text() const override {
    const int id = processor_.eos_id();
    return id < 0 ? std::nullopt : std::optional(id);
  }

  std::string description() const override { return fmt::format("SentencePiece, {} tokens", vocabulary()); }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece(const TokenizerFile& file) {
  return std::make_unique<SentencePieceTokenizer>(file);
}

#else

std::unique_ptr<Tokenizer> make_sentencepiece(const TokenizerFile& file) {
  throw Error(
      ErrorKind::input,
      fmt::format("tokenizer '{}' is a model of SentencePiece, which this build is without", file.name),
      "a build on a machine with libsentencepiece-dev, or a tokenizer.json");
}

#endif

}  // namespace alpa
