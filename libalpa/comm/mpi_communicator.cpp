#include "libalpa/comm/mpi_communicator.h"

#include <numeric>
#include <vector>

#include "libalpa/comm/collectives.h"

namespace alpa {
namespace {

const char* name_of(CollectiveCall::Kind kind) {
  switch (kind) {
    case CollectiveCall::Kind::all_reduce:
      return "all-reduce";
    case CollectiveCall::Kind::all_gather:
      return "all-gather";
    case CollectiveCall::Kind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveCall::Kind::all_to_all:
      return "all-to-all";
    case CollectiveCall::Kind::broadcast:
      return "broadcast";
    case CollectiveCall::Kind::reduce_to_owners:
      return "reduce to owners";
    case CollectiveCall::Kind::broadcast_from_owners:
      return "broadcast from owners";
  }
  return "";
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm adopted, std::shared_ptr<const PeerWatch> watch)
      : transport_(adopted, std::move(watch)), collectives_(transport_) {}

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }

  void start(Stream& stream, const CollectiveCall& call) override {
    stream.synchronize();
    const bool is_whole =
        call.kind == CollectiveCall::Kind::all_reduce || call.kind == CollectiveCall::Kind::broadcast;
    const std::int64_t bytes = is_whole ? call.bytes : size() * call.bytes;
    transport_.begin(name_of(call.kind), bytes + total_bytes(call.pieces));
    collectives_.start(call);
  }
  Progress advance(Stream&) override { return collectives_.advance(); }

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    stream.synchronize();
    collectives_.count_sent(to, bytes);
    return transport_.start_send(data, bytes, to, most_bytes_to(to));
  }
  bool has_left(Stream&, std::int64_t message) override { return transport_.has_left(message); }
  void wait_sends(Stream&) override { transport_.wait_sends(); }

  void move_messages() override { transport_.move_messages(); }

  std::int64_t start_receive(Stream& stream, void* data, std::int64_t bytes, int from) override {
    stream.synchronize();
    return transport_.start_receive(data, bytes, from, most_bytes_to(from));
  }
  bool receives_beside_others() const override { return true; }
  bool has_arrived(Stream&, std::int64_t message) override {
    return transport_.has_arrived(static_cast<int>(message));
  }

  void rest(std::string_view during) override { transport_.rest(during); }
  void look(std::string_view during) override { transport_.look(during); }
  void cancel() override { transport_.cancel(); }

  void barrier() override {
    transport_.begin("barrier");
    transport_.barrier();
  }

  void set_nodes(std::vector<int> node_of_rank) override { collectives_.set_nodes(std::move(node_of_rank)); }
  void set_sends_ahead(bool ahead) override { sends_ahead_ = ahead; }
  SentBytes sent() const override { return collectives_.sent(); }

  std::unique_ptr<Communicator> split(int color) override {
    barrier();  // the split's own wait is under no watch
    MPI_Comm part = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split(transport_.native(), color < 0 ? MPI_UNDEFINED : color, rank(), &part),
              "MPI_Comm_split");
    if (part == MPI_COMM_NULL) return nullptr;
    std::unique_ptr<Communicator> group = make_mpi_communicator(part, transport_.watch());
    group->set_nodes(collectives_.nodes_of(ranks_here(part)));
    group->set_sends_ahead(sends_ahead_);
    return group;
  }

 private:
  /// The ranks of a group split from this one, as they are numbered here.
  std::vector<int> ranks_here(MPI_Comm part) const {
    MPI_Group theirs = MPI_GROUP_NULL, ours = MPI_GROUP_NULL;
    check_mpi(MPI_Comm_group(part, &theirs), "MPI_Comm_group");
    check_mpi(MPI_Comm_group(transport_.native(), &ours), "MPI_Comm_group");
    int size = 0;
    check_mpi(MPI_Group_size(theirs, &size), "MPI_Group_size");
    std::vector<int> there(static_cast<std::size_t>(size)), here(there.size());
    std::iota(there.begin(), there.end(), 0);
    check_mpi(MPI_Group_translate_ranks(theirs, size, there.data(), ours, here.data()),
              "MPI_Group_translate_ranks");
    MPI_Group_free(&theirs);
    MPI_Group_free(&ours);
    return here;
  }

  std::int64_t most_bytes_to(int rank) const {
    return sends_ahead_ ? collectives_.most_bytes_to(rank) : Wire::kMostBytes;
  }

  MpiTransport transport_;
  Collectives collectives_;
  bool sends_ahead_ = false;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm adopted,
                                                    std::shared_ptr<const PeerWatch> watch) {
  return std::make_unique<MpiCommunicator>(adopted, std::move(watch));
}

}  // namespace alpa
