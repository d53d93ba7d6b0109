#include "tests/support/kernel_runner.h"

#include <memory>

#include "libalpa/kernels/make_kernel.h"

namespace alpa {
namespace {

std::unique_ptr<DeviceMemory> upload(Device& device, Stream& stream, const Values& values,
                                     const TensorType& type) {
  auto memory = device.allocate(byte_count(type));
  const std::vector<std::byte> bytes = packed(values, type.dtype);
  stream.copy_to_device(memory->data(), bytes.data(), static_cast<std::int64_t>(bytes.size()));
  stream.synchronize();
  return memory;
}

Values download(Stream& stream, const void* data, const TensorType& type) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(byte_count(type)));
  stream.copy_to_host(bytes.data(), data, static_cast<std::int64_t>(bytes.size()));
  stream.synchronize();
  return unpacked(bytes, type.dtype);
}

Shape at(const std::vector<Shape>& shapes, std::size_t index) {
  return shapes.empty() ? Shape{} : shapes[index];
}

}  // namespace

std::vector<Values> run_kernel(Device& device, const KernelRun& run, std::span<const Values> operands) {
  const auto stream = device.make_stream();
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<Tile> operand_tiles, result_tiles;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    memory.push_back(upload(device, *stream, operands[i], run.operands[i]));
    operand_tiles.push_back({memory.back()->data(), at(run.operand_origins, i), at(run.operand_wholes, i)});
  }
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    void* data = nullptr;
    if (run.op->overwritten(i) >= 0) {
      data = operand_tiles[run.op->overwritten(i)].data;
    } else {
      memory.push_back(run.accumulate && i < run.results_before.size()
                           ? upload(device, *stream, run.results_before[i], run.results[i])
                           : device.allocate(byte_count(run.results[i])));
      data = memory.back()->data();
    }
    result_tiles.push_back({data, at(run.result_origins, i), at(run.result_wholes, i)});
  }
  const auto workspace =
      device.allocate(workspace_of(*run.op, {run.operands, run.attributes}, device.kind()));
  const auto kernel = make_kernel(device, *run.op, {run.operands, run.results, run.attributes});
  kernel->run(*stream, operand_tiles, result_tiles, workspace->data(), run.accumulate, run.point);
  std::vector<Values> results;
  for (std::size_t i = 0; i < run.results.size(); ++i)
    results.push_back(download(*stream, result_tiles[i].data, run.results[i]));
  return results;
}

}  // namespace alpa
