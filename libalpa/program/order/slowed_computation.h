#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/program/order/step_walk.h"
#include "libalpa/program/program.h"

namespace alpa {

/// An instruction that has begun in a simulation and of which nobody knows yet when it ends, as that goes by
/// what else begins and ends meanwhile.
struct UnderWay {
  StepWalk::Turn turn;
  double left_s = 0;  ///< of its time, had it all that it takes to itself
  double start_s = 0;
  std::size_t row = 0;  ///< of the timeline, if rows are kept
};

/// Computations of meshes whose devices compute slower while they communicate (Cluster::overlap_slowdown):
/// each goes on at the full rate while nothing is under way in a lane that the plan overlaps, and at a
/// fraction of it as long as something is. A transfer is under way on the mesh that sends too. There are none
/// where nothing is overlapped, or nothing is slowed down.
class SlowedComputation {
 public:
  SlowedComputation(const Program&, const CostModel&, Overlap);

  /// Whether the instruction of that mesh is one of those. From here on times do not decrease from call to
  /// call.
  bool takes(MeshIndex, const Instruction&) const;
  void begin(const UnderWay&);  ///< the only one of its mesh

  /// When the next one of them is done if no communication begins or ends before; infinity: there is none.
  double next_end_s() const { return ends_.empty() ? infinity : ends_.begin()->first; }
  UnderWay take_next();

  /// An instruction of a mesh is under way, which may be communication beside computation: up to a time that
  /// is known, or until it is said to have ended.
  void communicate(MeshIndex, const Instruction&, double start_s, double end_s);
  void begin_communication(MeshIndex, const Instruction&, double start_s);
  void end_communication(MeshIndex, const Instruction&, double end_s);

 private:
  struct Mesh {
    double slowdown = 1;
    std::optional<UnderWay> computation = {};
    double now_s = 0;         ///< up to when its time left is counted
    double busy_until_s = 0;  ///< with communication whose end is known
    int communications = 0;   ///< of which the end is not known
    double computed_s = 0;    ///< when the computation ends as it stands
    bool is_slow() const { return communications > 0 || busy_until_s > now_s; }
  };

  double end_of(const Mesh&) const;

  /// Counts what has been computed up to then, changes what is under way, and looks when that ends.
  template <class Change>
  void change(MeshIndex, double at_s, const Change&);

  /// The meshes whose computation the instruction slows down.
  template <class Change>
  void change_all(MeshIndex, const Instruction&, double at_s, const Change&);

  const Program& program_;
  Overlap overlap_;
  Indexed<MeshIndex, Mesh> meshes_;              ///< none: nothing is slowed down
  std::vector<MeshIndex> sender_of_;             ///< [transfer]
  std::set<std::pair<double, MeshIndex>> ends_;  ///< of computations under way
};

}  // namespace alpa
