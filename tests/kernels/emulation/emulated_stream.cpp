#include "tests/kernels/emulation/emulated_stream.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/kernels/emulation/emulated_grid.h"

namespace alpa::emulation {
namespace {

/// How often an event was recorded, and how many of these records the streams have reached.
struct Records {
  int queued = 0, reached = 0;
};

class EmulatedEvent final : public Event {
 public:
  void wait_on_host() override;
  const std::shared_ptr<Records> records = std::make_shared<Records>();  // streams may outlive the event
};

class EmulatedStream;

std::vector<EmulatedStream*>& streams() {
  static std::vector<EmulatedStream*> made;
  return made;
}

class EmulatedStream final : public Stream {
 public:
  EmulatedStream() { streams().push_back(this); }
  ~EmulatedStream() override {
    synchronize();
    std::erase(streams(), this);
  }
  EmulatedStream(const EmulatedStream&) = delete;
  EmulatedStream& operator=(const EmulatedStream&) = delete;

  std::unique_ptr<Event> record() override {
    auto event = std::make_unique<EmulatedEvent>();
    record(*event);
    return event;
  }
  void record(Event& event) override {
    const std::shared_ptr<Records> records = static_cast<EmulatedEvent&>(event).records;
    queue([records, number = ++records->queued] { records->reached = std::max(records->reached, number); });
  }
  void wait(const Event& event) override {
    const std::shared_ptr<Records> records = static_cast<const EmulatedEvent&>(event).records;
    queued_.push_back({[] {}, records, records->queued});
  }
  void synchronize() override;

  void copy_to_host(void* host, const void* device, std::int64_t bytes) override {
    copy(host, device, bytes);
  }
  void copy_to_device(void* device, const void* host, std::int64_t bytes) override {
    copy(device, host, bytes);
  }
  void copy_on_device(void* to, const void* from, std::int64_t bytes) override {
    if (to != from) copy(to, from, bytes);
  }
  void fill_zero(void* device, std::int64_t bytes) override {
    queue([=] {
      if (bytes > 0) std::memset(device, 0, static_cast<std::size_t>(bytes));
    });
  }
  void* native() const override { return const_cast<EmulatedStream*>(this); }

  void queue(std::function<void()> work) { queued_.push_back({std::move(work), nullptr, 0}); }
  bool is_done() const { return queued_.empty(); }
  bool can_go_on() const {
    return !queued_.empty() &&
           (!queued_.front().after || queued_.front().after->reached >= queued_.front().number);
  }
  void leave() { queued_.clear(); }
  void go_on() {
    const std::function<void()> work = std::move(queued_.front().work);
    queued_.pop_front();
    work();
  }

 private:
  struct Work {
    std::function<void()> work;
    std::shared_ptr<Records> after;  ///< nullptr: nothing
    int number;                      ///< which of its records
  };

  void copy(void* to, const void* from, std::int64_t bytes) {
    queue([=] {
      if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    });
  }

  std::deque<Work> queued_;
};

/// Lets streams go on until done(). What fails leaves nothing queued.
template <class Done>
void run_until(Done done) {
  static std::mt19937 random;  // as good as any: each legal order has to give the same
  while (!done()) {
    std::vector<EmulatedStream*> ready;
    std::ranges::copy_if(streams(), std::back_inserter(ready), &EmulatedStream::can_go_on);
    if (ready.empty()) throw std::logic_error("streams wait for what nothing does");
    const std::size_t next = order == Order::ascending    ? 0
                             : order == Order::descending ? ready.size() - 1
                                                          : random() % ready.size();
    try {
      ready[next]->go_on();
    } catch (...) {
      for (EmulatedStream* each : streams()) each->leave();
      throw;
    }
  }
}

void EmulatedEvent::wait_on_host() {
  run_until([this, number = records->queued] { return records->reached >= number; });
}

void EmulatedStream::synchronize() {
  run_until([this] { return is_done(); });
}

}  // namespace

std::unique_ptr<Stream> make_stream() { return std::make_unique<EmulatedStream>(); }

void queue(CUstream_st* stream, std::function<void()> work) {
  if (stream)
    reinterpret_cast<EmulatedStream*>(stream)->queue(std::move(work));
  else
    work();
}

void synchronize() {
  run_until([] { return std::ranges::all_of(streams(), &EmulatedStream::is_done); });
}

}  // namespace alpa::emulation
