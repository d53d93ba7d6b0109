#include "libalpa/calibration/step_times.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

double end_of(const TimelineRow& row) { return row.start_s + row.duration_s; }

const InstructionBody& body_of(const TimelineRow& row, const Program& program) {
  return program.meshes[row.mesh].segments[row.segment].instructions[row.instruction].body;
}

class Splitting {
 public:
  Splitting(const MeasuredStep& step, const Program& program)
      : step_(step), program_(program), by_start_(step.rows.size()), clock_(program.meshes.size()) {
    std::iota(by_start_.begin(), by_start_.end(), std::size_t{0});
    std::ranges::sort(by_start_, {},
                      [&](std::size_t r) { return std::pair(step.rows[r].mesh, step.rows[r].start_s); });
    look_at_other_meshes();
  }

  StepTimes times() const {
    StepTimes times{std::vector<double>(step_.rows.size()), 0, 0};
    struct Progress {
      double at_s = -1;  // before the first row
      std::size_t sums = 0;
    };
    Indexed<MeshIndex, Progress> progress(program_.meshes.size());
    double first_s = infinity, last_s = -infinity;  // of all rows, by the clock that meshes share
    for (const std::size_t r : by_start_) {
      const TimelineRow& row = step_.rows[r];
      const InstructionBody& body = body_of(row, program_);
      Progress& mesh = progress[row.mesh];
      double& seconds = times.row_s[r] = row.duration_s;
      if (const auto* receive = std::get_if<Receive>(&body))
        seconds = std::max(seconds - waited(*receive, row), 0.0);
      else if (std::holds_alternative<GlobalSum>(body))
        seconds = shortest_sum_[mesh.sums++];
      else if (mesh.at_s >= 0)
        times.gaps_s += std::max(row.start_s - mesh.at_s, 0.0);
      mesh.at_s = std::max(mesh.at_s, end_of(row));
      first_s = std::min(first_s, row.start_s - clock_[row.mesh]);
      last_s = std::max(last_s, mesh.at_s - clock_[row.mesh]);
    }
    times.outside_s = std::max(step_.step_s - (last_s - first_s), 0.0);
    return times;
  }

 private:
  void look_at_other_meshes() {
    Indexed<MeshIndex, std::size_t> sums(program_.meshes.size());
    for (const std::size_t r : by_start_) {
      const TimelineRow& row = step_.rows[r];
      if (!std::holds_alternative<GlobalSum>(body_of(row, program_))) continue;
      clock_[row.mesh] = end_of(row);
      const std::size_t number = sums[row.mesh]++;
      if (number == shortest_sum_.size()) shortest_sum_.push_back(row.duration_s);
      shortest_sum_[number] = std::min(shortest_sum_[number], row.duration_s);
    }
    for (const TimelineRow& row : step_.rows)
      if (const auto* send = std::get_if<Send>(&body_of(row, program_)))
        sent_s_[{send->transfer, row.micro_batch}] = end_of(row) - clock_[row.mesh];
  }

  double waited(const Receive& receive, const TimelineRow& row) const {
    const auto sent = sent_s_.find({receive.transfer, row.micro_batch});
    return sent == sent_s_.end() ? 0 : std::max(sent->second + clock_[row.mesh] - row.start_s, 0.0);
  }

  const MeasuredStep& step_;
  const Program& program_;
  std::vector<std::size_t> by_start_;             ///< rows, mesh by mesh
  Indexed<MeshIndex, double> clock_;              ///< of each mesh, at the end of the last sum
  std::vector<double> shortest_sum_;              ///< of each sum, on the mesh that came to it last
  std::map<std::pair<int, int>, double> sent_s_;  ///< by transfer and micro-batch, to that end
};

}  // namespace

StepTimes step_times(const MeasuredStep& step, const Program& program) {
  return Splitting(step, program).times();
}

}  // namespace alpa
