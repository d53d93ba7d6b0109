#include "libalpa/program/lower/lane_for.h"

#include "libalpa/base/overloaded.h"

namespace alpa {

Lane lane_for(const InstructionBody& body, const std::vector<StageTransfer>& transfers) {
  const auto message_lane = [&](LaneKind kind, int transfer) {
    const StageTransfer& of = transfers[transfer];
    return Lane{kind, -1, of.from_stage, of.to_stage};
  };
  return std::visit(Overloaded{
                        [](const Load&) {
                          return Lane{LaneKind::copy, -1, {}, {}};
                        },
                        [](const Compute&) { return Lane{}; },
                        [](const Convert& i) {
                          return i.step.kind == ConversionKind::slice
                                     ? Lane{}
                                     : Lane{LaneKind::collective, i.step.axis, {}, {}};
                        },
                        [](const Shift& i) {
                          return Lane{LaneKind::collective, i.axis, {}, {}};
                        },
                        [](const OwnerCollective& i) {
                          return Lane{LaneKind::collective, i.axis, {}, {}};
                        },
                        [](const Serve& i) {
                          return Lane{LaneKind::collective, i.axis, {}, {}};
                        },
                        [&](const Send& i) { return message_lane(LaneKind::send, i.transfer); },
                        [&](const Receive& i) { return message_lane(LaneKind::receive, i.transfer); },
                        [](const Unpack&) { return Lane{}; },
                        [](const Exchange&) {
                          return Lane{LaneKind::collective, -1, {}, {}};
                        },
                        [](const GlobalSum&) {
                          return Lane{LaneKind::collective, -1, {}, {}};
                        },
                        [](const Zero&) { return Lane{}; },
                        [](const Copy&) { return Lane{}; },
                        [](const Fetch&) {
                          return Lane{LaneKind::fetch, -1, {}, {}};
                        },
                        [](const Offload&) {
                          return Lane{LaneKind::offload, -1, {}, {}};
                        },
                    },
                    body);
}

}  // namespace alpa
