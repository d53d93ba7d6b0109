#include "libalpa/program/order/measured_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <tuple>

#include "libalpa/base/error.h"
#include "libalpa/cluster/cluster.h"
#include "libalpa/h5/file.h"

namespace alpa {
namespace {

constexpr std::string_view kTimelineFormat = "alpa-timeline", kTimelineVersion = "1.0";

auto place_of(const TimelineRow& row) {
  return std::tuple(row.mesh, row.segment, row.micro_batch, row.instruction);
}

std::vector<TimelineRow> sorted_by_place(std::vector<TimelineRow> rows) {
  std::ranges::sort(rows, {}, place_of);
  return rows;
}

/// The rows of a step, without times.
std::vector<TimelineRow> rows_of(const Program& program) {
  std::vector<TimelineRow> rows;
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    const std::vector<int> fullest = mesh.fullest_coordinate();
    for (const SegmentRun& run : mesh.schedule) {
      const auto& instructions = mesh.segment_of(run).instructions;
      for (int i = 0; i < static_cast<int>(instructions.size()); ++i)
        if (owner_of(mesh, instructions[i]).is_at(fullest) &&
            acts(instructions[i].when, run.micro_batch, program.micro_batches))
          rows.push_back(
              {m, run.segment, run.micro_batch, i, instructions[i].lane, time_kind(instructions[i])});
    }
  }
  return sorted_by_place(std::move(rows));
}

}  // namespace

std::filesystem::path measured_steps_path(const std::filesystem::path& run_dir) {
  return run_dir / "timeline" / "steps.h5";
}

std::filesystem::path measured_plan_path(const std::filesystem::path& run_dir) {
  return run_dir / "timeline" / "plan.h5";
}

void write_measured_steps(const std::filesystem::path& path, const MeasuredSteps& measured,
                          const Provenance& provenance) {
  std::vector<std::int64_t> number;
  std::vector<double> step_s, next_step_s, start, duration;
  std::vector<std::int32_t> mesh, segment, micro_batch, instruction;
  for (const MeasuredStep& step : measured.steps) {
    number.push_back(step.step);
    step_s.push_back(step.step_s);
    next_step_s.push_back(step.next_step_s);
    const std::vector<TimelineRow> rows = sorted_by_place(step.rows);
    assert(mesh.empty() || mesh.size() == rows.size());
    const bool is_first = mesh.empty();
    for (const TimelineRow& row : rows) {
      start.push_back(row.start_s);
      duration.push_back(row.duration_s);
      if (!is_first) continue;
      mesh.push_back(row.mesh);
      segment.push_back(row.segment);
      micro_batch.push_back(row.micro_batch);
      instruction.push_back(row.instruction);
    }
  }
  H5Writer file(path, kTimelineFormat, kTimelineVersion);
  file.attribute("/", "program_fingerprint", measured.program_fingerprint);
  file.column("/steps/number", number, "1");
  file.column("/steps/step_s", step_s, "s");
  file.column("/steps/next_step_s", next_step_s, "s");
  file.column("/rows/mesh", mesh, "1");
  file.column("/rows/segment", segment, "1");
  file.column("/rows/micro_batch", micro_batch, "1");
  file.column("/rows/instruction", instruction, "1");
  const Shape shape{std::ssize(number), std::ssize(mesh)};
  file.array("/start_s", start, shape, "s");
  file.array("/duration_s", duration, shape, "s");
  file.provenance(provenance);
  file.publish();
}

MeasuredSteps read_measured_steps(const std::filesystem::path& path, const Program& program,
                                  const std::string& program_fingerprint) {
  const H5Reader file(path, kTimelineFormat, kTimelineVersion);
  const auto refuse = [&](const std::string& what) {
    return Error(ErrorKind::input, fmt::format("timeline '{}': {}", path.string(), what),
                 "train again with alpa-train --timeline-steps");
  };
  const auto time = [&](const char* name, double value) {
    if (!kTimeRange.contains(value))
      throw refuse(fmt::format("{} has {}, expected {}", name, value, range_text(kTimeRange)));
    return value;
  };
  MeasuredSteps measured{file.text_attribute("/", "program_fingerprint"), {}};
  if (measured.program_fingerprint != program_fingerprint)
    throw refuse(fmt::format("it is of program {}, and the plan beside it has program {}",
                             measured.program_fingerprint, program_fingerprint));
  const std::vector<TimelineRow> rows = rows_of(program);
  const Shape each{std::ssize(rows)};
  const auto mesh = file.int64s("/rows/mesh", each), segment = file.int64s("/rows/segment", each),
             micro_batch = file.int64s("/rows/micro_batch", each),
             instruction = file.int64s("/rows/instruction", each);
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (mesh[r] != rows[r].mesh || segment[r] != rows[r].segment || micro_batch[r] != rows[r].micro_batch ||
        instruction[r] != rows[r].instruction)
      throw refuse(fmt::format("row {} is not the program's instruction at that place", r));
  const std::vector<std::int64_t> number = file.int64s("/steps/number");
  const std::int64_t steps = std::ssize(number);
  const std::vector<double> step_s = file.doubles("/steps/step_s", {steps}),
                            next_step_s = file.doubles("/steps/next_step_s", {steps}),
                            start = file.doubles("/start_s", {steps, each[0]}),
                            duration = file.doubles("/duration_s", {steps, each[0]});
  for (std::size_t s = 0, at = 0; s < number.size(); ++s) {
    measured.steps.push_back(
        {number[s], time("/steps/step_s", step_s[s]), time("/steps/next_step_s", next_step_s[s]), rows});
    for (TimelineRow& row : measured.steps.back().rows) {
      row.start_s = time("/start_s", start[at]);
      row.duration_s = time("/duration_s", duration[at++]);
    }
  }
  if (measured.steps.empty()) throw refuse("it has no steps");
  return measured;
}

}  // namespace alpa
