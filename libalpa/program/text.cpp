#include "libalpa/program/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/overloaded.h"
#include "libalpa/program/lower/lower.h"

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

std::string list(const std::vector<BufferIndex>& buffers) {
  std::string text;
  for (const BufferIndex b : buffers) text += fmt::format(" %{}", b);
  return text;
}

/// Scratch beside what is computed, where there is some.
std::string with(const char* what, BufferIndex buffer) {
  return buffer < 0 ? "" : fmt::format(", {} %{}", what, buffer);
}

std::string mesh_place(const DeviceMesh& mesh) {
  return fmt::format("mesh {} from device {}", mesh_text(mesh.shape), mesh.first_device);
}

std::string buffer_text(const Buffer& b) {
  std::string text = fmt::format("{} {} {}", residence_name(b.residence), b.name, type_text(b.tile));
  if (b.value >= 0) text += fmt::format(" {} of value {}", spec_text(b.layout), b.value);
  if (b.ring_hops > 0) text += fmt::format(", passed on {} times along axis {}", b.ring_hops, b.ring_axis);
  if (b.view_of >= 0) text += fmt::format(", in %{}", b.view_of);
  if (b.space == MemorySpace::host) text += ", on the host";
  if (!b.owner.is_everybody())
    text += fmt::format(", rows from {} of place {} along axis {}", b.first_row, b.owner.place, b.owner.axis);
  if (!b.slot_of.empty()) text += fmt::format(", micro-batches in {}", fmt::join(b.slot_of, " "));
  const std::string of = b.slots_in >= 0 ? fmt::format(" in %{}", b.slots_in) : "";
  const std::string slots = b.slots > 1 ? fmt::format("{} slots{} of ", b.slots, of) : "";
  return text + fmt::format(", {}{} bytes at {}", slots, b.bytes, b.offset);
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
  if (i.step.wire_type) text += fmt::format(" in {}", dtype_name(*i.step.wire_type));
  if (i.step.from_dimension >= 0) text += fmt::format(" of dimension {}", i.step.from_dimension);
  if (i.step.to_dimension >= 0) text += fmt::format(" to dimension {}", i.step.to_dimension);
  return text +
         fmt::format(" %{} -> %{} {}{}{}", i.from, i.to, spec_text(i.step.after), with("packed", i.packed),
                     with("unpacked", i.unpacked)) +
         with("rows of", i.row_ids) + (i.is_served ? " served" : "");
}

std::string instruction_text(const Instruction& instruction, const Graph& graph) {
  return std::visit(
      Overloaded{
          [](const Load& i) { return fmt::format("load input {} -> %{}", i.input, i.to); },
          [&](const Compute& i) { return compute_text(i, graph); },
          [](const Convert& i) { return convert_text(i); },
          [](const Shift& i) {
            return fmt::format("shift axis {}{} ->{}", i.axis, list(i.from), list(i.to));
          },
          [](const OwnerCollective& i) {
            return fmt::format("{} axis {}{} ->{}", owner_collective_name(i.reduces), i.axis,
                               list(i.reduces ? i.everywhere : i.owned),
                               list(i.reduces ? i.owned : i.everywhere));
          },
          [](const Serve& i) {
            return fmt::format("serve axis {}{} {} {}", i.axis, i.maximum ? " maximum" : "", i.elements,
                               dtype_name(i.dtype));
          },
          [](const Send& i) {
            return fmt::format("send {} %{}{}", i.transfer, i.from, with("packed", i.packed));
          },
          [](const Receive& i) { return fmt::format("receive {} -> %{}", i.transfer, i.packed); },
          [](const Unpack& i) { return fmt::format("unpack {} %{} -> %{}", i.transfer, i.packed, i.to); },
          [](const Exchange& i) {
            return fmt::format("{}{}{}{}", exchange_name(i.kind), list(i.tensors), with("scalars", i.scalars),
                               with("messages", i.messages));
          },
          [](const GlobalSum& i) {
            return fmt::format("global-sum{}{}", list(i.scalars), with("packed", i.packed));
          },
          [](const Zero& i) { return fmt::format("zero -> %{}", i.to); },
          [](const Copy& i) { return fmt::format("copy %{} -> %{}", i.from, i.to); },
          [](const Fetch& i) { return fmt::format("fetch %{} -> %{}", i.from, i.to); },
          [](const Offload& i) { return fmt::format("offload %{} -> %{}", i.from, i.to); },
      },
      instruction.body);
}

const char* when_text(When when) {
  switch (when) {
    case When::every_micro_batch:
      return "";
    case When::first_micro_batch:
      return ", in the first micro-batch";
    case When::last_micro_batch:
      return ", in the last micro-batch";
    case When::norm_binds:
      return ", where the norm binds";
    case When::of_step_before:
      return ", of the step before";
  }
  return "";
}

std::string lane_text(const MeshProgram& mesh, int lane) {
  return lane == 0 ? "" : fmt::format(" [{}]", lane_name(mesh.lanes[lane]));
}

/// ", after that of 3 and 7 before": instructions of the segment, counted back from this one.
std::string after_text(const Segment& segment, const Instruction& instruction) {
  std::string text;
  const auto own = &instruction - segment.instructions.data();
  for (const int other : instruction.after)
    text += fmt::format("{} {}", text.empty() ? ", after that of" : " and", own - other);
  return text.empty() ? "" : text + " before";
}

/// "F0 B0 U": what is run for which micro-batch; "F2.0" where a mesh has several stages.
std::string schedule_text(const MeshProgram& mesh) {
  constexpr const char* letters[] = {"F", "B", "I", "W", "U"};
  const bool several = mesh.has_several_stages();
  std::string text;
  for (const SegmentRun& run : mesh.schedule) {
    const Segment& segment = mesh.segment_of(run);
    text += fmt::format(" {}", letters[static_cast<int>(segment.kind)]);
    if (several && segment.stage >= 0) text += fmt::format("{}.", segment.stage);
    if (run.micro_batch >= 0) text += fmt::format("{}", run.micro_batch);
  }
  return text;
}

std::string mesh_program_text(const MeshProgram& mesh, const Graph& graph) {
  std::string text = fmt::format("{}, arena of {} bytes", mesh_place(mesh.mesh), mesh.memory.total);
  text += mesh.memory.host > 0 ? fmt::format(", {} on the host\n", mesh.memory.host) : "\n";
  for (const BufferIndex b : mesh.buffers.indices())
    text += fmt::format("  %{} {}\n", b, buffer_text(mesh.buffers[b]));
  for (const Segment& segment : mesh.segments) {
    text += fmt::format("  {}\n", segment_text(segment));
    for (const Instruction& instruction : segment.instructions)
      text += fmt::format("    {}{}{}{}\n", instruction_text(instruction, graph), when_text(instruction.when),
                          lane_text(mesh, instruction.lane), after_text(segment, instruction));
  }
  text += fmt::format("  schedule{}\n  loss %{}, squared norm of the gradients %{}", schedule_text(mesh),
                      mesh.loss, mesh.gradient_square_sum);
  if (!mesh.metrics.empty()) text += fmt::format(", metrics{}", list(mesh.metrics));
  return text + "\n";
}

/// The way, and each message of the route.
std::string route_text(const StageTransfer& transfer) {
  std::string text = fmt::format("  {}\n", transfer_way_text(transfer.way));
  for (const TransferMessage& message : transfer.route.messages) {
    const TransferTask& task = transfer.route.tasks[message.task];
    text += fmt::format("    {} -> {}: box {} at {}", message.from, message.to, shape_text(task.extent),
                        shape_text(task.origin));
    if (message.elements() != element_count(task.extent))
      text += fmt::format(", elements {} to {}", message.begin, message.end);
    text += message.is_passed_on() ? ", passed on\n" : "\n";
  }
  return text;
}

}  // namespace

std::string program_text(const Program& program, const Graph& graph) {
  std::string text = fmt::format("{} micro-batches of {} samples, {} devices a node\n", program.micro_batches,
                                 program.micro_batch_samples, program.devices_per_node);
  for (std::size_t t = 0; t < program.transfers.size(); ++t) {
    const StageTransfer& transfer = program.transfers[t];
    text += fmt::format("transfer {} of value {} from stage {} to {}{}, {}: {} on {} -> {} on {}\n", t,
                        transfer.value, transfer.from_stage, transfer.to_stage,
                        transfer.channel > 0 ? fmt::format(" by channel {}", transfer.channel) : "",
                        type_text(transfer.whole), spec_text(transfer.from), mesh_place(transfer.from_mesh),
                        spec_text(transfer.to), mesh_place(transfer.to_mesh));
    text += route_text(transfer);
  }
  for (const MeshProgram& mesh : program.meshes) text += mesh_program_text(mesh, graph);
  if (program.servers) text += "servers: " + mesh_program_text(*program.servers, graph);
  return text;
}

std::string program_fingerprint(const Program& program, const Graph& graph) {
  return fingerprint(program_text(program, graph));
}

void check_program(const Plan& plan, const Graph& graph) {
  const std::string found = program_fingerprint(lower(graph, plan), graph);
  if (found == plan.program_fingerprint) return;
  throw Error(ErrorKind::input,
              fmt::format("the plan becomes program {}, expected {}, as when it was made",
                          found.substr(0, 12), plan.program_fingerprint.substr(0, 12)),
              "it is of another version, or was altered; make it again with alpa-plan");
}

}  // namespace alpa
