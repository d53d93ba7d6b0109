// What devices and the servers that hold their states send each other (Exchange).
#include <algorithm>
#include <cstring>
#include <vector>

#include "libalpa/comm/reduce.h"
#include "libalpa/runtime/steps.h"

namespace alpa {
namespace {

constexpr std::int64_t kScalarBytes = sizeof(float);

/// A part of rows, and where it is in the message of its server.
struct ExchangedPart {
  BufferAddress tensor;
  int server = 0;
  std::int64_t offset = 0;
};

/// What all four have in common: ranks of devices come first, then those of servers. Messages are in the
/// memory of hosts, where servers add them up.
class ExchangeStep : public PreparedInstruction {
 public:
  ExchangeStep(const Exchange& exchange, const StepSite& site)
      : devices_(device_count(site.program.meshes.front().mesh.shape)),
        servers_(device_count(site.program.servers->mesh.shape)),
        staleness_(site.program.staleness),
        scalars_(site.mesh, exchange.scalars),
        messages_(site.mesh, exchange.messages),
        bytes_(static_cast<std::size_t>(servers_)) {
    bytes_[0] = scalars_.bytes();
    for (std::size_t i = 0; i < exchange.tensors.size(); ++i) {
      const int server = exchange.server[i];
      std::int64_t& end = bytes_[static_cast<std::size_t>(server)];
      parts_.push_back({BufferAddress(site.mesh, exchange.tensors[i]), server, end});
      end += parts_.back().tensor.bytes();
    }
  }

  Communicator* partners(const StepContext& rank) const override { return rank.served; }

 protected:
  std::byte* message(const StepContext& rank, std::int64_t slot) const {
    return static_cast<std::byte*>(rank.host_arena->data()) + messages_.offset + slot * messages_.slot_bytes;
  }

  std::int64_t bytes_of(int server) const { return bytes_[static_cast<std::size_t>(server)]; }

  /// What is at a server, between tensors and its message, which lies there.
  void pack(const StepContext& rank, int server, std::byte* at) const {
    if (server == 0) rank.stream->copy_to_host(at, scalars_.at(rank), scalars_.bytes());
    for (const ExchangedPart& part : parts_)
      if (part.server == server)
        rank.stream->copy_to_host(at + part.offset, part.tensor.at(rank), part.tensor.bytes());
    rank.stream->synchronize();
  }
  void unpack(const StepContext& rank, int server, const std::byte* at) const {
    for (const ExchangedPart& part : parts_)
      if (part.server == server)
        rank.stream->copy_to_device(part.tensor.at(rank), at + part.offset, part.tensor.bytes());
    rank.stream->synchronize();
  }
  void put_scalars(const StepContext& rank, const std::byte* at) const {
    rank.stream->copy_to_device(scalars_.at(rank), at, scalars_.bytes());
    rank.stream->synchronize();
  }

  int devices_, servers_, staleness_;
  BufferAddress scalars_, messages_;
  std::vector<ExchangedPart> parts_;

 private:
  std::vector<std::int64_t> bytes_;  ///< [server] of a message
};

/// Slots of messages that are sent in turn, and what was sent from each.
class SentSlots {
 public:
  SentSlots(std::int64_t slots, int messages) : messages_(static_cast<std::size_t>(slots)) {
    for (std::vector<std::int64_t>& of : messages_) of.reserve(static_cast<std::size_t>(messages));
  }

  std::int64_t next() const { return next_; }

  /// Whether all that was sent from the next slot has left.
  bool is_free(Communicator& ranks, Stream& stream) {
    std::vector<std::int64_t>& sent = messages_[static_cast<std::size_t>(next_)];
    while (!sent.empty() && ranks.has_left(stream, sent.back())) sent.pop_back();
    return sent.empty();
  }

  void add(std::int64_t message) { messages_[static_cast<std::size_t>(next_)].push_back(message); }
  void turn() { next_ = (next_ + 1) % std::ssize(messages_); }

 private:
  std::vector<std::vector<std::int64_t>> messages_;  ///< [slot] on their way
  std::int64_t next_ = 0;
};

class PushStep : public ExchangeStep {
 public:
  PushStep(const Exchange& push, const StepSite& site)
      : ExchangeStep(push, site), slots_(messages_.slots, servers_) {}

  void begin(const StepContext&) override {}

  Progress advance(const StepContext& rank) override {
    if (!slots_.is_free(*rank.served, *rank.stream)) return Progress::none;
    std::byte* at = message(rank, slots_.next());
    for (int server = 0; server < servers_; ++server) {
      if (bytes_of(server) == 0) continue;
      pack(rank, server, at);
      if (server == 0) std::memcpy(at + scalars_.bytes() - kScalarBytes, &rank.exchanged->lead, kScalarBytes);
      slots_.add(rank.served->send(*rank.stream, at, bytes_of(server), devices_ + server));
      at += bytes_of(server);
    }
    slots_.turn();
    ++rank.exchanged->pushed;
    return Progress::done;
  }

 private:
  SentSlots slots_;
};

/// Takes all that has arrived, and no less than the bound asks for.
class TakeStep : public ExchangeStep {
 public:
  TakeStep(const Exchange& take, const StepSite& site)
      : ExchangeStep(take, site),
        from_(static_cast<std::size_t>(servers_)),
        scalars_of_(static_cast<std::size_t>(staleness_) + 2,
                    std::vector<std::byte>(static_cast<std::size_t>(scalars_.bytes()))) {
    std::int64_t offset = 0;
    for (int server = 0; server < servers_; ++server) {
      from_[static_cast<std::size_t>(server)].offset = offset;
      offset += bytes_of(server);
    }
  }

  void begin(const StepContext&) override {}

  Progress advance(const StepContext& rank) override {
    ExchangedSteps& steps = *rank.exchanged;
    const bool is_rest = rank.pass == Pass::rest;
    const std::int64_t wanted = is_rest ? steps.pushed : steps.pushed - staleness_;
    bool has_moved = false;
    std::int64_t taken = steps.pushed;
    for (int server = 0; server < servers_; ++server) {
      if (bytes_of(server) == 0) continue;
      while (take_next(rank, server)) has_moved = true;
      taken = std::min(taken, from_[static_cast<std::size_t>(server)].taken);
    }
    if (taken < wanted) return has_moved ? Progress::some : Progress::none;
    if (!is_rest) steps.lead = static_cast<float>(steps.pushed - taken);
    // What finish() has reported is not reported again.
    steps.reported = is_rest ? std::min(steps.reported + 1, steps.pushed) : std::max(steps.reported, wanted);
    if (steps.reported > 0) put_scalars(rank, scalars(steps.reported).data());
    return Progress::done;
  }

 private:
  struct From {
    std::int64_t taken = 0, offset = 0;
    std::int64_t message = -1;  ///< that is waited for
  };

  std::vector<std::byte>& scalars(std::int64_t version) {
    return scalars_of_[static_cast<std::size_t>(version % std::ssize(scalars_of_))];
  }

  bool take_next(const StepContext& rank, int server) {
    From& from = from_[static_cast<std::size_t>(server)];
    if (from.taken == rank.exchanged->pushed) return false;
    std::byte* const at = message(rank, 0) + from.offset;
    if (from.message < 0)
      from.message = rank.served->start_receive(*rank.stream, at, bytes_of(server), devices_ + server);
    if (!rank.served->has_arrived(*rank.stream, from.message)) return false;
    from.message = -1;
    ++from.taken;
    unpack(rank, server, at);
    if (server == 0) std::copy_n(at, scalars_.bytes(), scalars(from.taken).begin());
    return true;
  }

  std::vector<From> from_;                          ///< [server]
  std::vector<std::vector<std::byte>> scalars_of_;  ///< [version, in turn]
};

/// Adds up in the order of the devices, so that the same gradients have the same sum: in the first slot.
class CollectStep : public ExchangeStep {
 public:
  CollectStep(const Exchange& collect, const StepSite& site)
      : ExchangeStep(collect, site),
        own_(site.coordinate.at(0)),
        receives_(static_cast<int>(messages_.slots) - 1),
        arriving_(static_cast<std::size_t>(devices_)) {}

  void begin(const StepContext& rank) override {
    started_ = arrived_ = 0;
    if (bytes_of(own_) == 0) started_ = arrived_ = devices_;
    start(rank);
  }

  Progress advance(const StepContext& rank) override {
    bool has_moved = false;
    for (; arrived_ < devices_ &&
           rank.served->has_arrived(*rank.stream, arriving_[static_cast<std::size_t>(arrived_)]);
         has_moved = true) {
      add(message(rank, 0), received(rank, arrived_));
      ++arrived_;
      start(rank);
    }
    if (arrived_ < devices_) return has_moved ? Progress::some : Progress::none;
    std::byte* const sum = message(rank, 0);
    unpack(rank, own_, sum);
    if (own_ != 0) std::memset(sum, 0, static_cast<std::size_t>(scalars_.bytes()));  // the first has them
    put_scalars(rank, sum);
    return Progress::done;
  }

 private:
  std::byte* received(const StepContext& rank, int device) const {
    return message(rank, 1 + device % receives_);
  }

  void start(const StepContext& rank) {
    for (; started_ < devices_ && started_ < arrived_ + receives_; ++started_)
      arriving_[static_cast<std::size_t>(started_)] =
          rank.served->start_receive(*rank.stream, received(rank, started_), bytes_of(own_), started_);
  }

  void add(std::byte* sum, const std::byte* arrived) const {
    if (arrived_ == 0) return static_cast<void>(std::copy_n(arrived, bytes_of(own_), sum));
    if (own_ == 0) add_scalars(sum, arrived);
    for (const ExchangedPart& part : parts_) {
      if (part.server != own_) continue;
      const void* const both[] = {sum + part.offset, arrived + part.offset};
      reduce_in_order(both, sum + part.offset, element_count(part.tensor.tile.shape), part.tensor.tile.dtype,
                      Reduction::sum);
    }
  }

  /// Of the last of them, the lead, the greatest counts.
  void add_scalars(std::byte* sum, const std::byte* arrived) const {
    const std::int64_t last = scalars_.bytes() - kScalarBytes;
    const auto reduce = [&](std::int64_t from, std::int64_t count, Reduction reduction) {
      const void* const both[] = {sum + from, arrived + from};
      reduce_in_order(both, sum + from, count, DType::f32, reduction);
    };
    reduce(0, last / kScalarBytes, Reduction::sum);
    reduce(last, 1, Reduction::max);
  }

  int own_, receives_;
  std::vector<std::int64_t> arriving_;  ///< [device]
  int started_ = 0, arrived_ = 0;
};

class PublishStep : public ExchangeStep {
 public:
  PublishStep(const Exchange& publish, const StepSite& site)
      : ExchangeStep(publish, site), own_(site.coordinate.at(0)), slots_(messages_.slots, devices_) {}

  void begin(const StepContext&) override {}

  Progress advance(const StepContext& rank) override {
    if (bytes_of(own_) == 0) return Progress::done;
    if (!slots_.is_free(*rank.served, *rank.stream)) return Progress::none;
    std::byte* const at = message(rank, slots_.next());
    pack(rank, own_, at);
    for (int device = 0; device < devices_; ++device)
      slots_.add(rank.served->send(*rank.stream, at, bytes_of(own_), device));
    slots_.turn();
    return Progress::done;
  }

 private:
  int own_;
  SentSlots slots_;
};

}  // namespace

std::unique_ptr<PreparedInstruction> prepare(const Exchange& exchange, const StepSite& site) {
  switch (exchange.kind) {
    case Exchange::Kind::push:
      return std::make_unique<PushStep>(exchange, site);
    case Exchange::Kind::collect:
      return std::make_unique<CollectStep>(exchange, site);
    case Exchange::Kind::publish:
      return std::make_unique<PublishStep>(exchange, site);
    case Exchange::Kind::take:
      return std::make_unique<TakeStep>(exchange, site);
  }
  return nullptr;
}

}  // namespace alpa
