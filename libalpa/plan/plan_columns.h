#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/plan/plan.h"

namespace alpa {

constexpr std::string_view kPlanFormat = "alpa-plan", kPlanVersion = "5.0";

/// Which plans of earlier releases do not have: nothing rested there.
constexpr const char* kHostArena = "host";

/// Columns of a mesh or a strategy; unused ones are 0 or kNoAxis.
constexpr std::int64_t kAxisColumns = 4, kNoAxis = -9;

/// The parts of a mesh's time by the names of their columns, one list for writing and reading.
template <class Time, class Seconds>
void visit_time(Time& t, Seconds&& seconds) {
  seconds("compute", t.compute_s);
  seconds("collectives", t.collective_s);
  seconds("transfers", t.transfer_s);
  seconds("idle", t.idle_s);
}

/// The columns of /prediction/time and /prediction/memory likewise.
template <class Prediction, class Seconds, class Bytes>
void visit_prediction(Prediction& p, Seconds&& seconds, Bytes&& bytes) {
  visit_time(p, seconds);
  seconds("hidden_collectives", p.hidden.collective_s);
  seconds("hidden_transfers", p.hidden.transfer_s);
  bytes("parameters", p.memory.parameters);
  bytes("optimizer", p.memory.optimizer);
  bytes("gradients", p.memory.gradients);
  bytes("activations", p.memory.activations);
  bytes("workspace", p.memory.workspace);
  bytes("arena", p.memory.total);
  bytes(kHostArena, p.memory.host);
}

/// A column for people: it follows from other columns and the model.
struct DerivedColumn {
  std::string path;
  std::vector<std::string> rows;
};
std::vector<DerivedColumn> derived_columns(const Plan&, const Graph&);

}  // namespace alpa
