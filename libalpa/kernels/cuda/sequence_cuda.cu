#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"

namespace alpa::ops {
namespace {

/// A block for each row of tokens, and consecutive tokens for each of its threads, which first need to know
/// where the document begins that the threads before were in.
__global__ void find_starts(std::int64_t steps, std::int64_t end, const std::int32_t* tokens,
                            std::int32_t* starts) {
  __shared__ std::int32_t last[kThreads];  // behind the last end of a document among each thread's tokens
  tokens += blockIdx.x * steps;
  starts += blockIdx.x * steps;
  const std::int64_t each = (steps + kThreads - 1) / kThreads, first = threadIdx.x * each;
  const std::int64_t behind = first + each < steps ? first + each : steps;
  std::int32_t start = 0;
  for (std::int64_t s = first; s < behind; ++s)
    if (tokens[s] == end) start = static_cast<std::int32_t>(s) + 1;
  last[threadIdx.x] = start;
  __syncthreads();
  start = 0;
  for (int t = static_cast<int>(threadIdx.x) - 1; t >= 0 && start == 0; --t) start = last[t];
  for (std::int64_t s = first; s < behind; ++s) {
    starts[s] = start;
    if (tokens[s] == end) start = static_cast<std::int32_t>(s) + 1;
  }
}

}  // namespace

std::unique_ptr<Kernel> document_starts_cuda(Device&, const KernelShape& shape) {
  if (!types_match(shape, "i->i")) return nullptr;
  const std::int64_t batch = shape.operands[0].shape[0], steps = shape.operands[0].shape[1];
  const std::int64_t end = shape.attributes.integer("end");
  return cuda_kernel([=](const KernelCall& call, cudaStream_t stream) {
    launch(stream, blocks_of(batch), kThreads, find_starts, steps, end, call.operand<std::int32_t>(0),
           call.result<std::int32_t>(0));
  });
}

}  // namespace alpa::ops
