#include "libalpa/program/text.h"

#include <fmt/core.h>

#include "libalpa/base/match.h"

namespace alpa {
namespace {

const char* residence_name(Residence residence) {
  switch (residence) {
    case Residence::state:
      return "state";
    case Residence::step:
      return "step";
    case Residence::micro_batch:
      return "micro-batch";
    case Residence::segment:
      return "segment";
  }
  return "";
}

std::string list(const std::vector<int>& buffers) {
  std::string text;
  for (const int b : buffers) text += fmt::format(" %{}", b);
  return text;
}

/// Scratch beside what is computed, where there is some.
std::string with(const char* what, int buffer) {
  return buffer < 0 ? "" : fmt::format(", {} %{}", what, buffer);
}

std::string mesh_place(const DeviceMesh& mesh) {
  return fmt::format("mesh {} from device {}", mesh_text(mesh.shape), mesh.first_device);
}

std::string buffer_text(const Buffer& b) {
  std::string text = fmt::format("{} {} {}", residence_name(b.residence), b.name, type_text(b.tile));
  if (b.value >= 0) text += fmt::format(" {} of value {}", spec_text(b.layout), b.value);
  if (b.passed > 0) text += fmt::format(", passed on {} times along axis {}", b.passed, b.ring_axis);
  return text + fmt::format(", {} bytes at {}", b.bytes, b.offset);
}

std::string compute_text(const Compute& i, const Graph& graph) {
  constexpr const char* accumulates[] = {"", ", adds", ", adds after the first micro-batch"};
  std::string settings = i.attributes.to_string();
  if (!settings.empty()) settings = " " + settings;
  return fmt::format("{} {}{}{} ->{}{}{}", i.op->name, node_of(graph, i.node).name, settings,
                     list(i.operands), list(i.results), with("workspace", i.workspace),
                     accumulates[static_cast<int>(i.accumulate)]);
}

std::string convert_text(const Convert& i) {
  std::string text = fmt::format("{} axis {}", conversion_name(i.step.kind), i.step.axis);
  if (i.step.maximum) text += " maximum";
  if (i.step.from_dimension >= 0) text += fmt::format(" of dimension {}", i.step.from_dimension);
  if (i.step.to_dimension >= 0) text += fmt::format(" to dimension {}", i.step.to_dimension);
  return text + fmt::format(" %{} -> %{} {}{}{}", i.from, i.to, spec_text(i.step.after),
                            with("packed", i.packed), with("unpacked", i.unpacked));
}

std::string instruction_text(const Instruction& instruction, const Graph& graph) {
  return std::visit(
      Match{
          [](const Load& i) { return fmt::format("load input {} -> %{}", i.input, i.to); },
          [&](const Compute& i) { return compute_text(i, graph); },
          [](const Convert& i) { return convert_text(i); },
          [](const Shift& i) {
            return fmt::format("shift axis {}{} ->{}", i.axis, list(i.from), list(i.to));
          },
          [](const Send& i) {
            const std::string turns = i.turns > 1 ? fmt::format(" of {} messages", i.turns) : "";
            return fmt::format("send {} %{}{}{}", i.transfer, i.from, with("packed", i.packed), turns);
          },
          [](const Receive& i) {
            return fmt::format("receive {} -> %{}{}", i.transfer, i.to, with("packed", i.packed));
          },
          [](const GlobalSum& i) {
            return fmt::format("global-sum{}{}", list(i.scalars), with("packed", i.packed));
          },
          [](const Zero& i) { return fmt::format("zero -> %{}", i.to); },
      },
      instruction);
}

std::string schedule_text(const StageProgram& stage) {
  constexpr const char* letters[] = {"F", "B", "U"};
  std::string text;
  for (const ScheduledSegment& run : stage.schedule) {
    text += fmt::format(" {}", letters[static_cast<int>(run.segment)]);
    if (run.micro_batch >= 0) text += fmt::format("{}", run.micro_batch);
  }
  return text;
}

std::string stage_text(const StageProgram& stage, const Graph& graph) {
  std::string text = fmt::format("{}, {} slots, arena of {} bytes\n", mesh_place(stage.mesh), stage.slots,
                                 stage.memory.total);
  for (std::size_t b = 0; b < stage.buffers.size(); ++b)
    text += fmt::format("  %{} {}\n", b, buffer_text(stage.buffers[b]));
  for (const SegmentKind kind : every_segment) {
    text += fmt::format("  {}\n", segment_name(kind));
    for (const Instruction& instruction : stage.segment(kind))
      text += fmt::format("    {}\n", instruction_text(instruction, graph));
  }
  text += fmt::format("  schedule{}\n  loss %{}, squared norm of the gradients %{}", schedule_text(stage),
                      stage.loss, stage.gradient_square_sum);
  if (!stage.metrics.empty()) text += fmt::format(", metrics{}", list(stage.metrics));
  return text + "\n";
}

}  // namespace

std::string program_text(const Program& program, const Graph& graph) {
  std::string text = fmt::format("{} micro-batches of {} samples, {} devices a node\n", program.micro_batches,
                                 program.micro_batch_samples, program.devices_per_node);
  for (std::size_t t = 0; t < program.transfers.size(); ++t) {
    const Transfer& transfer = program.transfers[t];
    text += fmt::format("transfer {} of value {} {}: {} on {} -> {} on {}\n", t, program.transfer_value[t],
                        type_text(transfer.whole), spec_text(transfer.from), mesh_place(transfer.from_mesh),
                        spec_text(transfer.to), mesh_place(transfer.to_mesh));
  }
  for (std::size_t s = 0; s < program.stages.size(); ++s)
    text += fmt::format("stage {} on {}", s, stage_text(program.stages[s], graph));
  return text;
}

}  // namespace alpa
