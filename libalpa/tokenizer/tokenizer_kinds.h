#pragma once
// Internal to this module: the kinds of tokenizers, one source file each.
#include <memory>

#include "libalpa/tokenizer/tokenizer.h"

namespace alpa {

/// The longest document of tokenizers that take each as a whole.
inline constexpr std::size_t most_held_bytes = 64 << 20;

std::unique_ptr<Tokenizer> make_byte_tokenizer();
std::unique_ptr<Tokenizer> make_byte_level_bpe(const TokenizerFile&);

/// Whether a file begins as a model of SentencePiece.
bool is_sentencepiece(std::string_view content);
std::unique_ptr<Tokenizer> make_sentencepiece(const TokenizerFile&);

}  // namespace alpa
