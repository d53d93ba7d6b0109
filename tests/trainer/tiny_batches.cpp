#include "tests/trainer/tiny_batches.h"

#include <algorithm>

#include "libalpa/base/philox.h"
#include "tests/support/graph_structure.h"

namespace alpa {
namespace {

constexpr std::int64_t kSequence = 16, kVocabulary = 64;
constexpr std::int64_t kGraphGroup = 2;  // samples that the tiny models pack together

}  // namespace

TinyBatches::TinyBatches(const Graph& graph) {
  std::vector<ArrayInput> rows;
  for (const Input& input : graph.inputs) {
    if (!input.is_of_samples()) continue;
    const Value& value = value_of(graph, input.value);
    const TensorType row{value.type.dtype, {value.type.shape.begin() + 1, value.type.shape.end()}};
    batch_.emplace_back(static_cast<std::size_t>(byte_count(row) * kBatch));
    if (input.kind == InputKind::data) rows.push_back({value.name, row, input.below});
    if (input.kind == InputKind::vertices) graphs_.push_back({row, input.below});
  }
  filled_ = {batch_.begin(), batch_.end()};
  if (!rows.empty()) arrays_ = open_arrays("synthetic", rows);
}

float TinyBatches::fill_graphs(int step) {
  Shape structure = graphs_[2].row.shape;
  structure.insert(structure.begin(), kBatch);
  const Values drawn = graph_structure(structure, kGraphGroup, static_cast<std::uint64_t>(step) + 1);
  const auto to = [&](std::size_t input) { return reinterpret_cast<std::int32_t*>(batch_[input].data()); };
  std::ranges::transform(drawn, to(2), [](double x) { return static_cast<std::int32_t>(x); });
  const std::int64_t rows = kBatch * structure[1], group = kGraphGroup * structure[1];
  float labelled = 0;
  std::int64_t used = 0;
  group_rows_.clear();
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i % group == 0) {
      used = 0;
      for (std::int64_t row = i; row < i + group; ++row)
        used = std::max<std::int64_t>(used, to(2)[(row + 1) * structure[2] - 1]);
      group_rows_.push_back(static_cast<std::int32_t>(used));
    }
    const auto random = philox(7, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(i));
    const auto token = static_cast<std::int32_t>(random.word[0] % graphs_[0].below);
    const bool is_vertex = i % group < used, is_labelled = is_vertex && random.word[1] % 4 != 0;
    to(0)[i] = is_vertex && random.word[2] % 5 == 0 ? -1 : is_vertex ? token : 0;
    to(1)[i] = is_labelled ? token % static_cast<std::int32_t>(graphs_[1].below) : -1;
    labelled += is_labelled ? 1.0f : 0.0f;
  }
  return labelled;
}

float TinyBatches::fill_rows(int step) {
  for (std::size_t input = 0; input < batch_.size(); ++input)
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::size_t bytes = batch_[input].size() / kBatch;
      arrays_->read(input, step * kBatch + static_cast<std::int64_t>(i),
                    std::span(batch_[input]).subspan(i * bytes, bytes));
    }
  return kBatch;
}

float TinyBatches::fill_tokens(int step) {
  auto* const tokens = reinterpret_cast<std::int32_t*>(batch_[0].data());
  auto* const targets = reinterpret_cast<std::int32_t*>(batch_[1].data());
  float count = 0;
  for (std::size_t i = 0; i < kBatch * kSequence; ++i) {
    tokens[i] =
        static_cast<std::int32_t>(philox(5, static_cast<std::uint64_t>(step), i).word[0] % kVocabulary);
    targets[i] = i % 5 == 0 ? -1 : (tokens[i] * 7 + 3) % static_cast<std::int32_t>(kVocabulary);
    count += targets[i] >= 0 ? 1.0f : 0.0f;
  }
  return count;
}

}  // namespace alpa
