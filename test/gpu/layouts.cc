/* Compiled where the toolkit's headers are: what abi.h states is what they say. */
#include "abi.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>

#define SAME(ours, theirs) static_assert(offsetof ours == offsetof theirs, "offset")

static_assert(sizeof(LaunchConfig) == sizeof(cudaLaunchConfig_t), "size");
SAME((LaunchConfig, stream), (cudaLaunchConfig_t, stream));
SAME((LaunchConfig, attribute_count), (cudaLaunchConfig_t, numAttrs));
static_assert(sizeof(FunctionAttributes) == sizeof(cudaFuncAttributes), "size");
SAME((FunctionAttributes, ptx_version), (cudaFuncAttributes, ptxVersion));
SAME((FunctionAttributes, threads_max), (cudaFuncAttributes, maxThreadsPerBlock));
static_assert(sizeof(UpdateResult) == sizeof(cudaGraphExecUpdateResultInfo), "size");

static_assert(sizeof(CopyBox) == sizeof(cudaMemcpy3DPeerParms), "size");
SAME((CopyBox, from.at), (cudaMemcpy3DPeerParms, srcPtr.ptr));
SAME((CopyBox, to.at), (cudaMemcpy3DPeerParms, dstPtr.ptr));
SAME((CopyBox, width), (cudaMemcpy3DPeerParms, extent.width));
static_assert(sizeof(KernelParameters) == sizeof(cudaKernelNodeParams), "size");
SAME((KernelParameters, arguments), (cudaKernelNodeParams, kernelParams));

#if CUDART_VERSION / 1000 == CUDA
static_assert(PROPERTY_BYTES == sizeof(cudaDeviceProp), "size");
#define PROPERTY(ours, theirs) static_assert(PROPERTY_##ours == offsetof(cudaDeviceProp, theirs), "offset")
PROPERTY(UUID, uuid);
PROPERTY(MEMORY, totalGlobalMem);
PROPERTY(SHARED_PER_BLOCK, sharedMemPerBlock);
PROPERTY(WARP, warpSize);
PROPERTY(THREADS_PER_BLOCK, maxThreadsPerBlock);
PROPERTY(GRID, maxGridSize);
PROPERTY(MAJOR, major);
PROPERTY(MINOR, minor);
PROPERTY(PROCESSORS, multiProcessorCount);
PROPERTY(MAPS_HOST, canMapHostMemory);
PROPERTY(BUS, pciBusID);
PROPERTY(DEVICE, pciDeviceID);
PROPERTY(DOMAIN, pciDomainID);
PROPERTY(L2, l2CacheSize);
PROPERTY(THREADS_PER_PROCESSOR, maxThreadsPerMultiProcessor);
PROPERTY(SHARED_PER_PROCESSOR, sharedMemPerMultiprocessor);
PROPERTY(COOPERATIVE, cooperativeLaunch);
PROPERTY(SHARED_OPTIN, sharedMemPerBlockOptin);
PROPERTY(BLOCKS_PER_PROCESSOR, maxBlocksPerMultiProcessor);
#endif

static_assert(sizeof(ActivityKernel) == sizeof(CUpti_ActivityKernel10), "size");
SAME((ActivityKernel, start), (CUpti_ActivityKernel10, start));
SAME((ActivityKernel, device), (CUpti_ActivityKernel10, deviceId));
SAME((ActivityKernel, stream), (CUpti_ActivityKernel10, streamId));
SAME((ActivityKernel, grid), (CUpti_ActivityKernel10, gridX));
SAME((ActivityKernel, block), (CUpti_ActivityKernel10, blockX));
SAME((ActivityKernel, correlation), (CUpti_ActivityKernel10, correlationId));
SAME((ActivityKernel, name), (CUpti_ActivityKernel10, name));
SAME((ActivityKernel, node), (CUpti_ActivityKernel10, graphNodeId));
SAME((ActivityKernel, graph), (CUpti_ActivityKernel10, graphId));

static_assert(sizeof(ActivityCopy) == sizeof(CUpti_ActivityMemcpy6), "size");
SAME((ActivityCopy, bytes), (CUpti_ActivityMemcpy6, bytes));
SAME((ActivityCopy, stream), (CUpti_ActivityMemcpy6, streamId));
SAME((ActivityCopy, correlation), (CUpti_ActivityMemcpy6, correlationId));
SAME((ActivityCopy, node), (CUpti_ActivityMemcpy6, graphNodeId));

static_assert(sizeof(ActivityPeerCopy) == sizeof(CUpti_ActivityMemcpyPtoP4), "size");
SAME((ActivityPeerCopy, bytes), (CUpti_ActivityMemcpyPtoP4, bytes));
SAME((ActivityPeerCopy, stream), (CUpti_ActivityMemcpyPtoP4, streamId));
SAME((ActivityPeerCopy, correlation), (CUpti_ActivityMemcpyPtoP4, correlationId));
SAME((ActivityPeerCopy, node), (CUpti_ActivityMemcpyPtoP4, graphNodeId));

static_assert(sizeof(ActivityFill) == sizeof(CUpti_ActivityMemset4), "size");
SAME((ActivityFill, bytes), (CUpti_ActivityMemset4, bytes));
SAME((ActivityFill, stream), (CUpti_ActivityMemset4, streamId));
SAME((ActivityFill, correlation), (CUpti_ActivityMemset4, correlationId));
SAME((ActivityFill, node), (CUpti_ActivityMemset4, graphNodeId));

static_assert(sizeof(ActivityCall) == sizeof(CUpti_ActivityAPI), "size");
SAME((ActivityCall, correlation), (CUpti_ActivityAPI, correlationId));
static_assert(sizeof(ActivityExternal) == sizeof(CUpti_ActivityExternalCorrelation), "size");
SAME((ActivityExternal, correlation), (CUpti_ActivityExternalCorrelation, correlationId));

static_assert(sizeof(ResourceData) == sizeof(CUpti_ResourceData), "size");
SAME((ResourceData, descriptor), (CUpti_ResourceData, resourceDescriptor));
static_assert(sizeof(GraphData) == sizeof(CUpti_GraphData), "size");
SAME((GraphData, node), (CUpti_GraphData, node));
SAME((GraphData, exec), (CUpti_GraphData, graphExec));
