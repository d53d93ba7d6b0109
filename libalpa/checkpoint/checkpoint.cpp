#include "libalpa/checkpoint/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "libalpa/base/bfloat16.h"
#include "libalpa/base/box_rows.h"
#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/limits.h"
#include "libalpa/checkpoint/state_differences.h"
#include "libalpa/h5/atomic_file.h"

namespace alpa {
namespace {

constexpr const char* format = "alpa-checkpoint";
constexpr const char* version = "1.0";

void fill_zero(const HeldTile& tile, std::int64_t bytes) {
  const std::vector<std::byte> zeros(static_cast<std::size_t>(std::min<std::int64_t>(bytes, 4 << 20)));
  for (std::int64_t first = 0; first < bytes; first += std::ssize(zeros))
    tile.write(first,
               std::span(zeros).first(static_cast<std::size_t>(std::min(bytes - first, std::ssize(zeros)))));
}

/// Puts a box, which lies in one stretch of the tile but for padding, into it, row by row where there is
/// some.
void write_box(const HeldTile& tile, const TensorRegion& box, std::span<const std::byte> values,
               std::int64_t element) {
  Shape first = box.offset;
  for (std::size_t d = 0; d < first.size(); ++d) first[d] -= tile.origin[d];
  std::size_t whole_from = 0;  // behind the first dimension of which there is more than one index
  while (whole_from < first.size() && box.count[whole_from++] == 1) continue;
  const auto place = static_cast<std::ptrdiff_t>(whole_from);
  const bool is_one_stretch =
      std::equal(tile.shape.begin() + place, tile.shape.end(), box.count.begin() + place);
  if (is_one_stretch) return tile.write(element_at(tile.shape, first) * element, values);
  const std::int64_t bytes = row_length(box.count) * element;
  for_each_row(box.count, [&](const Shape& row) {
    Shape at = first;
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += row[d];
    tile.write(element_at(tile.shape, at) * element, values.first(static_cast<std::size_t>(bytes)));
    values = values.subspan(static_cast<std::size_t>(bytes));
  });
}

/// A tile in the dimensions of the file.
HeldTile as_stored(HeldTile tile, const State& state) {
  if (!state.holds_terms) return tile;
  tile.origin.insert(tile.origin.begin(), tile.term);
  tile.shape.insert(tile.shape.begin(), 1);
  return tile;
}

float value_at(std::span<const std::byte> values, std::int64_t element, DType dtype) {
  if (dtype == DType::f32) return reinterpret_cast<const float*>(values.data())[element];
  return to_float(reinterpret_cast<const Bfloat16*>(values.data())[element]);
}

/// All terms of a region of the first, summed up in f32, into the tile.
void add_terms_of_piece(const TensorReader& file, const State& state, const HeldTile& tile,
                        TensorRegion region, int terms, DType dtype, const BytesRead& read) {
  std::vector<float> sums(static_cast<std::size_t>(element_count(region.count)), 0.0f);
  const TensorRegion first = region;
  for (int term = 0; term < terms; ++term) {
    region.offset.front() = term;
    file.read(state.name, region, [&](const TensorRegion& box, std::span<const std::byte> values) {
      std::int64_t element = 0;
      Shape origin = box.offset;
      for (std::size_t d = 0; d < origin.size(); ++d) origin[d] -= region.offset[d];
      const std::int64_t length = row_length(box.count);
      for_each_row(box.count, [&](const Shape& row) {
        Shape at = origin;
        for (std::size_t d = 0; d < at.size(); ++d) at[d] += row[d];
        float* const to = sums.data() + element_at(region.count, at);
        for (std::int64_t i = 0; i < length; ++i) to[i] += value_at(values, element++, dtype);
      });
      if (read) read(std::ssize(values));
    });
  }
  std::vector<std::byte> values(sums.size() * static_cast<std::size_t>(dtype_bytes(dtype)));
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (dtype == DType::f32)
      reinterpret_cast<float*>(values.data())[i] = sums[i];
    else
      reinterpret_cast<Bfloat16*>(values.data())[i] = to_bfloat16(sums[i]);
  write_box(tile, first, values, dtype_bytes(dtype));
}

/// Likewise, a few MiB at a time (but for longer rows).
void add_terms(const TensorReader& file, const State& state, const HeldTile& tile, const TensorRegion& region,
               int terms, DType dtype, const BytesRead& read) {
  constexpr std::int64_t kPieceElements = 1 << 20;
  if (region.count.size() < 2) return add_terms_of_piece(file, state, tile, region, terms, dtype, read);
  const std::int64_t rows = region.count[1],
                     rows_at_once = std::max<std::int64_t>(
                         1, kPieceElements * rows / std::max<std::int64_t>(1, element_count(region.count)));
  for (std::int64_t row = 0; row < rows; row += rows_at_once) {
    TensorRegion piece = region;
    piece.offset[1] += row;
    piece.count[1] = std::min(rows_at_once, rows - row);
    add_terms_of_piece(file, state, tile, piece, terms, dtype, read);
  }
}

DataIdentity data_of(const TensorReader& file) {
  DataIdentity data;
  data.length = file.int64_attribute("data_tokens");
  if (!file.has_attribute("data_content")) return data;
  data.content = file.text_attribute("data_content");
  data.evaluation = file.text_attribute("evaluation_content");
  data.windows = file.int64_attribute("training_windows");
  data.sequence = file.int64_attribute("window_tokens");
  data.seed = file.int64_attribute("sample_seed");
  data.order = file.text_attribute("sample_order");
  return data;
}

void write_data(TensorWriter& file, const DataIdentity& data) {
  file.attribute("data_tokens", data.length);
  if (data.content.empty()) return;
  file.attribute("data_content", data.content);
  file.attribute("evaluation_content", data.evaluation);
  file.attribute("training_windows", data.windows);
  file.attribute("window_tokens", data.sequence);
  file.attribute("sample_seed", data.seed);
  file.attribute("sample_order", data.order);
}

CheckpointFacts facts_of(const TensorReader& file, const std::filesystem::path& path) {
  CheckpointFacts facts{file.int64_attribute("step"), file.int64_attribute("samples"), data_of(file),
                        file.text_attribute("training_options")};
  // Each step has a sample or more; a run that counts on from here stays within 64 bits.
  if (facts.step < 0 || facts.step > kMostSteps || facts.samples < facts.step ||
      facts.samples > facts.step * kMostSamples || facts.data.length < 0 || facts.data.windows < 0 ||
      facts.data.sequence < 0)
    throw Error(ErrorKind::input,
                fmt::format("'{}' is of step {} after {} samples of {} tokens, which no run can have",
                            path.string(), facts.step, facts.samples, facts.data.length),
                "resume from another checkpoint");
  if (!file.has_attribute("loss_scale")) return facts;
  const LossScale scale{file.double_attribute("loss_scale"), file.int64_attribute("loss_scale_good_steps"),
                        file.int64_attribute("skipped_steps")};
  if (!std::isfinite(scale.factor) || scale.factor < 1 || scale.good_steps < 0 || scale.skipped_steps < 0 ||
      scale.skipped_steps > facts.step)
    throw Error(
        ErrorKind::input,
        fmt::format(
            "'{}' has a loss scale of {} after {} good and {} skipped of {} steps, which no run can have",
            path.string(), scale.factor, scale.good_steps, scale.skipped_steps, facts.step),
        "resume from another checkpoint");
  facts.loss_scale = scale;
  return facts;
}

/// Of a state in a file, whatever its type there.
int terms_in(const State& state, const TensorType& stored) {
  const bool has_terms = state.holds_terms && !stored.shape.empty();
  return has_terms ? static_cast<int>(std::clamp<std::int64_t>(stored.shape.front(), 1, kMostDevices)) : 1;
}

int terms_of(const StateTerms& terms, StateIndex state) { return terms.empty() ? 1 : terms[state]; }

/// "" where the states are those of the graph.
std::string differences(const Graph& graph, const std::map<std::string, TensorType>& found) {
  std::map<std::string, std::pair<std::string, std::string>> rows;  // name -> (here, in the file)
  for (const auto& [name, type] : found) rows[name].second = type_text(type);
  for (const State& state : graph.states) {
    auto& [here, there] = rows[state.name];
    const auto in_file = found.find(state.name);
    here =
        type_text(stored_type(graph, state, in_file == found.end() ? 1 : terms_in(state, in_file->second)));
  }
  return state_differences(rows, "this model", "checkpoint");
}

struct WrittenTensor {
  std::string name;
  TensorType type;
  std::vector<TensorPart> parts;  ///< that this rank holds
};

std::unique_ptr<TensorWriter> writer_of(const std::filesystem::path& path, const CheckpointFacts& facts,
                                        const std::string& fingerprint, std::vector<WrittenTensor> tensors,
                                        const Provenance& provenance, std::optional<WritingRanks> ranks) {
  // A failure shows, on all ranks alike, when the file is made.
  make_folder(path.parent_path());
  auto file = ranks ? std::make_unique<TensorWriter>(path, format, version, *ranks)
                    : std::make_unique<TensorWriter>(path, format, version);
  file->attribute("step", facts.step);
  file->attribute("samples", facts.samples);
  write_data(*file, facts.data);
  file->attribute("training_options", facts.training_options);
  if (facts.loss_scale) {
    file->attribute("loss_scale", facts.loss_scale->factor);
    file->attribute("loss_scale_good_steps", facts.loss_scale->good_steps);
    file->attribute("skipped_steps", facts.loss_scale->skipped_steps);
  }
  file->attribute("state_fingerprint", fingerprint);
  file->provenance(provenance);
  for (WrittenTensor& tensor : tensors) file->tensor(tensor.name, tensor.type, std::move(tensor.parts));
  return file;
}

}  // namespace

std::string state_fingerprint(const Graph& graph) {
  std::map<std::string, std::string> types;  // sorted: the order of states has no meaning
  for (const State& state : graph.states) types[state.name] = type_text(unpadded_type(graph, state));
  std::string text;
  for (const auto& [name, type] : types) text += name + ' ' + type + '\n';
  return fingerprint(text);
}

TensorType stored_type(const Graph& graph, const State& state, int terms) {
  TensorType type = unpadded_type(graph, state);
  if (state.holds_terms) type.shape.insert(type.shape.begin(), terms);
  return type;
}

TensorRegion stored_region(const State& state, const Shape& origin, const Shape& shape, int term) {
  TensorRegion region{origin, shape};
  for (std::size_t d = 0; d < state.unpadded.size(); ++d)
    region.count[d] = std::clamp<std::int64_t>(state.unpadded[d] - origin[d], 0, shape[d]);
  if (!state.holds_terms) return region;
  region.offset.insert(region.offset.begin(), term);
  region.count.insert(region.count.begin(), 1);
  return region;
}

std::string saving_text(std::int64_t step) { return fmt::format("saving the checkpoint of step {}", step); }

std::unique_ptr<TensorWriter> checkpoint_writer(const std::filesystem::path& path,
                                                const CheckpointFacts& facts, const Graph& graph,
                                                std::span<const HeldTile> tiles, const Provenance& provenance,
                                                std::optional<WritingRanks> ranks, const StateTerms& terms) {
  const auto parts = [&](StateIndex s) {
    std::vector<TensorPart> held;
    for (const HeldTile& tile : tiles) {
      if (tile.state != static_cast<int>(s)) continue;
      const HeldTile stored = as_stored(tile, graph.states[s]);
      const TensorRegion region = stored_region(graph.states[s], tile.origin, tile.shape, tile.term);
      if (element_count(region.count) > 0) held.push_back({region, stored.shape, tile.read});
    }
    return held;
  };
  std::vector<WrittenTensor> tensors;
  for (const StateIndex s : graph.states.indices()) {
    const State& state = graph.states[s];
    tensors.push_back({state.name, stored_type(graph, state, terms_of(terms, s)), parts(s)});
  }
  return writer_of(path, facts, state_fingerprint(graph), std::move(tensors), provenance, ranks);
}

void save_checkpoint(const std::filesystem::path& path, const CheckpointFacts& facts, const Graph& graph,
                     std::span<const HeldTile> tiles, const Provenance& provenance,
                     std::optional<WritingRanks> ranks, const StateTerms& terms) {
  in_step(saving_text(facts.step),
          [&] { checkpoint_writer(path, facts, graph, tiles, provenance, ranks, terms)->publish(); });
}

void save_checkpoint(const std::filesystem::path& path, const CheckpointFacts& facts,
                     const std::string& fingerprint, std::span<const FilledTensor> tensors,
                     const Provenance& provenance) {
  std::vector<std::byte> values;
  const FilledTensor* filled = nullptr;
  std::vector<WrittenTensor> written;
  for (const FilledTensor& tensor : tensors) {
    const auto read = [&](std::int64_t first, std::span<std::byte> into) {
      if (filled != &tensor) {
        values.resize(static_cast<std::size_t>(byte_count(tensor.type)));
        tensor.fill(values.data());
        filled = &tensor;
      }
      std::copy_n(values.begin() + first, into.size(), into.begin());
    };
    const Shape& shape = tensor.type.shape;
    written.push_back({tensor.name, tensor.type, {{{Shape(shape.size(), 0), shape}, shape, read}}});
  }
  in_step(saving_text(facts.step),
          [&] { writer_of(path, facts, fingerprint, std::move(written), provenance, {})->publish(); });
}

void save_checkpoint(const std::filesystem::path& path, const CheckpointFacts& facts, const Graph& graph,
                     const FillState& fill, const Provenance& provenance) {
  std::vector<FilledTensor> tensors;
  for (const State& state : graph.states)
    tensors.push_back({state.name, stored_type(graph, state, 1), [&](void* values) { fill(state, values); }});
  save_checkpoint(path, facts, state_fingerprint(graph), tensors, provenance);
}

bool belongs_to_parameter(const std::map<std::string, TensorType>& tensors, const std::string& name) {
  const std::size_t end = name.rfind('.');
  return end != std::string::npos && tensors.contains(name.substr(0, end));
}

TensorReader open_checkpoint(const std::filesystem::path& path) { return {path, format, version}; }

CheckpointFacts load_checkpoint(const std::filesystem::path& path, const Graph& graph,
                                std::span<const HeldTile> tiles, const BytesRead& read,
                                const StateTerms& terms) {
  const TensorReader file = open_checkpoint(path);
  const std::string table = differences(graph, file.tensors());
  if (!table.empty())
    throw Error(ErrorKind::input,
                fmt::format("'{}' is a checkpoint of another model: {}", path.string(), table),
                "resume with a plan of the model that was saved, or use another --run-dir");
  for (const HeldTile& tile : tiles) {
    assert(tile.state >= 0 && tile.state < static_cast<int>(graph.states.size()));
    const State& state = graph.states[tile.state];
    const DType dtype = unpadded_type(graph, state).dtype;
    const int in_file = terms_in(state, file.tensors().at(state.name));
    const bool in_same_terms = in_file == terms_of(terms, tile.state);
    const HeldTile stored = as_stored(tile, state);
    const TensorRegion region = stored_region(state, tile.origin, tile.shape, tile.term);
    if (region.count != stored.shape || !in_same_terms) fill_zero(tile, byte_count({dtype, tile.shape}));
    if (element_count(region.count) == 0) continue;
    if (in_same_terms)
      file.read(state.name, region, [&](const TensorRegion& box, std::span<const std::byte> values) {
        write_box(stored, box, values, dtype_bytes(dtype));
        if (read) read(std::ssize(values));
      });
    else if (tile.term == 0)
      add_terms(file, state, stored, region, in_file, dtype, read);
  }
  return facts_of(file, path);
}

int states_in_other_terms(const std::filesystem::path& path, const Graph& graph, const StateTerms& terms) {
  const std::map<std::string, TensorType> found = open_checkpoint(path).tensors();
  int others = 0;
  for (const StateIndex s : graph.states.indices())
    if (const auto in_file = found.find(graph.states[s].name); in_file != found.end())
      others += terms_in(graph.states[s], in_file->second) != terms_of(terms, s) ? 1 : 0;
  return others;
}

CheckpointFacts checkpoint_facts(const std::filesystem::path& path) {
  return facts_of(open_checkpoint(path), path);
}

CheckpointFacts verify_checkpoint(const std::filesystem::path& path, const BytesRead& read) {
  const TensorReader file = open_checkpoint(path);
  file.verify(read);
  return facts_of(file, path);
}

}  // namespace alpa
