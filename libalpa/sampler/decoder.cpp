#include "libalpa/sampler/decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "libalpa/base/box_rows.h"
#include "libalpa/base/error.h"
#include "libalpa/base/float_types.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/comm/together.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/runtime/memory_there.h"
#include "libalpa/sampler/decoding_plan.h"

namespace alpa {

Decoder::Decoder(const Plan& trained, const Graph& training, std::int64_t samples, const TrainRanks& ranks,
                 std::int64_t tokens)
    : training_(training),
      ranks_(ranks),
      decoding_(decoding_graph(training, op_catalog(), samples, tokens)),
      plan_(decoding_plan(trained, training, decoding_)),
      program_(lower(decoding_.graph, plan_, Purpose::evaluate, ranks.device.kind())),
      control_(ranks.host.make_stream()) {
  verify(program_);
  check_memory(samples, tokens);
  executor_ = std::make_unique<Executor>(decoding_.graph, std::vector<const Program*>{&program_},
                                         ranks.device, ranks.data_plane, 0);
  for (const InputSamples& samples_taken : executor_->samples())
    inputs_.emplace_back(static_cast<std::size_t>(samples_taken.bytes()));
  scores_.resize(static_cast<std::size_t>(element_count(type_of_scores().shape)));
  words_.resize(static_cast<std::size_t>(samples * tokens * decoding_.vocabulary));
  find_own_tile();
}

const TensorType& Decoder::type_of_scores() const {
  return value_of(decoding_.graph, decoding_.graph.states[decoding_.scores].value).type;
}

void Decoder::check_memory(std::int64_t samples, std::int64_t tokens) const {
  std::int64_t arena = 0, host = 0;
  for (const MeshProgram& mesh : program_.meshes) {
    arena = std::max(arena, mesh.memory.total);
    host = std::max(host, mesh.memory.host);
  }
  host += byte_count({DType::f32, type_of_scores().shape}) +
          byte_count({DType::f32, {samples, tokens, decoding_.vocabulary}});
  const MemoryThere there = memory_there(ranks_, *control_);
  check_arena(there, arena + (there.is_the_same ? host : 0),
              fmt::format("continuing {} at once takes", count_text(samples, "text")),
              "a smaller --at-once, or a plan for more ranks");
}

void Decoder::find_own_tile() {
  for (const StateTile& tile : executor_->state_tiles())
    if (tile.state == decoding_.scores) own_tile_ = tile;
  const Shape own = own_tile_ ? own_tile_->origin : Shape{};
  const std::vector<Shape> origins = gathered(ranks_.control, *control_, own);
  if (std::ranges::find(origins, own) - origins.begin() < ranks_.control.rank()) own_tile_.reset();
  if (own_tile_) tile_.resize(static_cast<std::size_t>(byte_count(own_tile_->tile)));
}

CheckpointFacts Decoder::load(const std::filesystem::path& checkpoint, Log& log) {
  return load_trained(checkpoint, training_, state_bytes(*executor_), ranks_, *control_, log,
                      [&](const BytesRead& read) { return load_own(checkpoint, read); });
}

CheckpointFacts Decoder::load_own(const std::filesystem::path& checkpoint, const BytesRead& read) {
  return load_parameters(*executor_, decoding_.graph, training_, checkpoint, read);
}

void Decoder::fill(std::size_t input, std::span<const std::int32_t> values) {
  const InputSamples& taken = executor_->samples()[input];
  const std::span<const std::byte> bytes = std::as_bytes(values);
  std::copy_n(bytes.begin() + taken.first_row * taken.row_bytes, taken.bytes(), inputs_[input].begin());
}

void Decoder::read_own_tile() {
  executor_->read_state(*own_tile_, tile_.data());
  for_float_type(own_tile_->tile.dtype, [&](auto zero) {
    const auto* from = reinterpret_cast<const decltype(zero)*>(tile_.data());
    const std::int64_t length = row_length(own_tile_->tile.shape);
    for_each_row(own_tile_->tile.shape, [&](const Shape& row) {
      Shape at = own_tile_->origin;
      for (std::size_t d = 0; d < at.size(); ++d) at[d] += row[d];
      float* const to = scores_.data() + element_at(type_of_scores().shape, at);
      for (std::int64_t i = 0; i < length; ++i) to[i] = to_float(*from++);
    });
  });
}

void Decoder::run(std::span<const std::int32_t> tokens, std::span<const std::int32_t> places) {
  assert(inputs_.size() == 2);
  assert(std::ranges::all_of(places, [&](std::int32_t place) { return place < sequence(); }));
  fill(0, tokens);
  fill(1, places);
  const std::span<const std::byte> samples[] = {inputs_[0], inputs_[1]};
  StepInputs inputs;
  inputs.samples = samples;
  const std::optional<StepResult> result = executor_->run(inputs);
  if (!result || !std::isfinite(result->loss_sum))
    throw Error(
        ErrorKind::non_finite, "scores of words are not finite",
        "an earlier checkpoint; of a model in f16 or bf16, numbers of the weights that are less large");
}

std::span<const float> Decoder::scores() {
  std::ranges::fill(scores_, 0.0f);
  if (own_tile_) read_own_tile();
  if (ranks_.control.size() > 1)
    ranks_.control.all_reduce(*control_, scores_.data(), std::ssize(scores_), DType::f32, Reduction::sum);
  const auto padded = static_cast<std::size_t>(type_of_scores().shape.back()),
             words = static_cast<std::size_t>(vocabulary());
  for (std::size_t row = 0; row < scores_.size() / padded; ++row)
    std::copy_n(scores_.begin() + static_cast<std::ptrdiff_t>(row * padded), words,
                words_.begin() + static_cast<std::ptrdiff_t>(row * words));
  return words_;
}

}  // namespace alpa
