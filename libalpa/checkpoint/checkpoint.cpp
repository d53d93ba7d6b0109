#include "libalpa/checkpoint/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "libalpa/base/box_rows.h"
#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/limits.h"
#include "libalpa/h5/atomic_file.h"

namespace alpa {
namespace {

constexpr const char* format = "alpa-checkpoint";
constexpr const char* version = "1.0";

/// A tile without the padding of its state: empty where it is padding alone.
TensorRegion unpadded(const State& state, const HostTile& tile) {
  TensorRegion region{tile.origin, tile.shape};
  for (std::size_t d = 0; d < state.unpadded.size(); ++d)
    region.count[d] = std::clamp<std::int64_t>(state.unpadded[d] - tile.origin[d], 0, tile.shape[d]);
  return region;
}

/// Whether what is left of a tile does not lie in one piece at its beginning.
bool has_gaps(const Shape& tile, const Shape& left) {
  return !std::equal(tile.begin() + (tile.empty() ? 0 : 1), tile.end(),
                     left.begin() + (tile.empty() ? 0 : 1));
}

/// Calls copy(in_tile, in_region, bytes) for each row of what is left of a tile: where it is in the tile's
/// memory, and where in memory without the padding.
template <class Copy>
void for_each_row_left(const HostTile& tile, const Shape& left, std::int64_t element, const Copy& copy) {
  const std::int64_t bytes = row_length(left) * element;
  std::int64_t in_region = 0;
  for_each_row(left, [&](const Shape& at) {
    copy(static_cast<std::byte*>(tile.values) + element_at(tile.shape, at) * element, in_region,
         static_cast<std::size_t>(bytes));
    in_region += bytes;
  });
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
                fmt::format("'{}' is of step {} after {} samples of {} tokens, which no run comes to",
                            path.string(), facts.step, facts.samples, facts.data.length),
                "resume from another checkpoint");
  if (!file.has_attribute("loss_scale")) return facts;
  const LossScale scale{file.double_attribute("loss_scale"), file.int64_attribute("loss_scale_good_steps"),
                        file.int64_attribute("skipped_steps")};
  if (!std::isfinite(scale.factor) || scale.factor < 1 || scale.good_steps < 0 || scale.skipped_steps < 0 ||
      scale.skipped_steps > facts.step)
    throw Error(
        ErrorKind::input,
        fmt::format("'{}' has a loss scale of {} after {} good and {} skipped of {} steps, which no run "
                    "comes to",
                    path.string(), scale.factor, scale.good_steps, scale.skipped_steps, facts.step),
        "resume from another checkpoint");
  facts.loss_scale = scale;
  return facts;
}

/// "" where the states are those of the graph, otherwise one line per state that differs, at most twelve.
std::string differences(const Graph& graph, const std::map<std::string, TensorType>& found) {
  std::map<std::string, std::pair<std::string, std::string>> rows;  // name -> (here, in the file)
  for (const State& state : graph.states) rows[state.name].first = type_text(unpadded_type(graph, state));
  for (const auto& [name, type] : found) rows[name].second = type_text(type);
  std::string table;
  int shown = 0, differing = 0;
  for (const auto& [name, row] : rows) {
    const auto& [here, there] = row;
    if (here == there || ++differing > 12) continue;
    table +=
        fmt::format("\n  {:<40} {:<20} {}", name, here.empty() ? "-" : here, there.empty() ? "-" : there);
    ++shown;
  }
  if (differing == 0) return {};
  if (differing > shown) table += fmt::format("\n  and {} more", differing - shown);
  return fmt::format("{} of {} states differ\n  {:<40} {:<20} {}", differing, rows.size(), "state",
                     "this model", "checkpoint") +
         table;
}

std::unique_ptr<TensorWriter> open_writer(const std::filesystem::path& path,
                                          std::optional<WritingRanks> ranks) {
  return ranks ? std::make_unique<TensorWriter>(path, format, version, *ranks)
               : std::make_unique<TensorWriter>(path, format, version);
}

/// A file with all but its tensors, which `write` writes.
template <class Write>
void save(const std::filesystem::path& path, const CheckpointFacts& facts, const Graph& graph,
          const Provenance& provenance, std::optional<WritingRanks> ranks, const Write& write) {
  // A failure shows, on all ranks alike, when the file is made.
  make_folder(path.parent_path());
  in_step(fmt::format("saving the checkpoint of step {}", facts.step), [&] {
    const std::unique_ptr<TensorWriter> file = open_writer(path, ranks);
    file->attribute("step", facts.step);
    file->attribute("samples", facts.samples);
    write_data(*file, facts.data);
    file->attribute("training_options", facts.training_options);
    if (facts.loss_scale) {
      file->attribute("loss_scale", facts.loss_scale->factor);
      file->attribute("loss_scale_good_steps", facts.loss_scale->good_steps);
      file->attribute("skipped_steps", facts.loss_scale->skipped_steps);
    }
    file->attribute("state_fingerprint", state_fingerprint(graph));
    file->provenance(provenance);
    for (const State& state : graph.states) file->declare(state.name, unpadded_type(graph, state));
    write(*file);
    file->publish();
  });
}

}  // namespace

std::string state_fingerprint(const Graph& graph) {
  std::map<std::string, std::string> types;  // sorted: the order of states has no meaning
  for (const State& state : graph.states) types[state.name] = type_text(unpadded_type(graph, state));
  std::string text;
  for (const auto& [name, type] : types) text += name + ' ' + type + '\n';
  return fingerprint(text);
}

void save_checkpoint(const std::filesystem::path& path, const CheckpointFacts& facts, const Graph& graph,
                     std::span<const HostTile> tiles, const Provenance& provenance,
                     std::optional<WritingRanks> ranks) {
  save(path, facts, graph, provenance, ranks, [&](TensorWriter& file) {
    for (const StateIndex s : graph.states.indices()) {
      const State& state = graph.states[s];
      std::vector<TensorPart> parts;
      std::deque<std::vector<std::byte>> gathered;
      for (const HostTile& tile : tiles) {
        if (tile.state != static_cast<int>(s)) continue;
        const TensorRegion region = unpadded(state, tile);
        if (element_count(region.count) == 0) continue;
        parts.push_back({region, tile.values});
        if (!has_gaps(tile.shape, region.count)) continue;
        const TensorType type{unpadded_type(graph, state).dtype, region.count};
        std::vector<std::byte>& rows = gathered.emplace_back(static_cast<std::size_t>(byte_count(type)));
        for_each_row_left(tile, region.count, dtype_bytes(type.dtype),
                          [&](const std::byte* row, std::int64_t at, std::size_t bytes) {
                            std::memcpy(rows.data() + at, row, bytes);
                          });
        parts.back().data = rows.data();
      }
      file.write(state.name, parts);
    }
  });
}

void save_checkpoint(const std::filesystem::path& path, const CheckpointFacts& facts, const Graph& graph,
                     const FillState& fill, const Provenance& provenance) {
  save(path, facts, graph, provenance, {}, [&](TensorWriter& file) {
    std::vector<std::byte> values;
    for (const State& state : graph.states) {
      const TensorType type = unpadded_type(graph, state);
      values.resize(static_cast<std::size_t>(byte_count(type)));
      fill(state, values.data());
      file.write(state.name, {Shape(type.shape.size(), 0), type.shape}, values.data());
    }
  });
}

TensorReader open_checkpoint(const std::filesystem::path& path) { return {path, format, version}; }

CheckpointFacts load_checkpoint(const std::filesystem::path& path, const Graph& graph,
                                std::span<const HostTile> tiles, const BytesRead& read) {
  const TensorReader file = open_checkpoint(path);
  const std::string table = differences(graph, file.tensors());
  if (!table.empty())
    throw Error(ErrorKind::input,
                fmt::format("'{}' is a checkpoint of another model: {}", path.string(), table),
                "resume with a plan of the model that was saved, or use another --run-dir");
  for (const HostTile& tile : tiles) {
    assert(tile.state >= 0 && tile.state < static_cast<int>(graph.states.size()));
    const State& state = graph.states[tile.state];
    const TensorRegion region = unpadded(state, tile);
    const DType dtype = unpadded_type(graph, state).dtype;
    const std::int64_t bytes = byte_count({dtype, region.count}), all = byte_count({dtype, tile.shape});
    auto* values = static_cast<std::byte*>(tile.values);
    if (bytes > 0) file.read(state.name, region, values);
    if (has_gaps(tile.shape, region.count)) {
      const std::vector<std::byte> rows(values, values + bytes);
      std::memset(values, 0, static_cast<std::size_t>(all));
      for_each_row_left(tile, region.count, dtype_bytes(dtype),
                        [&](std::byte* row, std::int64_t at, std::size_t count) {
                          std::memcpy(row, rows.data() + at, count);
                        });
    } else {
      std::memset(values + bytes, 0, static_cast<std::size_t>(all - bytes));
    }
    if (read) read(bytes);
  }
  return facts_of(file, path);
}

CheckpointFacts verify_checkpoint(const std::filesystem::path& path, const BytesRead& read) {
  const TensorReader file = open_checkpoint(path);
  file.verify(read);
  return facts_of(file, path);
}

}  // namespace alpa
