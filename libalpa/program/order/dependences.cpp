#include "libalpa/program/order/dependences.h"

#include <algorithm>
#include <map>
#include <optional>

namespace alpa {
namespace {

struct Access {
  int instruction;
  bool writes;
};

/// What a segment does with one buffer, in order.
using Accesses = std::vector<Access>;

/// The accesses of a run that others have to wait for, or that wait for others: reads and the write that
/// everything else of the run follows or precedes.
struct Border {
  std::vector<int> reads;
  std::optional<int> write;
};

Border first_of(const Accesses& accesses) {
  Border border;
  for (const Access& access : accesses) {
    if (access.writes) {
      border.write = access.instruction;
      break;
    }
    border.reads.push_back(access.instruction);
  }
  return border;
}

Border last_of(const Accesses& accesses) {
  Border border;
  for (auto access = accesses.rbegin(); access != accesses.rend(); ++access) {
    if (access->writes) {
      border.write = access->instruction;
      break;
    }
    border.reads.push_back(access->instruction);
  }
  return border;
}

class Order {
 public:
  explicit Order(const MeshProgram& mesh) : mesh_(mesh), turn_(turns_of_segments(mesh)) {
    for (const Segment& segment : mesh.segments) waits_.emplace_back(segment.instructions.size());
  }

  Dependences find() {
    Indexed<BufferIndex, std::map<int, Accesses>> of_buffer(mesh_.buffers.size());  // segment -> accesses
    for (int s = 0; s < static_cast<int>(mesh_.segments.size()); ++s) {
      const std::vector<Instruction>& instructions = segment(s).instructions;
      for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
        const Instruction& instruction = instructions[i];
        std::map<BufferIndex, bool> touched;  // written
        for (const BufferIndex b : buffers_read(instruction)) touched.insert({mesh_.whole(b), false});
        for (const BufferIndex b : buffers_written(instruction)) touched[mesh_.whole(b)] = true;
        for (const auto& [b, writes] : touched) of_buffer[b][s].push_back({i, writes});
        for (const int other : instruction.after) wait(s, i, {s, other, Occasion::this_run, 0});
        if (const auto* send = std::get_if<Send>(&instruction.body); send && send->packed >= 0)
          wait(s, i, {s, i, Occasion::left, static_cast<int>(buffer(send->packed).slots)});
      }
    }
    std::map<BufferIndex, std::map<int, Accesses>> of_slots;  // of buffers that have slots in common
    for (const BufferIndex b : of_buffer.indices()) {
      for (const auto& [s, accesses] : of_buffer[b]) within_run(s, accesses);
      if (buffer(b).residence == Residence::segment) continue;
      across_runs(buffer(b), of_buffer[b]);
      if (buffer(b).slot_of.empty()) continue;
      for (const auto& [s, accesses] : of_buffer[b]) {
        Accesses& of = of_slots[mesh_.slots_of(b)][s];
        of.insert(of.end(), accesses.begin(), accesses.end());
      }
    }
    for (const auto& [b, accesses] : of_slots) one_after_another(accesses);
    ends_of_runs(of_buffer);
    return std::move(waits_);
  }

 private:
  const Segment& segment(int s) const { return mesh_.segments[s]; }
  const Buffer& buffer(BufferIndex b) const { return mesh_.buffers[b]; }
  int lane(int s, int i) const { return segment(s).instructions[i].lane; }

  /// Of several in one lane the last is enough.
  void wait(int s, int i, const Dependence& other) {
    const int other_lane = lane(other.segment, other.instruction);
    if (other.occasion != Occasion::left && other_lane == lane(s, i)) return;
    std::vector<Dependence>& waits = waits_[s][i];
    for (Dependence& known : waits)
      if (known.segment == other.segment && known.occasion == other.occasion && known.lag == other.lag &&
          lane(known.segment, known.instruction) == other_lane) {
        known.instruction = std::max(known.instruction, other.instruction);
        return;
      }
    waits.push_back(other);
  }

  void within_run(int s, const Accesses& accesses) {
    std::optional<int> written;
    std::vector<int> read;  // since then
    for (const Access& access : accesses) {
      if (written) wait(s, access.instruction, {s, *written, Occasion::this_run, 0});
      if (!access.writes) {
        read.push_back(access.instruction);
        continue;
      }
      for (const int reader : read) wait(s, access.instruction, {s, reader, Occasion::this_run, 0});
      read.clear();
      written = access.instruction;
    }
  }

  /// What ends in `before` must be done when what begins in `after` does.
  void chain(int before, const Border& ends, int after, const Border& begins, Occasion occasion, int lag) {
    if (ends.write) {
      for (const int reader : begins.reads) wait(after, reader, {before, *ends.write, occasion, lag});
      if (begins.write) wait(after, *begins.write, {before, *ends.write, occasion, lag});
    }
    if (begins.write)
      for (const int reader : ends.reads) wait(after, *begins.write, {before, reader, occasion, lag});
  }

  void across_runs(const Buffer& buffer, const std::map<int, Accesses>& accesses) {
    for (const auto& [before, ending] : accesses)
      for (const auto& [after, beginning] : accesses) {
        const Border ends = last_of(ending), begins = first_of(beginning);
        const int turn_before = turn_[before], turn_after = turn_[after];
        if (buffer.residence != Residence::micro_batch || turn_before < 0 || turn_after < 0)
          chain(before, ends, after, begins, Occasion::latest, 0);
        else if (turn_before < turn_after)  // that it is also done for earlier users of the slot follows
          chain(before, ends, after, begins, Occasion::micro_batch, 0);
        else if (buffer.slot_of.empty())
          chain(before, ends, after, begins, Occasion::micro_batch, static_cast<int>(buffer.slots));
      }
  }

  /// Of buffers that have slots in common: which of them, and for which micro-batch, had a slot before
  /// changes from run to run. So what writes in one waits for the latest run of all that use one.
  void one_after_another(const std::map<int, Accesses>& accesses) {
    for (const auto& [before, ending] : accesses)
      for (const auto& [after, beginning] : accesses) {
        std::map<int, int> first, last;  // of each lane
        for (const Access& access : beginning)
          if (access.writes) {
            int& of = first.insert({lane(after, access.instruction), access.instruction}).first->second;
            of = std::min(of, access.instruction);
          }
        for (const Access& access : ending) {
          int& of = last[lane(before, access.instruction)];
          of = std::max(of, access.instruction);
        }
        for (const auto& [of, instruction] : first)
          for (const auto& [other, ended] : last)
            wait(after, instruction, {before, ended, Occasion::latest, 0});
      }
  }

  /// No lane begins with the buffers of a segment before every lane is done with those of the run before.
  void ends_of_runs(const Indexed<BufferIndex, std::map<int, Accesses>>& of_buffer) {
    std::vector<std::map<int, std::pair<int, int>>> touched(
        mesh_.segments.size());  // segment -> lane -> first and last instruction
    for (const BufferIndex b : of_buffer.indices()) {
      if (mesh_.buffers[b].residence != Residence::segment) continue;
      for (const auto& [s, accesses] : of_buffer[b])
        for (const Access& access : accesses) {
          const auto [found, fresh] =
              touched[s].insert({lane(s, access.instruction), {access.instruction, access.instruction}});
          found->second.first = std::min(found->second.first, access.instruction);
          found->second.second = std::max(found->second.second, access.instruction);
        }
    }
    for (std::size_t before = 0; before < touched.size(); ++before)
      for (std::size_t after = 0; after < touched.size(); ++after)
        for (const auto& [ended, last] : touched[before])
          for (const auto& [begun, first] : touched[after])
            wait(static_cast<int>(after), first.first,
                 {static_cast<int>(before), last.second, Occasion::latest, 0});
  }

  const MeshProgram& mesh_;
  std::vector<int> turn_;  ///< [segment]
  Dependences waits_;
};

}  // namespace

Dependences dependences(const MeshProgram& mesh) { return Order(mesh).find(); }

std::vector<Dependences> dependences(const Program& program) {
  std::vector<Dependences> all;
  for (const MeshProgram& mesh : program.meshes) all.push_back(dependences(mesh));
  return all;
}

RunOrder::RunOrder(const MeshProgram& mesh, const Dependences& waits, int segment) {
  const std::vector<Instruction>& instructions = mesh.segments[segment].instructions;
  std::vector<int> latest(mesh.lanes.size(), -1);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const std::size_t lane = static_cast<std::size_t>(instructions[i].lane);
    lane_.push_back(instructions[i].lane);
    std::vector<int> known(mesh.lanes.size(), -1);
    const auto join = [&](int other) {
      const std::size_t o = static_cast<std::size_t>(other);
      for (std::size_t l = 0; l < known.size(); ++l) known[l] = std::max(known[l], known_[o][l]);
      int& own = known[lane_[o]];
      own = std::max(own, other);
    };
    if (latest[lane] >= 0) join(latest[lane]);
    for (const Dependence& wait : waits[segment][i])
      if (wait.occasion == Occasion::this_run) join(wait.instruction);
    known_.push_back(std::move(known));
    latest[lane] = static_cast<int>(i);
  }
}

bool RunOrder::before(int first, int then) const { return known_[then][lane_[first]] >= first; }

}  // namespace alpa
