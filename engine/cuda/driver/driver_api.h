#pragma once

// Tested by: tests/unit/engine/cuda/driver/driver_test.cpp

#include <cstddef>
#include <cstdint>

/// The functions of NVIDIA's driver library that the engine calls, as the CUDA Driver API Reference Manual declares
/// them, with plain types in the place of its own, so that no CUDA header is needed.
namespace espalier::engine::cuda {

using DriverStatus = int;             ///< CUresult.
using DeviceAddress = std::uint64_t;  ///< CUdeviceptr.
using DriverHandle = void*;           ///< CUcontext, CUmodule, CUfunction, CUstream, CUevent, CUgraph, CUgraphExec.

/// CUipcMemHandle: how another process opens device memory.
struct IpcHandle {
  unsigned char bytes[64];
};

/// A row for each: our name, the library's, the parameters. All return a DriverStatus.
#define ESPALIER_DRIVER_FUNCTIONS(ROW)                                                                               \
  ROW(init, "cuInit", (unsigned flags))                                                                              \
  ROW(driver_version, "cuDriverGetVersion", (int* version))                                                          \
  ROW(error_name, "cuGetErrorName", (DriverStatus status, const char** name))                                        \
  ROW(error_text, "cuGetErrorString", (DriverStatus status, const char** text))                                      \
  ROW(device_count, "cuDeviceGetCount", (int* count))                                                                \
  ROW(device_get, "cuDeviceGet", (int* device, int ordinal))                                                         \
  ROW(device_name, "cuDeviceGetName", (char* name, int length, int device))                                          \
  ROW(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, int device))                             \
  ROW(can_access_peer, "cuDeviceCanAccessPeer", (int* can, int device, int peer))                                    \
  ROW(retain_context, "cuDevicePrimaryCtxRetain", (DriverHandle * context, int device))                              \
  ROW(release_context, "cuDevicePrimaryCtxRelease_v2", (int device))                                                 \
  ROW(set_context, "cuCtxSetCurrent", (DriverHandle context))                                                        \
  ROW(enable_peer_access, "cuCtxEnablePeerAccess", (DriverHandle peer, unsigned flags))                              \
  ROW(allocate, "cuMemAlloc_v2", (DeviceAddress * address, std::size_t bytes))                                       \
  ROW(free, "cuMemFree_v2", (DeviceAddress address))                                                                 \
  ROW(set_pointer_attribute, "cuPointerSetAttribute", (const void* value, int attribute, DeviceAddress address))     \
  ROW(export_range, "cuMemGetHandleForAddressRange",                                                                 \
      (void* handle, DeviceAddress address, std::size_t bytes, int kind, unsigned long long flags))                  \
  ROW(address_range, "cuMemGetAddressRange_v2", (DeviceAddress * begin, std::size_t * bytes, DeviceAddress address)) \
  ROW(make_ipc_handle, "cuIpcGetMemHandle", (IpcHandle * handle, DeviceAddress address))                             \
  ROW(open_ipc_handle, "cuIpcOpenMemHandle_v2", (DeviceAddress * address, IpcHandle handle, unsigned flags))         \
  ROW(close_ipc_handle, "cuIpcCloseMemHandle", (DeviceAddress address))                                              \
  ROW(register_host, "cuMemHostRegister_v2", (void* data, std::size_t bytes, unsigned flags))                        \
  ROW(unregister_host, "cuMemHostUnregister", (void* data))                                                          \
  ROW(allocate_host, "cuMemHostAlloc", (void** data, std::size_t bytes, unsigned flags))                             \
  ROW(free_host, "cuMemFreeHost", (void* data))                                                                      \
  ROW(fill, "cuMemsetD8Async", (DeviceAddress to, unsigned char value, std::size_t bytes, DriverHandle stream))      \
  ROW(copy, "cuMemcpyAsync", (DeviceAddress to, DeviceAddress from, std::size_t bytes, DriverHandle stream))         \
  ROW(copy_within, "cuMemcpyDtoDAsync_v2",                                                                           \
      (DeviceAddress to, DeviceAddress from, std::size_t bytes, DriverHandle stream))                                \
  ROW(copy_peer, "cuMemcpyPeerAsync",                                                                                \
      (DeviceAddress to, DriverHandle to_context, DeviceAddress from, DriverHandle from_context, std::size_t bytes,  \
       DriverHandle stream))                                                                                         \
  ROW(make_stream, "cuStreamCreate", (DriverHandle * stream, unsigned flags))                                        \
  ROW(destroy_stream, "cuStreamDestroy_v2", (DriverHandle stream))                                                   \
  ROW(query_stream, "cuStreamQuery", (DriverHandle stream))                                                          \
  ROW(await_stream, "cuStreamSynchronize", (DriverHandle stream))                                                    \
  ROW(await_value, "cuStreamWaitValue32_v2",                                                                         \
      (DriverHandle stream, DeviceAddress word, std::uint32_t value, unsigned flags))                                \
  ROW(make_event, "cuEventCreate", (DriverHandle * event, unsigned flags))                                           \
  ROW(destroy_event, "cuEventDestroy_v2", (DriverHandle event))                                                      \
  ROW(record_event, "cuEventRecord", (DriverHandle event, DriverHandle stream))                                      \
  ROW(query_event, "cuEventQuery", (DriverHandle event))                                                             \
  ROW(stream_wait, "cuStreamWaitEvent", (DriverHandle stream, DriverHandle event, unsigned flags))                   \
  ROW(is_capturing, "cuStreamIsCapturing", (DriverHandle stream, int* status))                                       \
  ROW(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int* mode))                                       \
  ROW(begin_capture, "cuStreamBeginCapture_v2", (DriverHandle stream, int mode))                                     \
  ROW(end_capture, "cuStreamEndCapture", (DriverHandle stream, DriverHandle * graph))                                \
  ROW(make_executable, "cuGraphInstantiateWithFlags",                                                                \
      (DriverHandle * executable, DriverHandle graph, unsigned long long flags))                                     \
  ROW(launch_graph, "cuGraphLaunch", (DriverHandle executable, DriverHandle stream))                                 \
  ROW(destroy_executable, "cuGraphExecDestroy", (DriverHandle executable))                                           \
  ROW(destroy_graph, "cuGraphDestroy", (DriverHandle graph))                                                         \
  ROW(load_module, "cuModuleLoadData", (DriverHandle * module, const void* image))                                   \
  ROW(unload_module, "cuModuleUnload", (DriverHandle module))                                                        \
  ROW(get_function, "cuModuleGetFunction", (DriverHandle * function, DriverHandle module, const char* name))         \
  ROW(function_attribute, "cuFuncGetAttribute", (int* value, int attribute, DriverHandle function))                  \
  ROW(resident_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                                \
      (int* blocks, DriverHandle function, int threads, std::size_t shared_memory))                                  \
  ROW(launch, "cuLaunchKernel",                                                                                      \
      (DriverHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_memory, DriverHandle stream, void** parameters, void** extra))              \
  ROW(launch_cooperative, "cuLaunchCooperativeKernel",                                                               \
      (DriverHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_memory, DriverHandle stream, void** parameters))

/// The library's functions.
struct DriverApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define ESPALIER_ROW(name, symbol, parameters) DriverStatus(*name) parameters = nullptr;
  ESPALIER_DRIVER_FUNCTIONS(ESPALIER_ROW)
#undef ESPALIER_ROW
};

inline constexpr DriverStatus status_success = 0;
inline constexpr DriverStatus status_not_ready = 600;
inline constexpr DriverStatus status_already_mapped = 208;
inline constexpr DriverStatus status_peer_access_already_enabled = 704;

/// CUdevice_attribute.
inline constexpr int attribute_multiprocessors = 16;
inline constexpr int attribute_pci_bus = 33;
inline constexpr int attribute_pci_device = 34;
inline constexpr int attribute_pci_domain = 50;
inline constexpr int attribute_major = 75;
inline constexpr int attribute_minor = 76;
inline constexpr int attribute_pageable_memory = 88;  ///< Kernels reach all memory of the process.
inline constexpr int attribute_cooperative_launch = 95;
inline constexpr int attribute_dma_buf = 124;

inline constexpr int capture_is_active = 1;     ///< CUstreamCaptureStatus.
inline constexpr int capture_mode_relaxed = 2;  ///< CUstreamCaptureMode: this thread may do what others may not.
inline constexpr int function_attribute_ptx_version = 5;  ///< CUfunction_attribute: 90 for compute_90.
inline constexpr unsigned ipc_lazy_peer_access = 1;       ///< CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.
/// CU_MEMHOSTALLOC_ and CU_MEMHOSTREGISTER_: PORTABLE | DEVICEMAP.
inline constexpr unsigned portable_and_mapped = 1 | 2;
inline constexpr int pointer_attribute_sync_memops = 6;  ///< CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
inline constexpr int range_handle_dma_buf = 1;           ///< CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD.

}  // namespace espalier::engine::cuda
