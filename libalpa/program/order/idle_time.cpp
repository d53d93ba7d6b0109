#include "libalpa/program/order/idle_time.h"

#include <fmt/core.h>

#include <algorithm>

namespace alpa {
namespace {

double row_end_s(const TimelineRow& row) { return row.start_s + row.duration_s; }

std::vector<const TimelineRow*> by_start(const RankRows& rank) {
  std::vector<const TimelineRow*> rows;
  for (const TimelineRow& row : rank.rows) rows.push_back(&row);
  std::ranges::stable_sort(rows, {}, [](const TimelineRow* row) { return row->start_s; });
  return rows;
}

}  // namespace

IdleTimes::IdleTimes(const std::vector<RankRows>& ranks, const Program& program, const Graph& graph)
    : ranks_(ranks), program_(program), graph_(graph), waits_(dependences(program)) {
  for (const MeshProgram& mesh : program.meshes) runs_.emplace_back(mesh, program.micro_batches);
  for (const RankRows& rank : ranks)
    for (const TimelineRow& row : rank.rows) {
      rows_[rank.rank][{row.segment, std::max(row.micro_batch, 0), row.instruction}] = &row;
      if (const auto* send = std::get_if<Send>(&instruction_of(program, row).body))
        sends_[{send->transfer, row.micro_batch}].push_back({&rank, &row});
    }
}

void IdleTimes::note(Done& last, const RankRows& waiting, const RankRows& of, const TimelineRow& row) const {
  if (row_end_s(row) <= last.at_s) return;
  last.at_s = row_end_s(row);
  last.what = instruction_label(instruction_of(program_, row), graph_);
  if (of.rank != waiting.rank) last.what += fmt::format(" of rank {}", of.rank);
}

IdleTimes::Done IdleTimes::waited_for(const RankRows& rank, const TimelineRow& row,
                                      const TimelineRow* before_in_turn) const {
  Done last;
  const Instruction& now = instruction_of(program_, row);
  const std::map<Place, const TimelineRow*>& own = rows_.at(rank.rank);
  const RunTable& runs = runs_[row.mesh];
  const int run = runs.run_of(row.segment, std::max(row.micro_batch, 0));
  for (const Dependence& wait : waits_[row.mesh][row.segment][row.instruction]) {
    const int micro_batch = wait.occasion == Occasion::left ? -1 : runs.micro_batch_of(wait, run);
    const auto found = own.find({wait.segment, micro_batch, wait.instruction});
    if (found != own.end()) note(last, rank, rank, *found->second);
  }
  if (before_in_turn != nullptr) note(last, rank, rank, *before_in_turn);
  if (const auto* receive = std::get_if<Receive>(&now.body))
    if (const auto sent = sends_.find({receive->transfer, row.micro_batch}); sent != sends_.end())
      for (const auto& [from, send] : sent->second) note(last, rank, *from, *send);
  if (std::holds_alternative<GlobalSum>(now.body))
    for (const RankRows& other : ranks_)
      for (const TimelineRow& before : other.rows)
        if (row_end_s(before) <= row.start_s) note(last, rank, other, before);
  return last;
}

std::vector<IdleTime> IdleTimes::of(const RankRows& rank, double end_s) const {
  const MeshProgram& mesh = program_.meshes[place_of(program_, rank.rank).mesh];
  std::vector<double> until_s(mesh.lanes.size());
  std::vector<IdleTime> idle;
  const TimelineRow* before_in_turn = nullptr;
  for (const TimelineRow* row : by_start(rank)) {
    double& since_s = until_s[static_cast<std::size_t>(row->lane)];
    const bool in_turn = is_in_turn(mesh.lanes[row->lane].kind, program_.overlap);
    if (row->start_s > since_s) {
      const Done last = waited_for(rank, *row, in_turn ? before_in_turn : nullptr);
      idle.push_back({row->lane, since_s, row->start_s, last.at_s > since_s ? last.what : ""});
    }
    since_s = std::max(since_s, row_end_s(*row));
    if (in_turn) before_in_turn = row;
  }
  for (std::size_t lane = 0; lane < until_s.size(); ++lane)
    if (until_s[lane] < end_s) idle.push_back({static_cast<int>(lane), until_s[lane], end_s});
  return idle;
}

}  // namespace alpa
