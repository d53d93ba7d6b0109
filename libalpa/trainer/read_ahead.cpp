#include "libalpa/trainer/read_ahead.h"

#include <utility>

namespace alpa {
namespace {

/// Of one buffer.
std::int64_t bytes_of_step(const StepSamples& samples) {
  std::int64_t bytes = 0;
  for (const InputSamples& input : samples)
    if (input.bytes() > 0) bytes += buffer_bytes(input.bytes());
  return bytes;
}

}  // namespace

std::int64_t ReadAhead::bytes(const StepSamples& samples, const BatchReader& reader) {
  const std::int64_t of_step = bytes_of_step(samples);
  return (reader.can_read_ahead() ? 2 : 1) * of_step + reader.held_bytes();
}

ReadAhead::ReadAhead(Device& device, StepSamples samples, BatchReader& training)
    : samples_(std::move(samples)), reader_(training), current_(make_buffer(device)) {
  if (bytes_of_step(samples_) == 0 || !reader_.can_read_ahead()) return;
  next_ = make_buffer(device);
  thread_ = std::jthread([this](std::stop_token stop) { serve(std::move(stop)); });
}

ReadAhead::~ReadAhead() = default;

ReadAhead::Buffer ReadAhead::make_buffer(Device& device) const {
  Buffer buffer;
  buffer.memory = device.allocate_staging(bytes_of_step(samples_));
  auto* begin = static_cast<std::byte*>(buffer.memory->data());
  for (const InputSamples& input : samples_) {
    buffer.to_fill.emplace_back(begin, static_cast<std::size_t>(input.bytes()));
    if (input.bytes() > 0) begin += buffer_bytes(input.bytes());
  }
  buffer.filled = {buffer.to_fill.begin(), buffer.to_fill.end()};
  return buffer;
}

void ReadAhead::wait_for_thread() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_reading_; });
}

ReadAhead::Samples ReadAhead::training(std::int64_t first_sample, std::optional<std::int64_t> next) {
  if (!thread_.joinable()) return read(reader_, Split::training, first_sample);
  wait_for_thread();
  if (std::exchange(ahead_, std::nullopt) == first_sample) {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    std::swap(current_, next_);
  } else {
    read(reader_, Split::training, first_sample);
  }
  failure_ = nullptr;
  if (next) {
    ahead_ = next;
    {
      const std::lock_guard lock(mutex_);
      is_reading_ = true;
    }
    changed_.notify_all();
  }
  return current_.filled;
}

ReadAhead::Samples ReadAhead::read(BatchReader& reader, Split split, std::int64_t first_sample) {
  wait_for_thread();
  if (bytes_of_step(samples_) > 0) reader.fill(split, first_sample, samples_, current_.to_fill);
  return current_.filled;
}

void ReadAhead::serve(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return is_reading_; }) && !stop.stop_requested()) {
    lock.unlock();
    try {
      reader_.fill(Split::training, *ahead_, samples_, next_.to_fill);
    } catch (...) {
      failure_ = std::current_exception();
    }
    lock.lock();
    is_reading_ = false;
    changed_.notify_all();
  }
}

}  // namespace alpa
