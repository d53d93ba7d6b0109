#include "tests/kernels/emulation/emulated_stream.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/kernels/emulation/emulated_grid.h"

namespace alpa::emulation {
namespace {

constexpr std::chrono::seconds kLongestWait(20);  ///< for something to do

class EmulatedStream;

// One lock for all that is queued, and for its work.
std::mutex lock;
std::condition_variable changed;
std::vector<EmulatedStream*> streams;
std::uint64_t happened = 0;  ///< pieces of work that were queued or done

/// Lets streams go on until done(). A failure, or a wait that nothing can end, empties all queues.
template <class Done>
void run_until(Done done);

/// How often an event was recorded, and how many of these records the streams have reached.
struct Records {
  int queued = 0, reached = 0;
};

class EmulatedEvent final : public Event {
 public:
  void wait_on_host() override {
    run_until([this] { return records->reached == records->queued; });
  }
  const std::shared_ptr<Records> records = std::make_shared<Records>();  // streams may outlive the event
};

class EmulatedStream final : public Stream {
 public:
  explicit EmulatedStream(const Device& device) : device_(device) {
    const std::lock_guard held(lock);
    streams.push_back(this);
  }
  ~EmulatedStream() override {
    if (std::uncaught_exceptions() == 0) synchronize();
    const std::lock_guard held(lock);
    std::erase(streams, this);
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
    int number = 0;
    {
      const std::lock_guard held(lock);
      number = ++records->queued;
    }
    queue([records, number] { records->reached = std::max(records->reached, number); });
  }
  void wait(const Event& event) override {
    const std::shared_ptr<Records> records = static_cast<const EmulatedEvent&>(event).records;
    queue_until([records, number = records->queued] { return records->reached >= number; });
  }
  void synchronize() override {
    run_until([this] { return is_done(); });
  }

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

  void queue(std::function<void()> work) { add({nullptr, std::move(work)}); }
  void queue_until(std::function<bool()> is_done) {
    add({std::move(is_done), [] {}});
  }

  // Under the lock.
  bool is_of(const Device& device) const { return &device_ == &device; }
  bool is_done() const { return queued_.empty(); }
  bool can_go_on() const { return !is_done() && (!queued_.front().can || queued_.front().can()); }
  void go_on() {
    const std::function<void()> work = std::move(queued_.front().work);
    queued_.pop_front();
    work();
  }
  void forget() { queued_.clear(); }

 private:
  struct Work {
    std::function<bool()> can;  ///< nullptr: at once
    std::function<void()> work;
  };

  void add(Work work) {
    const std::lock_guard held(lock);
    queued_.push_back(std::move(work));
    ++happened;
    changed.notify_all();
  }
  void copy(void* to, const void* from, std::int64_t bytes) {
    queue([=] {
      if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    });
  }

  const Device& device_;
  std::deque<Work> queued_;
};

template <class Done>
void run_until(Done done) {
  static std::mt19937 random;  // as good as any: each legal order has to give the same
  std::unique_lock held(lock);
  while (!done()) {
    try {
      // Asking a stream may complete what one that was asked before it waits for.
      std::vector<EmulatedStream*> ready;
      for (int time = 0; time < 2 && ready.empty(); ++time)
        std::ranges::copy_if(streams, std::back_inserter(ready), &EmulatedStream::can_go_on);
      if (ready.empty()) {
        const std::uint64_t before = happened;
        changed.wait_for(held, kLongestWait, [&] { return happened != before || done(); });
        if (happened == before && !done() && std::ranges::none_of(streams, &EmulatedStream::can_go_on))
          throw std::logic_error("streams wait for what nothing does");
        continue;
      }
      const std::size_t next = order == Order::ascending    ? 0
                               : order == Order::descending ? ready.size() - 1
                                                            : random() % ready.size();
      ready[next]->go_on();
      ++happened;
      changed.notify_all();
    } catch (...) {
      for (EmulatedStream* each : streams) each->forget();
      throw;
    }
  }
}

EmulatedStream& emulated(CUstream_st* stream) { return *reinterpret_cast<EmulatedStream*>(stream); }

}  // namespace

std::unique_ptr<Stream> make_stream(const Device& device) { return std::make_unique<EmulatedStream>(device); }

void queue(CUstream_st* stream, std::function<void()> work) { emulated(stream).queue(std::move(work)); }
void queue_until(CUstream_st* stream, std::function<bool()> is_done) {
  emulated(stream).queue_until(std::move(is_done));
}

void synchronize(const Device& device) {
  if (std::uncaught_exceptions() > 0) {
    const std::lock_guard held(lock);
    for (EmulatedStream* each : streams)
      if (each->is_of(device)) each->forget();
    return;
  }
  run_until([&] {
    return std::ranges::all_of(
        streams, [&](const EmulatedStream* each) { return !each->is_of(device) || each->is_done(); });
  });
}

}  // namespace alpa::emulation
