#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "libalpa/device/device.h"
#include "libalpa/kernels/kernel.h"
#include "libalpa/profiler/workload.h"

namespace alpa {

/// Memory that samples work on. Operands hold random numbers of both signs, as in training: zeros, and sums
/// that only grow, cost a GPU less power, so it would run faster. Operators that overwrite their operands
/// (updates) get positive numbers, of which roots can be taken.
///
/// In training an operator finds its operands in caches only as far as the rest of the step left them there.
/// So successive calls get other places, which go round a range of at least `cold_bytes` for operands and as
/// much for results. The first operand alone stays where it is: it is what the instruction before has just
/// made, and is as warm as its size allows. Not so for operators that overwrite (updates): their state was
/// last touched a step ago. Of small tensors at most kMostSets places are distinguished; these stay in caches,
/// as small tensors do in training.
class SampleMemory {
 public:
  static constexpr int kMostSets = 256;

  /// `most_bytes` is what a sample may take, and what is held from one to the next. Keeps references.
  SampleMemory(Device&, Stream&, std::int64_t cold_bytes, std::int64_t most_bytes);

  /// Where one call finds its operands, results and workspace.
  struct Call {
    std::vector<Tile> operands, results;
    void* workspace = nullptr;
  };

  /// At least one; valid until the next request. Throws Error(run_time) where memory does not suffice.
  std::vector<Call> calls(const OperatorCase&);

  /// Two buffers of random f32 numbers.
  struct Message {
    void* from = nullptr;
    void* to = nullptr;
  };

  /// At least one, with `bytes` in each buffer; as calls().
  std::vector<Message> messages(std::int64_t bytes);

  std::int64_t held_bytes() const;

 private:
  /// One block of memory, filled, and how it is cut for the sample at hand.
  struct Region {
    DType dtype = DType::f32;
    bool is_positive = false;
    std::unique_ptr<DeviceMemory> memory = {};
    std::int64_t stride = 0;
    int sets = 1;
  };

  /// What a sample takes of each kind of memory.
  struct Needs {
    std::array<std::int64_t, 6> operands{};  ///< as the regions
    std::int64_t results = 0, workspace = 0;
  };

  void check_fits(std::int64_t bytes) const;

  /// Lets go of what earlier samples took where these needs beside it are too much.
  void make_room(const Needs&);
  void provide(const OperatorCase&);
  Call call_at(const OperatorCase&, int set) const;

  /// Cuts a region into places of `bytes_each`; makes it larger where needed.
  void cut(Region&, std::int64_t bytes_each);
  char* place(const Region&, int set) const;
  void fill(Region&);
  void fill_indices(const OperatorCase&);

  Device& device_;
  Stream& stream_;
  std::int64_t cold_bytes_, most_bytes_;
  std::array<Region, 6> operands_{Region{DType::f32},        Region{DType::bf16},
                                  Region{DType::f16},        Region{DType::f32, true},
                                  Region{DType::bf16, true}, Region{DType::f16, true}};
  Region results_;
  std::unique_ptr<DeviceMemory> workspace_;
  std::vector<std::unique_ptr<DeviceMemory>> indices_;  ///< of i32 operands, in their order
};

}  // namespace alpa
