#include "libalpa/program/order/trace.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "libalpa/base/json.h"
#include "libalpa/program/order/idle_time.h"
#include "libalpa/program/order/live_memory.h"
#include "libalpa/program/order/straggler.h"

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

class TraceEvents {
 public:
  /// What is said of a rank, or of one of its lanes.
  template <class Value>
  void about(const RankRows& rank, const char* what, const char* member, const Value& value, int lane = 0) {
    events_.add(JsonObject()
                    .set("name", what)
                    .set("ph", "M")
                    .set("pid", static_cast<int>(rank.rank))
                    .set("tid", lane)
                    .set("args", JsonObject().set(member, value)));
  }

  void slice(const RankRows& rank, int lane, const std::string& name, const char* category, double start_s,
             double duration_s, const JsonObject& arguments) {
    events_.add(JsonObject()
                    .set("name", name)
                    .set("cat", category)
                    .set("ph", "X")
                    .set("pid", static_cast<int>(rank.rank))
                    .set("tid", lane)
                    .set("ts", start_s * 1e6)
                    .set("dur", duration_s * 1e6)
                    .set("args", arguments));
  }

  void memory(const RankRows& rank, const LiveBytes& live, std::int64_t arena) {
    events_.add(
        JsonObject()
            .set("name", "memory")
            .set("ph", "C")
            .set("pid", static_cast<int>(rank.rank))
            .set("ts", live.at_s * 1e6)
            .set("args", JsonObject().set("live_bytes", live.bytes).set("free_bytes", arena - live.bytes)));
  }

  const JsonArray& all() const { return events_; }

 private:
  JsonArray events_;
};

/// "rank 2: stage 1 on mesh 2, node 0"; ranks and lanes are in their order.
void name_rank(TraceEvents& events, const RankRows& rank, const Program& program) {
  const MeshProgram& mesh = program.meshes[place_of(program, rank.rank).mesh];
  events.about(rank, "process_name", "name",
               fmt::format("rank {}: {} on mesh {}, node {}", rank.rank, stages_text(mesh),
                           mesh_text(mesh.mesh.shape), rank.rank / program.devices_per_node));
  events.about(rank, "process_sort_index", "sort_index", static_cast<int>(rank.rank));
  for (int lane = 0; lane < static_cast<int>(mesh.lanes.size()); ++lane) {
    events.about(rank, "thread_name", "name", lane_name(mesh.lanes[lane]), lane);
    events.about(rank, "thread_sort_index", "sort_index", lane, lane);
  }
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

std::string chrome_trace(TimelineKind kind, const std::vector<RankRows>& ranks, const Program& program,
                         const Graph& graph) {
  double end_s = 0;
  std::vector<RankWork> work;
  for (const RankRows& rank : ranks) {
    for (const TimelineRow& row : rank.rows) end_s = std::max(end_s, row.start_s + row.duration_s);
    work.push_back({rank.rank, rank.host, computed_s(rank.rows)});
  }
  const std::optional<Straggler> slowest =
      kind == TimelineKind::measured ? slowest_rank(work, program) : std::nullopt;
  const IdleTimes idle(ranks, program, graph);
  TraceEvents events;
  for (const RankRows& rank : ranks) {
    name_rank(events, rank, program);
    std::string label = rank.host;
    if (slowest && slowest->work.rank == rank.rank)
      label += (label.empty() ? "" : "; ") + straggler_text(*slowest);
    if (!label.empty()) events.about(rank, "process_labels", "labels", label);
    for (const TimelineRow& row : rank.rows) {
      const Segment& segment = program.meshes[row.mesh].segments[row.segment];
      events.slice(rank, row.lane, instruction_label(instruction_of(program, row), graph),
                   kind_name(row.kind), row.start_s, row.duration_s,
                   JsonObject()
                       .set("segment", segment_text(segment))
                       .set("micro_batch", row.micro_batch)
                       .set("instruction", row.instruction));
    }
    for (const IdleTime& each : idle.of(rank, end_s))
      events.slice(rank, each.lane, each.for_what.empty() ? "idle" : "waits for " + each.for_what, "idle",
                   each.start_s, each.end_s - each.start_s, JsonObject());
    const std::int64_t arena = program.meshes[place_of(program, rank.rank).mesh].memory.total;
    for (const LiveBytes& live : live_bytes(rank, program)) events.memory(rank, live, arena);
  }
  JsonObject trace = begun_trace(kind);
  trace.set("traceEvents", events.all()).set("displayTimeUnit", "ms");
  if (slowest) trace.set("slowest", straggler_text(*slowest));
  return trace.text() + "\n";
}

}  // namespace alpa
