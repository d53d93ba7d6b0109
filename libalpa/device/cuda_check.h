#pragma once
#include <cuda_runtime_api.h>

namespace alpa {

/// Throws Error(run_time) with CUDA's text unless `result` is success.
void check_cuda(cudaError_t result, const char* call);

}  // namespace alpa
