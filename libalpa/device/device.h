#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/base/device_kind.h"
#include "libalpa/device/device_waits.h"

namespace alpa {

/// A point in the work of a stream. Recorded by Stream::record, waited for by another stream or the host.
class Event {
 public:
  virtual ~Event() = default;
  virtual void wait_on_host() = 0;  ///< blocks the caller until the work before the record is done
};

/// An ordered queue of work on one device. Calls return once the work is queued, not once it is done;
/// work of one stream runs in the order queued. The CPU device runs work at once, which keeps that order.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual std::unique_ptr<Event> record() = 0;
  virtual void record(Event&) = 0;      ///< in place of what it recorded before
  virtual void wait(const Event&) = 0;  ///< later work of this stream starts after the event
  virtual void synchronize() = 0;       ///< blocks the caller until all queued work is done

  /// Queue the copy of `bytes` bytes. Host memory must stay valid until the copy is done.
  virtual void copy_to_host(void* host, const void* device, std::int64_t bytes) = 0;
  virtual void copy_to_device(void* device, const void* host, std::int64_t bytes) = 0;
  virtual void copy_on_device(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void fill_zero(void* device, std::int64_t bytes) = 0;

  virtual void* native() const = 0;  ///< cudaStream_t for kernels and NCCL; nullptr on CPUs
};

/// Device memory owned by whoever holds the handle; freed with it. Aligned to kAlignment at least.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void* data() const = 0;
  virtual std::int64_t bytes() const = 0;
};

/// Brackets host code that touches device memory directly (a CPU kernel, an MPI call on a CPU device).
/// Null except on checked-cpu, where device memory is unreadable outside such a bracket.
class HostAccess {
 public:
  virtual ~HostAccess() = default;
};

/// Where a rank computes. Handed down by reference; outlives every stream and memory made from it.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual int host_threads() const = 0;         ///< of kernels that run on the host; 1 on GPUs
  virtual std::string description() const = 0;  ///< "CPU, 2 threads (AMD EPYC)", "NVIDIA H200 (GPU-1234...)"

  /// Throws Error(run_time) saying how much was asked and how much is free.
  virtual std::unique_ptr<DeviceMemory> allocate(std::int64_t bytes) = 0;
  /// Host memory that the device copies from and to at full rate (pinned on CUDA).
  virtual std::unique_ptr<DeviceMemory> allocate_staging(std::int64_t bytes) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<HostAccess> host_access() = 0;
  virtual std::int64_t memory_bytes() const = 0;  ///< what a program may hope to allocate

  DeviceWaits& waits() { return waits_; }

  /// The handle of the library of matrix products, for all kernels of this device: `make()` is called by the
  /// first that asks, what it returns goes with the device.
  template <class Make>
  void* product_library(Make make) {
    if (!product_library_) product_library_ = make();
    return product_library_.get();
  }

  /// Streams for what kernels do beside the stream of a call; all kernels of this device have them in common,
  /// as it runs no more than some tens of streams side by side.
  Stream& side_stream(std::size_t which) {
    while (side_streams_.size() <= which) side_streams_.push_back(make_stream());
    return *side_streams_[which];
  }

 private:
  DeviceWaits waits_;  // outlives what may wait in its destructor
  std::vector<std::unique_ptr<Stream>> side_streams_;
  std::shared_ptr<void> product_library_;
};

std::unique_ptr<Device> make_cpu_device(int threads);
std::unique_ptr<Device> make_checked_cpu_device(int threads);

/// Stands for a device of these words with so much memory. Its own is the host's, taken where it is touched
/// and promised whatever the host has; kernels are not made for it.
std::unique_ptr<Device> make_emulated_device(const std::string& of, std::int64_t memory_bytes);

/// The GPU with that index among the visible ones. Throws Error(allocation) where there is none, or where
/// this build has no CUDA backend (the message says which).
std::unique_ptr<Device> make_cuda_device(int visible_index);
int visible_cuda_devices();  ///< 0 where there is no GPU, driver or CUDA backend

}  // namespace alpa
