// States that servers hold (Plan::staleness): what devices and servers send each other, and the updates
// there.
#include <algorithm>

#include "libalpa/plan/owned_updates.h"
#include "libalpa/program/lower/mesh_lowering.h"

namespace alpa {
namespace {

/// Receives that a server has under way at once: of so many devices.
constexpr int kCollectedAtOnce = 4;

std::int64_t bytes_of(const MeshValues& values, const std::vector<BufferIndex>& tensors,
                      const std::vector<int>& server, int of) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (server[i] == of) bytes += byte_count(values.buffer(tensors[i]).tile);
  return bytes;
}

/// As a device has them, which is none of the owners.
std::vector<MeshValues::Part> without_owners(std::vector<MeshValues::Part> parts) {
  for (MeshValues::Part& part : parts) part.owner = {};
  return parts;
}

}  // namespace

void MeshLowering::find_updates_at_servers() {
  at_servers_ = ownable_updates(placement_, mesh_, values_.conversions());
  for (const OwnableUpdate& update : at_servers_)
    owned_[update.update].parts = parts_of(plan_.sync_of(update.sums.back()).owners, 0);
}

BufferIndex MeshLowering::on_host(const std::string& name, std::int64_t bytes, std::int64_t messages) {
  const BufferIndex buffer = values_.message_memory(name, bytes, messages);
  values_.program().buffers[buffer].space = MemorySpace::host;
  return buffer;
}

/// The states of an update that devices have too: its parameter.
std::vector<StateIndex> MeshLowering::handed_out(const OwnableUpdate& update) const {
  std::vector<StateIndex> states;
  for (const ValueIndex operand : node_of(graph_, update.update).operands)
    if (const StateIndex state = uses_.state_at[operand];
        state >= 0 && !is_of_update_alone(uses_, graph_.states[state]))
      states.push_back(state);
  return states;
}

/// What a device has whole, by the rows of its servers; returns its bytes.
std::int64_t MeshLowering::add_rows(Exchange& exchange, BufferIndex whole, const OwnedUpdate& owned) {
  const std::vector<BufferIndex> views = values_.views_of_rows(whole, without_owners(owned.parts));
  exchange.tensors.insert(exchange.tensors.end(), views.begin(), views.end());
  for (const MeshValues::Part& part : owned.parts) exchange.server.push_back(part.owner.place);
  return byte_count(values_.buffer(whole).tile);
}

/// What a step begins with.
void MeshLowering::take_parameters() {
  Exchange take{Exchange::Kind::take, {}, {}, {}, {}};
  std::int64_t bytes = 0;
  for (const OwnableUpdate& update : at_servers_)
    for (const StateIndex parameter : handed_out(update))
      bytes += add_rows(take, values_.state_buffer(parameter), owned_.at(update.update));
  make_scalars();
  const MeshProgram& program = values_.program();
  taken_ = {program.loss, program.gradient_square_sum, program.lead, program.metrics};
  take.scalars = values_.program().whole(values_.program().loss);
  take.messages = on_host("published", bytes + values_.buffer(take.scalars).bytes, 1);
  values_.emit_when(When::first_micro_batch);
  values_.emit(std::move(take));
  values_.emit_when(When::every_micro_batch);
}

/// Those of several sums of gradients (tied weights) that a device adds before they are sent.
void MeshLowering::add_up_terms(ValueIndex sum) {
  const NodeIndex maker = value_of(graph_, sum).producer;
  if (node_of(graph_, maker).phase != Phase::update) return;
  for (const ValueIndex operand : node_of(graph_, maker).operands) add_up_terms(operand);
  emit_node(maker);
}

/// What a step ends with. The scalars that a device has read are those of an earlier step.
void MeshLowering::push_gradients() {
  MeshProgram& program = values_.program();
  const BufferIndex own = program.whole(program.loss);
  for (const BufferIndex b : program.buffers.indices())
    if (program.buffers[b].view_of == own) values_.emit(Zero{b});
  add_up_losses();
  Exchange push{Exchange::Kind::push, {}, {}, program.whole(program.loss), {}};
  std::int64_t bytes = 0;
  for (const OwnableUpdate& update : at_servers_)
    for (const ValueIndex sum : update.sums) {
      add_up_terms(sum);
      bytes += add_rows(push, values_.fetch_resting(sum), owned_.at(update.update));
    }
  push.messages = on_host("pushed", bytes + values_.buffer(push.scalars).bytes, plan_.staleness + 1);
  values_.emit(std::move(push));
  program.loss = taken_.loss;
  program.metrics = taken_.metrics;
  program.gradient_square_sum = taken_.gradient_square_sum;
  program.lead = taken_.lead;
}

MeshProgram MeshLowering::run_at_servers(int servers) {
  serves_ = true;
  pushes_ = false;
  find_updates_at_servers();
  for (const OwnableUpdate& update : at_servers_) {
    OwnedUpdate& owned = owned_.at(update.update);
    for (const ValueIndex sum : update.sums) in_parts_[sum].of = &owned;
    for (const ValueIndex operand : node_of(graph_, update.update).operands)
      if (const StateIndex state = uses_.state_at[operand]; state >= 0)
        values_.state_in_parts(state, owned.parts);
  }
  MeshProgram& program = values_.program();
  values_.begin_segment(StageIndex(), SegmentKind::update);
  make_scalars();
  if (purpose_ == Purpose::evaluate) {
    values_.emit(Zero{program.loss});
    for (const BufferIndex metric : program.metrics) values_.emit(Zero{metric});
    emit_global_sum();
  } else {
    collect_gradients();
    update_states();
    if (!updates_wait_) emit_global_sum();
    publish_parameters();
  }
  program.mesh = {DeviceIndex(plan_.cluster.devices()), {servers}};
  return values_.take();
}

void MeshLowering::collect_gradients() {
  const MeshProgram& program = values_.program();
  Exchange collect{Exchange::Kind::collect, {}, {}, program.whole(program.loss), {}};
  for (const OwnableUpdate& update : at_servers_)
    for (const ValueIndex sum : update.sums) {
      InParts& parts = in_parts_.at(sum);
      parts.at = values_.buffers_of_rows(sum, placement_.layout_in_update(sum, mesh_), Residence::step,
                                         parts.of->parts);
      collect.tensors.insert(collect.tensors.end(), parts.at.begin(), parts.at.end());
      for (const MeshValues::Part& part : parts.of->parts) collect.server.push_back(part.owner.place);
    }
  std::int64_t most = 0;
  for (int server = 0; server < plan_.cluster.server_devices(); ++server)
    most = std::max(most, bytes_of(values_, collect.tensors, collect.server, server));
  // Beside those that arrive, the sum.
  collect.messages = on_host("collected", most + values_.buffer(collect.scalars).bytes,
                             1 + std::min(kCollectedAtOnce, plan_.cluster.devices()));
  values_.emit(std::move(collect));
}

/// The scalars, of which the first has those of the devices.
void MeshLowering::add_up_at_servers() {
  const int servers = plan_.cluster.server_devices();
  if (servers == 1) return;
  const MeshProgram& program = values_.program();
  ConversionStep step;
  step.kind = ConversionKind::all_reduce;
  step.axis = 0;
  const BufferIndex packed = program.whole(program.loss);
  values_.emit(Convert{step, packed, packed, {}, {}, {}});
}

void MeshLowering::publish_parameters() {
  const MeshProgram& program = values_.program();
  Exchange publish{Exchange::Kind::publish, {}, {}, program.whole(program.loss), {}};
  for (const OwnableUpdate& update : at_servers_)
    for (const StateIndex parameter : handed_out(update)) {
      const std::vector<BufferIndex>& parts = program.state_parts[parameter];
      publish.tensors.insert(publish.tensors.end(), parts.begin(), parts.end());
      for (const BufferIndex part : parts) publish.server.push_back(values_.buffer(part).owner.place);
    }
  std::int64_t most = 0;
  for (int server = 0; server < plan_.cluster.server_devices(); ++server)
    most = std::max(most, bytes_of(values_, publish.tensors, publish.server, server));
  // The slowest device may not have taken those that came since the oldest that it may compute on.
  publish.messages = on_host("published", most + values_.buffer(publish.scalars).bytes, plan_.staleness + 2);
  values_.emit(std::move(publish));
}

}  // namespace alpa
