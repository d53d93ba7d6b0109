#include "libalpa/program/order/trace.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <fstream>
#include <set>

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
  }
  return "";
}

/// "stage 0", "stages 0, 2"
std::string stages_text(const MeshProgram& mesh) {
  std::set<int> stages;
  for (const Segment& segment : mesh.segments)
    if (segment.stage >= 0) stages.insert(segment.stage);
  return fmt::format("stage{} {}", stages.size() == 1 ? "" : "s", fmt::join(stages, ", "));
}

JsonObject begun_trace(TimelineKind kind) {
  JsonObject trace;
  trace.set("timeline", kind == TimelineKind::planned    ? "planned"
                        : kind == TimelineKind::measured ? "measured"
                                                         : "emulated");
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
  const auto name = [&](const char* what, std::size_t mesh, std::size_t lane, const std::string& words) {
    events.add(JsonObject()
                   .set("name", what)
                   .set("ph", "M")
                   .set("pid", mesh)
                   .set("tid", lane)
                   .set("args", JsonObject().set("name", words)));
  };
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    name("process_name", m, 0, fmt::format("{} on mesh {}", stages_text(mesh), mesh_text(mesh.mesh.shape)));
    for (std::size_t lane = 0; lane < mesh.lanes.size(); ++lane)
      name("thread_name", m, lane, lane_name(mesh.lanes[lane]));
  }
  for (const TimelineRow& row : rows) {
    const MeshProgram& mesh = program.meshes[row.mesh];
    const Segment& segment = mesh.segments[row.segment];
    events.add(JsonObject()
                   .set("name", instruction_label(segment.instructions[row.instruction], graph))
                   .set("cat", kind_name(row.kind))
                   .set("ph", "X")
                   .set("pid", static_cast<int>(row.mesh))
                   .set("tid", row.lane)
                   .set("ts", row.start_s * 1e6)
                   .set("dur", row.duration_s * 1e6)
                   .set("args", JsonObject()
                                    .set("segment", segment_text(segment))
                                    .set("micro_batch", row.micro_batch)
                                    .set("instruction", row.instruction)));
  }
  return begun_trace(kind).set("traceEvents", events).set("displayTimeUnit", "ms").text() + "\n";
}

}  // namespace alpa
