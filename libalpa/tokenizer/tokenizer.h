#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace alpa {

/// Whether the text of a special token, e.g. "<|endoftext|>", is that token where it stands in a text.
enum class SpecialTokens {
  are_text,  ///< texts may hold anything, and nobody's text ends a document
  are_taken  ///< for texts that one has written oneself, e.g. a prompt
};

/// Makes ids of documents that come in pieces; memory is bounded by the longest word (4 MiB), or for some
/// tokenizers by the longest document (64 MiB).
class TokenEncoder {
 public:
  virtual ~TokenEncoder() = default;

  /// Appends to `ids` those of the document so far that no text behind changes. Throws Error(input).
  virtual void add(std::string_view text, std::vector<std::int32_t>& ids) = 0;

  /// Appends the others. What is added next begins a document.
  virtual void end(std::vector<std::int32_t>& ids) = 0;
};

/// Makes ids of text, and text of ids. Any bytes are text:
///   - bytes are their own ids;
///   - byte-level BPE takes bytes that are no UTF-8 as they are: a run of them is a word of its own. So
///     decode(encode(text)) == text for every text, but where the file asks for a normalizer (NFC), a space
///     before the text, or pieces to be left out;
///   - SentencePiece takes U+FFFD for them and normalizes texts, so that spaces may change.
/// What is a letter, a digit or a space is said by the library of regular expressions (PCRE2 10.42: Unicode
/// 14), so that characters which are newer may be cut otherwise than elsewhere. No token is put before or
/// behind a text. May be used by several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The tokenizer must outlive it.
  virtual std::unique_ptr<TokenEncoder> encoder(SpecialTokens = SpecialTokens::are_text) const = 0;

  /// The ids of a whole text. Throws Error(input) where a part of it is longer than an encoder takes.
  std::vector<std::int32_t> encode(std::string_view text, SpecialTokens = SpecialTokens::are_text) const;

  /// The bytes that ids stand for; ids may end within a character. Those of SentencePiece's own tokens, e.g.
  /// </s>, stand for nothing, special tokens of others for their text. Throws Error(input) for an id that no
  /// token has.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  /// Ids are below; of some below there may be no token.
  virtual std::int64_t vocabulary() const = 0;

  /// The id of a special token by its text, e.g. "<|eot_id|>".
  virtual std::optional<std::int32_t> special_token(std::string_view text) const = 0;

  /// What stands behind a document. In a tokenizer.json the first that it has of <|endoftext|>,
  /// <|end_of_text|>, </s>, <eos>, <|end▁of▁sentence|>, as such files do not say it.
  virtual std::optional<std::int32_t> end_of_text() const = 0;

  /// E.g. "byte-level BPE, 50257 tokens".
  virtual std::string description() const = 0;
};

/// What a tokenizer is made of, so that it may be kept beside what it made.
struct TokenizerFile {
  std::string name;     ///< for messages
  std::string content;  ///< of the file; "bytes" for bytes
  /// What ends the documents of a file of tokens that carries it, where that is known.
  std::optional<std::int32_t> end_of_text = {};
};

/// What `name` names: "bytes", a file, or an HDF5 file of tokens that carries one as /tokenizer. Throws
/// Error(input) where it cannot be read, is larger than 64 MiB, or carries none.
TokenizerFile read_tokenizer_file(const std::string& name);

/// The tokenizer of a file, which is, by its content, a tokenizer.json of Hugging Face's tokenizers
/// (byte-level BPE, as that of GPT-2, Llama 3 and Qwen) or a model of SentencePiece. Throws Error(input) that
/// names the field where it is damaged or asks for what is not supported.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFile&);

/// What ends the documents of an HDF5 file that carries its tokenizer, where that is known. Does not read the
/// tokenizer. Throws Error(input) where it is no id.
std::optional<std::int32_t> carried_end_of_text(const std::string& hdf5_file);

/// What ends a document: as the file says, else as its tokenizer has it.
std::optional<std::int32_t> end_of_text(const TokenizerFile&, const Tokenizer&);

/// The file's tokenizer.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name);

}  // namespace alpa
