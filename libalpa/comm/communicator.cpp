#include "libalpa/comm/communicator.h"

namespace alpa {
namespace {

template <class Advance>
void finish(Communicator& ranks, Advance advance) {
  for (;;) {
    const Progress progress = advance();
    if (progress == Progress::done) return;
    if (progress == Progress::none) ranks.rest();
  }
}

void run(Communicator& ranks, Stream& stream, const CollectiveCall& call) {
  ranks.start(stream, call);
  finish(ranks, [&] { return ranks.advance(stream); });
}

}  // namespace

std::int64_t total_bytes(std::span<const OwnedPiece> pieces) {
  std::int64_t bytes = 0;
  for (const OwnedPiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

void Communicator::all_reduce(Stream& stream, void* values, std::int64_t count, DType dtype,
                              Reduction reduction, int server_ranks) {
  run(*this, stream,
      {.to = values,
       .bytes = count * dtype_bytes(dtype),
       .dtype = dtype,
       .reduction = reduction,
       .server_ranks = server_ranks});
}

void Communicator::all_gather(Stream& stream, const void* part, void* whole, std::int64_t bytes_each) {
  run(*this, stream, {CollectiveCall::Kind::all_gather, part, whole, bytes_each});
}

void Communicator::reduce_scatter(Stream& stream, void* whole, void* part, std::int64_t count_each,
                                  DType dtype, Reduction reduction) {
  run(*this, stream,
      {CollectiveCall::Kind::reduce_scatter, whole, part, count_each * dtype_bytes(dtype), dtype, reduction});
}

void Communicator::all_to_all(Stream& stream, const void* from, void* to, std::int64_t bytes_each) {
  run(*this, stream, {CollectiveCall::Kind::all_to_all, from, to, bytes_each});
}

void Communicator::broadcast(Stream& stream, void* data, std::int64_t bytes, int root) {
  run(*this, stream,
      {CollectiveCall::Kind::broadcast, nullptr, data, bytes, DType::f32, Reduction::sum, root});
}

void Communicator::reduce_to_owners(Stream& stream, std::span<const OwnedPiece> pieces, DType dtype,
                                    Reduction reduction) {
  run(*this, stream,
      {.kind = CollectiveCall::Kind::reduce_to_owners,
       .dtype = dtype,
       .reduction = reduction,
       .pieces = pieces});
}

void Communicator::broadcast_from_owners(Stream& stream, std::span<const OwnedPiece> pieces) {
  run(*this, stream, {.kind = CollectiveCall::Kind::broadcast_from_owners, .pieces = pieces});
}

void Communicator::wait_send(Stream& stream, std::int64_t message) {
  while (!has_left(stream, message)) rest();
}

void Communicator::receive(Stream& stream, void* data, std::int64_t bytes, int from) {
  const std::int64_t message = start_receive(stream, data, bytes, from);
  while (!has_arrived(stream, message)) rest();
}

std::vector<int> consecutive_nodes(int ranks, int per_node) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / per_node);
  return nodes;
}

void TensorShift::start(Communicator& ranks, Stream& stream, std::span<const ShiftBuffer> tensors) {
  const int next = (ranks.rank() + 1) % ranks.size(),
            previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
  arriving_.clear();
  leaving_.clear();
  arrived_ = left_ = 0;
  for (const ShiftBuffer& tensor : tensors)
    leaving_.push_back(ranks.send(stream, tensor.from, tensor.bytes, next));
  for (const ShiftBuffer& tensor : tensors)
    arriving_.push_back(ranks.start_receive(stream, tensor.to, tensor.bytes, previous));
}

Progress TensorShift::advance(Communicator& ranks, Stream& stream) {
  const std::size_t before = arrived_ + left_;
  while (arrived_ < arriving_.size() && ranks.has_arrived(stream, arriving_[arrived_])) ++arrived_;
  // Who has them knows that they have left, so these are looked at last.
  while (arrived_ == arriving_.size() && left_ < leaving_.size() && ranks.has_left(stream, leaving_[left_]))
    ++left_;
  if (left_ == leaving_.size()) return Progress::done;
  return arrived_ + left_ > before ? Progress::some : Progress::none;
}

void shift(Communicator& ranks, Stream& stream, std::span<const ShiftBuffer> tensors) {
  TensorShift under_way;
  under_way.start(ranks, stream, tensors);
  finish(ranks, [&] { return under_way.advance(ranks, stream); });
}

}  // namespace alpa
