#pragma once
#include <string>

#include "libalpa/dataset/array_source.h"
#include "libalpa/dataset/graph_source.h"
#include "libalpa/dataset/token_source.h"

namespace alpa {

/// Digest of what data holds, whatever file it is in: bytes of a text are the same as a token file of them.
/// All of short data counts; of data of more than 2^22 tokens, or rows of more than 64 MiB together, pieces
/// that are spread evenly, first and last among them, and of a mix those of each of its parts too. Throws as
/// read() does.
std::string content_fingerprint(const TokenSource&);
std::string content_fingerprint(ArraySource&);

/// Of graphs; of more than 2^16, so many.
std::string content_fingerprint(GraphSource&);

}  // namespace alpa
