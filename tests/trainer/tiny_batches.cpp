#include "tests/trainer/tiny_batches.h"

#include "libalpa/base/philox.h"
#include "tests/dataset/random_graphs.h"

namespace alpa {
namespace {

constexpr std::int64_t kVocabulary = 64;
constexpr std::size_t kSequence = 16;
constexpr std::int64_t kGraphGroup = 2;  // samples that the tiny models pack together

}  // namespace

TinyBatches::TinyBatches(const Graph& graph, std::int64_t samples, BatchingPolicy batching)
    : count_(samples), batching_(batching) {
  std::vector<ArrayInput> rows;
  for (const Input& input : graph.inputs) {
    if (!input.is_of_samples()) continue;
    const Value& value = value_of(graph, input.value);
    const TensorType row{value.type.dtype, {value.type.shape.begin() + 1, value.type.shape.end()}};
    batch_.emplace_back(static_cast<std::size_t>(byte_count(row) * count_));
    if (input.kind == InputKind::data) rows.push_back({value.name, row, input.below});
    if (input.kind == InputKind::vertices) graphs_.push_back({row, input.below});
  }
  filled_ = {batch_.begin(), batch_.end()};
  if (!rows.empty()) arrays_ = open_arrays("synthetic", rows);
}

float TinyBatches::fill_graphs(int step) {
  const std::int64_t room = graphs_[2].row.shape[0], columns = graphs_[2].row.shape[1];
  const auto rows_of = [&](std::size_t input, std::int64_t first, std::int64_t width) {
    return std::span(reinterpret_cast<std::int32_t*>(batch_[input].data()) + first * room * width,
                     static_cast<std::size_t>(kGraphGroup * room * width));
  };
  std::mt19937 random(static_cast<unsigned>(step) + 1);
  const auto classes = static_cast<std::int32_t>(graphs_[1].below);
  float labelled = 0;
  group_rows_.clear();
  for (std::int64_t first = 0; first < count_; first += kGraphGroup) {
    std::vector<VertexGraph> group;
    std::int32_t vertices = 0;
    for (std::int64_t i = 0; i < kGraphGroup; ++i) {
      VertexGraph& graph =
          group.emplace_back(random_graph(random, static_cast<int>(room), static_cast<int>(columns) - 1));
      for (std::int32_t v = 0; v < graph.vertices(); ++v, ++vertices) {
        const auto draw =
            philox(7, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(first * room + vertices));
        const auto token = static_cast<std::int32_t>(draw.word[0] % graphs_[0].below);
        const auto at = static_cast<std::size_t>(v);
        graph.tokens[at] = draw.word[2] % 5 == 0 ? -1 : token;
        graph.labels[at] = draw.word[1] % 4 == 0 ? -1 : token % classes;
        labelled += graph.labels[at] >= 0 ? 1.0f : 0.0f;
      }
    }
    std::vector<const VertexGraph*> samples;
    for (const VertexGraph& graph : group) samples.push_back(&graph);
    packer_.pack(samples, batching_, static_cast<int>(columns) - 1,
                 {rows_of(0, first, 1), rows_of(1, first, 1), rows_of(2, first, columns)});
    group_rows_.push_back(vertices);
  }
  return labelled;
}

float TinyBatches::fill_rows(int step) {
  const auto samples = static_cast<std::size_t>(count_);
  for (std::size_t input = 0; input < batch_.size(); ++input)
    for (std::size_t i = 0; i < samples; ++i) {
      const std::size_t bytes = batch_[input].size() / samples;
      arrays_->read(input, step * count_ + static_cast<std::int64_t>(i),
                    std::span(batch_[input]).subspan(i * bytes, bytes));
    }
  return static_cast<float>(count_);
}

float TinyBatches::fill_tokens(int step) {
  auto* const tokens = reinterpret_cast<std::int32_t*>(batch_[0].data());
  auto* const targets = reinterpret_cast<std::int32_t*>(batch_[1].data());
  float count = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count_) * kSequence; ++i) {
    tokens[i] =
        static_cast<std::int32_t>(philox(5, static_cast<std::uint64_t>(step), i).word[0] % kVocabulary);
    targets[i] = i % 5 == 0 ? -1 : (tokens[i] * 7 + 3) % static_cast<std::int32_t>(kVocabulary);
    count += targets[i] >= 0 ? 1.0f : 0.0f;
  }
  return count;
}

}  // namespace alpa
