#pragma once
#include <memory>
#include <vector>

#include "libalpa/comm/thread_group.h"
#include "libalpa/comm/wire.h"

namespace alpa {

/// The wire of one rank of a group of threads. Messages are copies, which have left when isend() returns.
class ThreadWire final : public Wire {
 public:
  ThreadWire(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  int isend(const void* data, std::int64_t bytes, int to, int tag) override;
  int irecv(void* data, std::int64_t bytes, int from, int tag) override;
  bool test(int message) override;
  void rest() override;
  void look();  ///< as Communicator::look

 private:
  struct Received {
    void* data = nullptr;
    std::int64_t bytes = 0;
    int from = 0, tag = 0;
    std::int64_t order = 0;  ///< in which receives were started
    bool is_waited_for = false;
  };

  std::vector<int> waited_for() const;  ///< ranks

  std::shared_ptr<ThreadGroup> group_;
  int rank_;
  std::vector<Received> received_;  ///< by number of the message
  std::int64_t started_ = 0;        ///< receives
  std::int64_t seen_ = 0;           ///< of the group's changes
};

}  // namespace alpa
