#pragma once
#include <string>
#include <vector>

#include "libalpa/plan/plan.h"

namespace alpa {

/// What limits a plan.
struct Binding {
  enum class Part { compute, collectives, transfers, waiting };
  Part part = Part::compute;            ///< the largest of the busiest mesh's time
  std::vector<StageIndex> busiest;      ///< the stages on that mesh
  double busiest_s = 0;                 ///< for which it works in a step
  double mean_busy_s = 0;               ///< for which a device works on average
  bool crosses_nodes = false;           ///< that part goes between nodes, or some of it
  int devices_per_nic = 1;              ///< that share a network interface
  double nic_bytes_per_s = 0;           ///< its rate
  std::vector<StageIndex> nearly_full;  ///< whose memory is at least nine tenths full
  double fullest = 0;                   ///< share of the memory that is used, of the fullest mesh
  std::vector<StageIndex> recomputes;   ///< that run their forward again
  std::vector<StageIndex> offloads;     ///< whose activations rest on the host
};

/// By the plan's prediction; of a plan without one all is 0.
Binding binding_of(const Plan&);

/// "compute on stage 0", "collectives, some between nodes (NIC of 2.90 GB/s for 8 devices), on stage 1"
std::string binding_name(const Binding&);

std::string stage_numbers(const std::vector<StageIndex>&);  ///< "0", "0 to 3, 5"
std::string stages_text(const std::vector<StageIndex>&);    ///< "stage 0", "stages 0 to 3, 5"

/// How a device spends a step on average, by the plan's prediction.
MeshTime mean_time(const Plan&);

}  // namespace alpa
