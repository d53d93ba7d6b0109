#include "libalpa/program/step_samples.h"

#include <algorithm>

namespace alpa {
namespace {

/// Rows [begin, end).
struct RowRange {
  std::int64_t begin = 0, end = 0;

  RowRange moved(std::int64_t by) const { return begin == end ? *this : RowRange{begin + by, end + by}; }

  /// Grows to the least range that has both.
  void add(const RowRange& other) {
    if (other.begin == other.end) return;
    if (begin == end) {
      *this = other;
    } else {
      begin = std::min(begin, other.begin);
      end = std::max(end, other.end);
    }
  }
};

/// What the devices of a mesh read of the buffers that a program loads samples into.
class LoadedRows {
 public:
  LoadedRows(const Graph& graph, const Program& program, MeshIndex mesh)
      : mesh_(program.meshes[mesh]), slices_(mesh_.buffers.size()), is_whole_(mesh_.buffers.size(), false) {
    for (const Buffer& buffer : mesh_.buffers)
      if (buffer.view_of >= 0) is_whole_[buffer.view_of] = true;
    for (const Segment& segment : mesh_.segments)
      for (const Instruction& instruction : segment.instructions) add(graph, instruction);
  }

  /// Adds what a device takes to its ranges, by index in Graph::inputs.
  void add_to(std::vector<RowRange>& ranges, const std::vector<int>& coordinate) const {
    for (const Load* load : loads_) ranges[load->input].add(read_of(load->to, coordinate));
  }

 private:
  void add(const Graph& graph, const Instruction& instruction) {
    if (const auto* const load = std::get_if<Load>(&instruction.body)) {
      if (graph.inputs[load->input].is_of_samples()) loads_.push_back(load);
      return;
    }
    const auto* const convert = std::get_if<Convert>(&instruction.body);
    if (convert && convert->step.kind == ConversionKind::slice)
      slices_[convert->from].push_back(convert);
    else
      for (const BufferIndex b : buffers_read(instruction)) is_whole_[b] = true;
  }

  RowRange read_of(BufferIndex buffer, const std::vector<int>& coordinate) const {
    if (is_whole_[buffer]) return {0, mesh_.buffers[buffer].tile.shape[0]};
    RowRange rows;
    for (const Convert* slice : slices_[buffer]) {
      RowRange of_slice = read_of(slice->to, coordinate);
      if (slice->step.to_dimension == 0)
        of_slice = of_slice.moved(coordinate[slice->step.axis] * mesh_.buffers[slice->to].tile.shape[0]);
      rows.add(of_slice);
    }
    return rows;
  }

  const MeshProgram& mesh_;
  std::vector<const Load*> loads_;  ///< of samples
  Indexed<BufferIndex, std::vector<const Convert*>> slices_;
  Indexed<BufferIndex, bool> is_whole_;  ///< read by something else than a slice
};

class SamplesOfMesh {
 public:
  SamplesOfMesh(const Graph& graph, std::span<const Program* const> programs, MeshIndex mesh)
      : graph_(graph), micro_batches_(programs[0]->micro_batches) {
    for (const Program* program : programs) loaded_.emplace_back(graph, *program, mesh);
  }

  StepSamples at(const std::vector<int>& coordinate) const {
    std::vector<RowRange> rows(graph_.inputs.size());
    for (const LoadedRows& loaded : loaded_) loaded.add_to(rows, coordinate);
    StepSamples samples;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!graph_.inputs[i].is_of_samples()) continue;
      const TensorType& type = value_of(graph_, graph_.inputs[i].value).type;
      samples.push_back({micro_batches_, type.shape[0], rows[i].begin, rows[i].end - rows[i].begin,
                         byte_count(type) / type.shape[0]});
    }
    return samples;
  }

 private:
  const Graph& graph_;
  int micro_batches_;
  std::vector<LoadedRows> loaded_;  ///< [program]
};

}  // namespace

StepSamples step_samples(const Graph& graph, std::span<const Program* const> programs, MeshIndex mesh,
                         const std::vector<int>& coordinate) {
  return SamplesOfMesh(graph, programs, mesh).at(coordinate);
}

std::vector<StepSamples> step_samples_of_devices(const Graph& graph,
                                                 std::span<const Program* const> programs) {
  std::vector<StepSamples> all;
  for (const MeshIndex m : programs[0]->meshes.indices()) {
    const DeviceMesh& mesh = programs[0]->meshes[m].mesh;
    const SamplesOfMesh of_mesh(graph, programs, m);
    for (int i = 0; i < device_count(mesh.shape); ++i)
      all.push_back(of_mesh.at(coordinate_of(mesh, DeviceIndex(mesh.first_device + i))));
  }
  return all;
}

}  // namespace alpa
