#include "libalpa/program/trace.h"

#include <fmt/core.h>

#include <fstream>

#include "libalpa/base/json.h"

namespace alpa {
namespace {

const char* kind_name(TimeKind kind) {
  switch (kind) {
    case TimeKind::compute:
      return "compute";
    case TimeKind::collective:
      return "collective";
    case TimeKind::transfer:
      return "transfer";
    case TimeKind::wait:
      return "wait";
  }
  return "";
}

JsonObject begun_trace(TimelineKind kind) {
  JsonObject trace;
  trace.set("timeline", kind == TimelineKind::planned ? "planned" : "measured");
  return trace;
}

}  // namespace

bool is_chrome_trace(TimelineKind kind, const std::filesystem::path& path) {
  std::string begin = begun_trace(kind).text(), found;
  begin.back() = ',';
  found.resize(begin.size());
  std::ifstream(path, std::ios::binary).read(found.data(), std::ssize(found));
  return found == begin;
}

std::string chrome_trace(TimelineKind kind, const std::vector<TimelineRow>& rows, const Program& program,
                         const Graph& graph) {
  JsonArray events;
  for (std::size_t s = 0; s < program.stages.size(); ++s)
    events.add(
        JsonObject()
            .set("name", "thread_name")
            .set("ph", "M")
            .set("pid", 0)
            .set("tid", s)
            .set("args", JsonObject().set("name", fmt::format("stage {} on mesh {}", s,
                                                              mesh_text(program.stages[s].mesh.shape)))));
  for (const TimelineRow& row : rows) {
    const auto& instructions = program.stages[static_cast<std::size_t>(row.stage)].segment(row.segment);
    events.add(
        JsonObject()
            .set("name", instruction_label(instructions[static_cast<std::size_t>(row.instruction)], graph))
            .set("cat", kind_name(row.kind))
            .set("ph", "X")
            .set("pid", 0)
            .set("tid", row.stage)
            .set("ts", row.start_s * 1e6)
            .set("dur", row.duration_s * 1e6)
            .set("args", JsonObject()
                             .set("segment", segment_name(row.segment))
                             .set("micro_batch", row.micro_batch)
                             .set("instruction", row.instruction)));
  }
  return begun_trace(kind).set("traceEvents", events).set("displayTimeUnit", "ms").text() + "\n";
}

}  // namespace alpa
