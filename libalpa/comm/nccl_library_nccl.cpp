// The functions of NCCL that are called here. They are not linked, but found in the library of the machine
// when first called (SharedLibrary); one that is missing in this list is missing to the linker.
#include <nccl.h>

#include "libalpa/device/shared_library_cuda.h"

namespace {

const alpa::SharedLibrary& nccl() {
  static const alpa::SharedLibrary library("libnccl.so.2");
  return library;
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { return nccl().call<ncclGetUniqueId>("ncclGetUniqueId", id); }
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return nccl().call<ncclCommInitRank>("ncclCommInitRank", comm, ranks, id, rank);
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config) {
  return nccl().call<ncclCommSplit>("ncclCommSplit", comm, color, key, part, config);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return nccl().call<ncclCommDestroy>("ncclCommDestroy", comm);
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return nccl().call<ncclCommAbort>("ncclCommAbort", comm); }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  return nccl().call<ncclCommGetAsyncError>("ncclCommGetAsyncError", comm, state);
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return nccl().call<ncclCommCount>("ncclCommCount", comm, count);
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return nccl().call<ncclCommUserRank>("ncclCommUserRank", comm, rank);
}
const char* ncclGetErrorString(ncclResult_t result) {
  return nccl().call<ncclGetErrorString>("ncclGetErrorString", result);
}
const char* ncclGetLastError(ncclComm_t comm) {
  return nccl().call<ncclGetLastError>("ncclGetLastError", comm);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return nccl().call<ncclAllReduce>("ncclAllReduce", from, to, count, type, operation, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return nccl().call<ncclAllGather>("ncclAllGather", from, to, count, type, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return nccl().call<ncclReduceScatter>("ncclReduceScatter", from, to, count, type, operation, comm, stream);
}
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return nccl().call<ncclReduce>("ncclReduce", from, to, count, type, operation, root, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return nccl().call<ncclBroadcast>("ncclBroadcast", from, to, count, type, root, comm, stream);
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return nccl().call<ncclSend>("ncclSend", from, count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return nccl().call<ncclRecv>("ncclRecv", to, count, type, peer, comm, stream);
}
ncclResult_t ncclGroupStart() { return nccl().call<ncclGroupStart>("ncclGroupStart"); }
ncclResult_t ncclGroupEnd() { return nccl().call<ncclGroupEnd>("ncclGroupEnd"); }
