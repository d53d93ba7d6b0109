#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "libalpa/program/program.h"

namespace alpa::testing_models {

/// A step unrolled, or several that follow each other: every run of every instruction of every mesh, and what
/// each waits for, found by comparing all pairs. Written apart from program/order/dependences.
struct UnrolledStep {
  struct Vertex {
    MeshIndex mesh;
    std::size_t run, segment, instruction;  ///< run: counted on from step to step
    int micro_batch;
    int step;
  };
  std::vector<Vertex> vertices;                  ///< mesh by mesh, in the listed order
  std::vector<std::set<std::size_t>> waits_for;  ///< [vertex]

  UnrolledStep(const Program& program, Overlap overlap, int steps = 1)
      : program_(program), overlap_(overlap) {
    for (const MeshIndex m : program.meshes.indices())
      for (int step = 0; step < steps; ++step)
        for (std::size_t r = 0; r < program.meshes[m].schedule.size(); ++r) {
          const SegmentRun& run = program.meshes[m].schedule[r];
          const std::size_t runs = static_cast<std::size_t>(step) * program.meshes[m].schedule.size();
          for (std::size_t i = 0; i < program.meshes[m].segment_of(run).instructions.size(); ++i)
            vertices.push_back(
                {m, runs + r, static_cast<std::size_t>(run.segment), i, run.micro_batch, step});
        }
    waits_for.resize(vertices.size());
    for (std::size_t v = 0; v < vertices.size(); ++v) {
      std::map<BufferIndex, bool> writes;
      for (const BufferIndex buffer : buffers_read(of(v))) writes[buffer] |= false;
      for (const BufferIndex buffer : buffers_written(of(v))) writes[buffer] = true;
      uses_.emplace_back(writes.begin(), writes.end());
    }
    std::map<std::pair<MeshIndex, int>, std::size_t> in_lane;
    for (std::size_t b = 0; b < vertices.size(); ++b) {
      const auto [last, first] = in_lane.insert({{vertices[b].mesh, lane(b)}, b});
      if (!first) waits_for[b].insert(std::exchange(last->second, b));
    }
    for (std::size_t a = 0; a < vertices.size(); ++a)
      for (std::size_t b = a + 1; b < vertices.size() && vertices[b].mesh == vertices[a].mesh; ++b)
        if (lane(a) != lane(b) && conflict(a, b)) waits_for[b].insert(a);
    for (std::size_t v = 0; v < vertices.size(); ++v)
      for (const int other : of(v).after)
        waits_for[v].insert(v - vertices[v].instruction + static_cast<std::size_t>(other));
    add_messages();
    add_global_sums();
  }

  const MeshProgram& mesh(std::size_t v) const { return program_.meshes[vertices[v].mesh]; }
  const Instruction& of(std::size_t v) const {
    return mesh(v).segments[vertices[v].segment].instructions[vertices[v].instruction];
  }

 private:
  /// What is done in turn with the computation is in its lane.
  int lane(std::size_t v) const {
    return is_in_turn(mesh(v).lanes[of(v).lane].kind, overlap_) ? 0 : of(v).lane;
  }

  /// The buffer that places the slots of this one.
  static BufferIndex slots_of(const MeshProgram& mesh, BufferIndex b) {
    const BufferIndex of = mesh.buffers[mesh.whole(b)].slots_in;
    return of < 0 ? mesh.whole(b) : of;
  }

  /// Both use a slot of a buffer, or of several that have it in common, and one writes; or memory of
  /// segments, in different runs.
  bool conflict(std::size_t a, std::size_t b) const {
    bool both_of_segments[2] = {false, false};
    for (const auto& [x, x_writes] : uses_[a])
      for (const auto& [y, y_writes] : uses_[b]) {
        const Buffer& buffer = mesh(a).buffers[x];
        const Buffer& other = mesh(a).buffers[y];
        both_of_segments[0] |= buffer.residence == Residence::segment;
        both_of_segments[1] |= other.residence == Residence::segment;
        const bool overlap = slots_of(mesh(a), x) == slots_of(mesh(a), y) &&
                             buffer.view_offset < other.view_offset + other.bytes &&
                             other.view_offset < buffer.view_offset + buffer.bytes;
        if (!overlap || (!x_writes && !y_writes)) continue;
        if (mesh(a).slot(x, vertices[a].micro_batch) == mesh(a).slot(y, vertices[b].micro_batch))
          if (buffer.residence != Residence::segment || vertices[a].run == vertices[b].run) return true;
      }
    return vertices[a].run != vertices[b].run && both_of_segments[0] && both_of_segments[1];
  }

  void add_messages() {
    std::map<std::tuple<int, int, int>, std::size_t> sent, received;  // step, transfer, micro-batch
    for (std::size_t v = 0; v < vertices.size(); ++v) {
      if (const auto* send = std::get_if<Send>(&of(v).body))
        sent[{vertices[v].step, send->transfer, vertices[v].micro_batch}] = v;
      if (const auto* receive = std::get_if<Receive>(&of(v).body))
        received[{vertices[v].step, receive->transfer, vertices[v].micro_batch}] = v;
    }
    for (const auto& [message, v] : received) waits_for[v].insert(sent.at(message));
    for (const auto& [message, v] : sent) {
      const Send& send = std::get<Send>(of(v).body);
      if (send.packed < 0) continue;
      const auto& [step, transfer, micro_batch] = message;
      // Of the messages before it the last that had its slot.
      const auto slots = static_cast<int>(mesh(v).buffers[send.packed].slots);
      auto before = received.find({step, transfer, micro_batch - slots});
      for (int last = program_.micro_batches; before == received.end() && step > 0 && last-- > 0;)
        if (last % slots == micro_batch % slots) before = received.find({step - 1, transfer, last});
      if (before != received.end()) waits_for[v].insert(before->second);
    }
  }

  /// All take part, so each waits for what any of them waits for.
  void add_global_sums() {
    std::map<int, std::vector<std::size_t>> sums;  // by step
    for (std::size_t v = 0; v < vertices.size(); ++v)
      if (std::holds_alternative<GlobalSum>(of(v).body) &&
          acts(of(v).when, vertices[v].micro_batch, program_.micro_batches))
        sums[vertices[v].step].push_back(v);
    for (const auto& [step, of_step] : sums) {
      std::set<std::size_t> all;
      for (const std::size_t v : of_step) all.insert(waits_for[v].begin(), waits_for[v].end());
      for (const std::size_t v : of_step) waits_for[v] = all;
    }
  }

  const Program& program_;
  Overlap overlap_;
  std::vector<std::vector<std::pair<BufferIndex, bool>>>
      uses_;  ///< [vertex] buffers, and whether they are written
};

}  // namespace alpa::testing_models
