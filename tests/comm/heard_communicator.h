#pragma once
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "libalpa/comm/communicator.h"

namespace alpa {

/// Another communicator, for tests that listen to some of its calls.
class HeardCommunicator : public Communicator {
 public:
  explicit HeardCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void start(Stream& s, const CollectiveCall& call) override { inner_->start(s, call); }
  Progress advance(Stream& s) override { return inner_->advance(s); }
  void connect(std::span<const RankPair> pairs) override { inner_->connect(pairs); }
  std::int64_t send(Stream& s, const void* data, std::int64_t bytes, int to) override {
    return inner_->send(s, data, bytes, to);
  }
  bool has_left(Stream& s, std::int64_t message) override { return inner_->has_left(s, message); }
  void wait_sends(Stream& s) override { inner_->wait_sends(s); }
  void move_messages() override { inner_->move_messages(); }
  std::int64_t start_receive(Stream& s, void* data, std::int64_t bytes, int from) override {
    return inner_->start_receive(s, data, bytes, from);
  }
  bool has_arrived(Stream& s, std::int64_t message) override { return inner_->has_arrived(s, message); }
  bool receives_beside_others() const override { return inner_->receives_beside_others(); }
  void rest(std::string_view during) override { inner_->rest(during); }
  void look(std::string_view during) override { inner_->look(during); }
  void cancel() override { inner_->cancel(); }
  void barrier() override { inner_->barrier(); }
  std::unique_ptr<Communicator> split(int color) override { return inner_->split(color); }
  void set_nodes(std::vector<int> node_of_rank) override { inner_->set_nodes(std::move(node_of_rank)); }
  void set_sends_ahead(bool ahead) override { inner_->set_sends_ahead(ahead); }
  SentBytes sent() const override { return inner_->sent(); }
  std::unique_ptr<Communicator> duplicate() override { return inner_->duplicate(); }

 private:
  std::unique_ptr<Communicator> inner_;
};

}  // namespace alpa
