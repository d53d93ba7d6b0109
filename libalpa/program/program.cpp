#include "libalpa/program/program.h"

#include <fmt/core.h>

#include <map>

#include "libalpa/base/match.h"

namespace alpa {
namespace {

std::vector<int> present(std::initializer_list<int> buffers) {
  std::vector<int> list;
  for (const int b : buffers)
    if (b >= 0) list.push_back(b);
  return list;
}

std::string buffer_text(const StageProgram& stage, int buffer) {
  const Buffer& b = stage.buffers[static_cast<std::size_t>(buffer)];
  return fmt::format("#{} {} {} {}", buffer, b.name, type_text(b.tile),
                     b.value >= 0 ? spec_text(b.layout) : "");
}

std::string list_text(const StageProgram& stage, const std::vector<int>& buffers) {
  std::string text;
  for (const int b : buffers) text += (text.empty() ? "" : ", ") + buffer_text(stage, b);
  return text;
}

std::string instruction_text(const Instruction& instruction, const StageProgram& stage) {
  return std::visit(
      Match{
          [&](const Load& i) { return fmt::format("load {}", buffer_text(stage, i.to)); },
          [&](const Compute& i) {
            const char* how = i.accumulate == Accumulate::overwrite ? "="
                              : i.accumulate == Accumulate::add     ? "+="
                                                                    : "+=*";
            return fmt::format("{} {} {} {}", list_text(stage, i.results), how, i.op->name,
                               list_text(stage, i.operands));
          },
          [&](const Convert& i) {
            return fmt::format("{} = {} over axis {} of {}", buffer_text(stage, i.to),
                               conversion_name(i.step.kind), i.step.axis, buffer_text(stage, i.from));
          },
          [&](const Shift& i) {
            return fmt::format("{} = shift over axis {} of {}", list_text(stage, i.to), i.axis,
                               list_text(stage, i.from));
          },
          [&](const Send& i) {
            return fmt::format("send {} as transfer {}", buffer_text(stage, i.from), i.transfer);
          },
          [&](const Receive& i) {
            return fmt::format("receive {} from transfer {}", buffer_text(stage, i.to), i.transfer);
          },
          [&](const GlobalSum& i) { return fmt::format("global sum of {}", list_text(stage, i.scalars)); },
          [&](const Zero& i) { return fmt::format("{} = 0", buffer_text(stage, i.to)); },
      },
      instruction);
}

}  // namespace

const char* segment_name(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::forward:
      return "forward";
    case SegmentKind::backward:
      return "backward";
    case SegmentKind::update:
      return "update";
  }
  return "";
}

std::vector<int> buffers_read(const Instruction& instruction) {
  return std::visit(Match{
                        [](const Load&) { return std::vector<int>{}; },
                        [](const Compute& i) {
                          std::vector<int> read = i.operands;
                          if (i.accumulate == Accumulate::add)
                            read.insert(read.end(), i.results.begin(), i.results.end());
                          return read;
                        },
                        [](const Convert& i) { return present({i.from}); },
                        [](const Shift& i) { return i.from; },
                        [](const Send& i) { return present({i.from}); },
                        [](const Receive&) { return std::vector<int>{}; },
                        [](const GlobalSum& i) { return i.scalars; },
                        [](const Zero&) { return std::vector<int>{}; },
                    },
                    instruction);
}

std::vector<int> buffers_written(const Instruction& instruction) {
  return std::visit(Match{
                        [](const Load& i) { return present({i.to}); },
                        [](const Compute& i) {
                          std::vector<int> written = i.results;
                          if (i.workspace >= 0) written.push_back(i.workspace);
                          return written;
                        },
                        [](const Convert& i) {
                          return present({i.to, i.packed, i.unpacked});
                        },
                        [](const Shift& i) { return i.to; },
                        [](const Send& i) { return present({i.packed}); },
                        [](const Receive& i) {
                          return present({i.to, i.packed});
                        },
                        [](const GlobalSum& i) {
                          std::vector<int> written = i.scalars;
                          if (i.packed >= 0) written.push_back(i.packed);
                          return written;
                        },
                        [](const Zero& i) { return present({i.to}); },
                    },
                    instruction);
}

std::string program_text(const Program& program, const Graph&) {
  std::string text;
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    text += fmt::format("stage {} on mesh {} from device {}, {} slots\n", s, mesh_text(stage.mesh.shape),
                        stage.mesh.first_device, stage.slots);
    for (const SegmentKind kind : {SegmentKind::forward, SegmentKind::backward, SegmentKind::update}) {
      text += fmt::format(" {}\n", segment_name(kind));
      for (const Instruction& instruction : stage.segment(kind))
        text += "  " + instruction_text(instruction, stage) + "\n";
    }
  }
  return text;
}

std::vector<std::pair<std::string, int>> collective_counts(const StageProgram& stage) {
  std::map<std::string, int> counts;
  for (const ScheduledSegment& run : stage.schedule)
    for (const Instruction& instruction : stage.segment(run.segment)) {
      if (std::holds_alternative<Shift>(instruction)) ++counts["shift"];
      if (const auto* convert = std::get_if<Convert>(&instruction))
        if (convert->step.kind != ConversionKind::slice) ++counts[conversion_name(convert->step.kind)];
    }
  return {counts.begin(), counts.end()};
}

}  // namespace alpa
