#include "libalpa/dataset/content_fingerprint.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "libalpa/base/fingerprint.h"

namespace alpa {
namespace {

/// Number `i` of `count` that are spread evenly over [0, all), first and last among them.
std::int64_t spread(std::int64_t i, std::int64_t count, std::int64_t all) {
  return count == 1 ? 0 : i * (all - 1) / (count - 1);
}

/// A digest of bytes that come in pieces.
class Digest {
 public:
  explicit Digest(const std::string& begin) : text_(fingerprint(begin)) {}

  void add(const void* bytes, std::size_t count) {
    text_.append(static_cast<const char*>(bytes), count);
    text_ = fingerprint(text_);
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string content_fingerprint(const TokenSource& source) {
  constexpr std::int64_t piece_tokens = 1 << 12, most_pieces = 1 << 10;
  const std::int64_t all = (source.size() + piece_tokens - 1) / piece_tokens;
  const std::int64_t pieces = std::min(all, most_pieces);
  Digest digest(fmt::format("{} tokens", source.size()));
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::int64_t first = spread(i, pieces, all) * piece_tokens;
    tokens.resize(static_cast<std::size_t>(std::min(piece_tokens, source.size() - first)));
    source.read(first, tokens);
    digest.add(tokens.data(), tokens.size() * sizeof tokens[0]);
  }
  for (const TokenSource* part : source.parts()) {
    const std::string of_part = content_fingerprint(*part);
    digest.add(of_part.data(), of_part.size());
  }
  return digest.text();
}

std::string content_fingerprint(ArraySource& source) {
  constexpr std::int64_t most_bytes = 64 << 20, fewest = 16;
  std::int64_t sample_bytes = 1;
  for (const ArrayInput& input : source.inputs()) sample_bytes += byte_count(input.row);
  const std::int64_t rows = std::min(source.rows(), std::max(fewest, most_bytes / sample_bytes));
  Digest digest(fmt::format("{} rows", source.rows()));
  std::vector<std::byte> row;
  for (std::size_t input = 0; input < source.inputs().size(); ++input) {
    row.resize(static_cast<std::size_t>(byte_count(source.inputs()[input].row)));
    for (std::int64_t i = 0; i < rows; ++i) {
      source.read(input, spread(i, rows, source.rows()), row);
      digest.add(row.data(), row.size());
    }
  }
  return digest.text();
}

std::string content_fingerprint(GraphSource& source) {
  constexpr std::int64_t most_graphs = 1 << 16;
  const std::int64_t graphs = std::min(source.samples(), most_graphs);
  Digest digest(fmt::format("{} graphs", source.samples()));
  VertexGraph graph;
  for (std::int64_t i = 0; i < graphs; ++i) {
    source.read(spread(i, graphs, source.samples()), graph);
    for (const auto* values : {&graph.tokens, &graph.labels, &graph.child_ends, &graph.children})
      digest.add(values->data(), values->size() * sizeof(std::int32_t));
  }
  return digest.text();
}

}  // namespace alpa
