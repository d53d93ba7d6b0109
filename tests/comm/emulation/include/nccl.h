#pragma once
#include <cstddef>

#include "tests/kernels/emulation/include/cuda_runtime_api.h"

// The part of NCCL that is called, between threads of one process (emulated_nccl.cpp).

using ncclComm_t = struct ncclComm*;
struct ncclConfig_t {};
struct ncclUniqueId {
  char internal[128];
};
enum ncclResult_t {
  ncclSuccess = 0,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum ncclDataType_t { ncclInt8, ncclInt32, ncclFloat16, ncclFloat32, ncclBfloat16, ncclNumTypes };
enum ncclRedOp_t { ncclSum, ncclMax };
constexpr int NCCL_SPLIT_NOCOLOR = -1;

ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int ranks, ncclUniqueId, int rank);
ncclResult_t ncclCommSplit(ncclComm_t, int color, int key, ncclComm_t* part, ncclConfig_t*);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t*);
ncclResult_t ncclCommCount(ncclComm_t, int*);
ncclResult_t ncclCommUserRank(ncclComm_t, int*);
const char* ncclGetErrorString(ncclResult_t);
const char* ncclGetLastError(ncclComm_t);
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t, cudaStream_t);
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t, cudaStream_t);
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t, int root,
                        ncclComm_t, cudaStream_t);
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t, int root,
                           ncclComm_t, cudaStream_t);
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t, int peer, ncclComm_t,
                      cudaStream_t);
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t, int peer, ncclComm_t, cudaStream_t);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
