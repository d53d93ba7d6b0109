# ALPA_CUDA: AUTO (default) takes CUDA where nvcc, cuBLASLt and NCCL are found; ON requires them; OFF leaves them out.
# Without CUDA the files ending in _no_cuda are built instead, and every command says so when asked for a GPU.
#
# The runtime is linked statically, cuBLASLt and NCCL are found by name when a GPU is used (device/shared_library_cuda.h):
# one build runs on machines with and without them. CMAKE_CUDA_ARCHITECTURES: 90 (H100, H200) unless set.
set(ALPA_WITH_CUDA "AUTO" CACHE STRING "Build the CUDA and NCCL backends: AUTO, ON or OFF")
set(ALPA_CUDA OFF)
if(NOT ALPA_WITH_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12 QUIET)
  if(CUDAToolkit_FOUND)
    find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  if(CUDAToolkit_FOUND AND CUBLASLT_INCLUDE_DIR AND NCCL_INCLUDE_DIR)
    set(ALPA_CUDA ON)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    enable_language(CUDA)
    add_library(alpa_cuda_toolkit INTERFACE)
    target_include_directories(alpa_cuda_toolkit SYSTEM INTERFACE ${CUBLASLT_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
    target_link_libraries(alpa_cuda_toolkit INTERFACE CUDA::cudart_static ${CMAKE_DL_LIBS})
  elseif(ALPA_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ALPA_WITH_CUDA=ON, but nvcc, or the headers of cuBLASLt or NCCL were not found")
  endif()
endif()
message(STATUS "CUDA backend: ${ALPA_CUDA}")
