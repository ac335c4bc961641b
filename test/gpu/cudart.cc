/* libcudart.so, or libamdhip64.so: the 58 functions that ggml-cuda calls, and those that a recorder may. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#ifdef HIP
#include "hip.h"
#endif
#include "abi.h"
#include "bed.h"

#define API extern "C" __attribute__((visibility("default"))) int

using namespace bed;

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_MEMORY = 2, NO_DEVICE = 100, INVALID_HANDLE = 400, UPDATE_FAILURE = 910 };
/* Of CUPTI's list of runtime calls (cupti_runtime_cbid.h). */
enum { CALL_MEMCPY = 41, CALL_MEMSET = 51, CALL_PEER = 161, CALL_COOPERATIVE = 269, CALL_GRAPH = 311, CALL_EX = 430, CALL_KERNEL = 505 };

static thread_local int latest_error;

static int result(int error) {
    if (error) latest_error = error;
    return error;
}

/* ---- Kernels ---- */

static std::map<const void *, std::string> & functions() {
    static auto * names = new std::map<const void *, std::string>;
    return *names;
}

extern "C" __attribute__((visibility("default"))) void ** __cudaRegisterFatBinary(void * binary) {
    static void * handle;
    handle = binary;
    return &handle;
}
API __cudaRegisterFatBinaryEnd(void **) { return SUCCESS; }
API __cudaUnregisterFatBinary(void **) { return SUCCESS; }
API __cudaRegisterFunction(void **, const char * host, char *, const char * name, int, void *, void *, void *, void *, int *) {
    functions()[host] = name;
    return SUCCESS;
}
API __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) { return SUCCESS; }

struct Configuration {
    Dim3 grid, block;
    size_t shared;
    void * stream;
};
static thread_local std::vector<Configuration> configurations;

API __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared, void * stream) {
    configurations.push_back({grid, block, shared, stream});
    return SUCCESS;
}

API __cudaPopCallConfiguration(Dim3 * grid, Dim3 * block, size_t * shared, void ** stream) {
    const Configuration last = configurations.back();
    configurations.pop_back();
    *grid = last.grid;
    *block = last.block;
    *shared = last.shared;
    *stream = last.stream;
    return SUCCESS;
}

API __cudaGetKernel(const void ** kernel, const void * host) {
    *kernel = host;
    return SUCCESS;
}

static int start(const void * function, Dim3 grid, Dim3 block, void ** arguments, void * stream) {
    const auto found = functions().find(function);
    const uint32_t of_grid[] = {grid.x, grid.y, grid.z}, of_block[] = {block.x, block.y, block.z};
    return result(submit(stream_of(stream), kernel(found == functions().end() ? "unknown" : found->second, of_grid, of_block, arguments)));
}

API __cudaLaunchKernel(const void * kernel, Dim3 grid, Dim3 block, void ** arguments, size_t, void * stream) {
    const Call call(CALL_KERNEL);
    return start(kernel, grid, block, arguments, stream);
}

#ifndef HIP
/* Its name in programs that are compiled for CUDA 12. */
API cudaLaunchKernel(const void * kernel, Dim3 grid, Dim3 block, void ** arguments, size_t shared, void * stream) {
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
#endif

API cudaLaunchKernelExC(const LaunchConfig * config, const void * function, void ** arguments) {
    const Call call(CALL_EX);
    return start(function, config->grid, config->block, arguments, config->stream);
}

#ifdef HIP
API hipMemAdvise(const void *, size_t, int, int) { return SUCCESS; }

extern "C" __attribute__((visibility("default"))) const char * hipKernelNameRefByPtr(const void * host, void *) {
    const auto found = functions().find(host);
    return found == functions().end() ? nullptr : found->second.c_str();
}
#endif

API cudaLaunchCooperativeKernel(const void * function, Dim3 grid, Dim3 block, void ** arguments, size_t, void * stream) {
    const Call call(CALL_COOPERATIVE);
    return start(function, grid, block, arguments, stream);
}

API cudaFuncGetAttributes(FunctionAttributes * attributes, const void *) {
    *attributes = {};
    attributes->threads_max = 1024;
    attributes->registers = 64;
    attributes->ptx_version = attributes->binary_version = capability();
    attributes->dynamic_shared_max = 99 << 10;
    return SUCCESS;
}
API cudaFuncSetAttribute(const void *, int, int) { return SUCCESS; }
API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int * blocks, const void *, int, size_t, unsigned) {
    *blocks = 2;
    return SUCCESS;
}

/* ---- Devices ---- */

API cudaGetDeviceCount(int * count) {
    *count = devices();
    return *count ? SUCCESS : result(NO_DEVICE);
}
API cudaSetDevice(int id) {
    if (id < 0 || id >= devices()) return result(101); /* cudaErrorInvalidDevice */
    device() = id;
    return SUCCESS;
}
API cudaGetDevice(int * id) {
    *id = device();
    return SUCCESS;
}
API cudaSetDeviceFlags(unsigned) { return SUCCESS; }

static const size_t MEMORY = 8ull << 30;

#if CUDA < 13 && !defined(HIP)
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#endif
API cudaGetDeviceProperties(char * properties, int id) {
    memset(properties, 0, PROPERTY_BYTES);
    const auto put = [&](Property at, auto value) { memcpy(properties + at, &value, sizeof(value)); };
    snprintf(properties + PROPERTY_NAME, 256, "Test bed GPU %d", id);
    properties[PROPERTY_UUID] = (char) (id + 1);
    put(PROPERTY_MEMORY, MEMORY);
    put(PROPERTY_SHARED_PER_BLOCK, (size_t) 48 << 10);
    put(PROPERTY_WARP, 32);
    put(PROPERTY_THREADS_PER_BLOCK, 1024);
    put(PROPERTY_GRID, 0x7fffffff);
    put((Property) (PROPERTY_GRID + 4), 65535);
    put((Property) (PROPERTY_GRID + 8), 65535);
    put(PROPERTY_MAJOR, capability() / 10);
    put(PROPERTY_MINOR, capability() % 10);
    put(PROPERTY_PROCESSORS, 32);
    put(PROPERTY_MAPS_HOST, 1);
    put(PROPERTY_BUS, 1 + id);
    put(PROPERTY_L2, 4 << 20);
    put(PROPERTY_THREADS_PER_PROCESSOR, 1536);
    put(PROPERTY_SHARED_PER_PROCESSOR, (size_t) 100 << 10);
    put(PROPERTY_COOPERATIVE, 1);
    put(PROPERTY_SHARED_OPTIN, (size_t) 99 << 10);
    put(PROPERTY_BLOCKS_PER_PROCESSOR, 16);
#ifdef HIP
    strncpy(properties + PROPERTY_ARCHITECTURE, architecture(), PROPERTY_BYTES - PROPERTY_ARCHITECTURE);
#endif
    return SUCCESS;
}

API cudaDeviceGetAttribute(int * value, int attribute, int) {
#ifdef HIP
    static const std::map<int, int> values; /* HIP's attributes have other numbers: it has none of those that ggml asks for */
#else
    static const std::map<int, int> values = {{16, 32}, {10, 32}, {75, capability() / 10}, {76, capability() % 10}, {97, 99 << 10}, {95, 1}};
#endif
    const auto found = values.find(attribute);
    *value = found == values.end() ? 0 : found->second;
    return SUCCESS;
}
API cudaDeviceGetPCIBusId(char * text, int length, int id) {
    snprintf(text, (size_t) length, "0000:%02x:00.0", 1 + id);
    return SUCCESS;
}
API cudaDeviceCanAccessPeer(int * can, int, int) {
    *can = 1;
    return SUCCESS;
}
API cudaDeviceEnablePeerAccess(int, unsigned) { return SUCCESS; }
API cudaDeviceDisablePeerAccess(int) { return SUCCESS; }

static int lost() {
    return has_fault("device-lost") ? result(719) : SUCCESS;
}

static std::mutex streams_mutex;
static std::vector<Stream *> & streams() {
    static auto * all = new std::vector<Stream *>;
    return *all;
}

API cudaDeviceSynchronize() {
    uint64_t last = stream_of(nullptr)->end;
    {
        const std::lock_guard<std::mutex> lock(streams_mutex);
        for (const Stream * stream : streams()) if (stream->device == device() && stream->end > last) last = stream->end;
    }
    wait_until(last);
    return SUCCESS;
}

API cudaGetLastError() {
    const int error = latest_error;
    latest_error = SUCCESS;
    return error;
}
API cudaPeekAtLastError() { return latest_error; }
extern "C" __attribute__((visibility("default"))) const char * cudaGetErrorString(int error) {
    return error == SUCCESS ? "no error" : error == 719 ? "unspecified launch failure" : error == NO_DEVICE ? "no CUDA-capable device is detected" : "an error of the test bed";
}
extern "C" __attribute__((visibility("default"))) const char * cudaGetErrorName(int error) {
    return error == SUCCESS ? "cudaSuccess" : "cudaErrorOfTestBed";
}
API cudaRuntimeGetVersion(int * version) {
    *version = CUDA * 1000;
    return SUCCESS;
}
API cudaDriverGetVersion(int * version) {
    *version = CUDA * 1000;
    return SUCCESS;
}

/* ---- Memory ---- */

static int allocate(void ** pointer, size_t size) {
    *pointer = nullptr;
    return posix_memalign(pointer, 256, size ? size : 1) ? result(NO_MEMORY) : SUCCESS;
}
API cudaMalloc(void ** pointer, size_t size) { return size > MEMORY ? result(NO_MEMORY) : allocate(pointer, size); }
API cudaMallocManaged(void ** pointer, size_t size, unsigned) { return allocate(pointer, size); }
API cudaMallocHost(void ** pointer, size_t size) { return allocate(pointer, size); }
API cudaHostAlloc(void ** pointer, size_t size, unsigned) { return allocate(pointer, size); }
API cudaHostGetDevicePointer(void ** pointer, void * host, unsigned) {
    *pointer = host;
    return SUCCESS;
}
API cudaHostRegister(void *, size_t, unsigned) { return SUCCESS; }
API cudaHostUnregister(void *) { return SUCCESS; }
API cudaFree(void * pointer) {
    free(pointer);
    return SUCCESS;
}
API cudaFreeHost(void * pointer) {
    free(pointer);
    return SUCCESS;
}
API cudaMemGetInfo(size_t * available, size_t * total) {
    *available = MEMORY - (256u << 20);
    *total = MEMORY;
    return SUCCESS;
}

API cudaMemcpyAsync(void * to, const void * from, size_t size, int kind, void * stream) {
    const Call call(CALL_MEMCPY);
    memmove(to, from, size);
    return result(submit(stream_of(stream), copy(kind, size)));
}
API cudaMemcpy2DAsync(void * to, size_t to_pitch, const void * from, size_t from_pitch, size_t width, size_t height, int kind, void * stream) {
    const Call call(CALL_MEMCPY);
    for (size_t i = 0; i < height; i++) memmove((char *) to + i * to_pitch, (const char *) from + i * from_pitch, width);
    return result(submit(stream_of(stream), copy(kind, width * height)));
}
API cudaMemcpyPeerAsync(void * to, int, const void * from, int, size_t size, void * stream) {
    const Call call(CALL_PEER);
    memmove(to, from, size);
    return result(submit(stream_of(stream), copy(10, size))); /* CUPTI_ACTIVITY_MEMCPY_KIND_PTOP */
}
API cudaMemcpy3DPeerAsync(const CopyBox * box, void * stream) {
    const Call call(CALL_PEER);
    for (size_t i = 0; i < box->height; i++) memmove(box->to.at + i * box->to.pitch, box->from.at + i * box->from.pitch, box->width);
    return result(submit(stream_of(stream), copy(10, box->width * box->height * box->depth)));
}
static int set(void * to, int value, size_t size, void * stream) {
    const Call call(CALL_MEMSET);
    memset(to, value, size);
    return result(submit(stream_of(stream), fill(size)));
}
API cudaMemsetAsync(void * to, int value, size_t size, void * stream) { return set(to, value, size, stream); }
API cudaMemset(void * to, int value, size_t size) { return set(to, value, size, nullptr); }

/* ---- Streams and events ---- */

API cudaStreamCreateWithFlags(void ** stream, unsigned) {
    Stream * created = new_stream();
    *stream = created;
    const std::lock_guard<std::mutex> lock(streams_mutex);
    streams().push_back(created);
    return SUCCESS;
}
API cudaStreamDestroy(void *) { return SUCCESS; } /* kept: cudaDeviceSynchronize reads it */
API cudaStreamSynchronize(void * stream) {
    wait_until(stream_of(stream)->end);
    return lost();
}
API cudaStreamWaitEvent(void * stream, Event * event, unsigned) {
    wait(stream_of(stream), event);
    return SUCCESS;
}
API cudaEventCreateWithFlags(Event ** event, unsigned) {
    *event = new Event;
    return SUCCESS;
}
API cudaEventCreate(Event ** event) { return cudaEventCreateWithFlags(event, 0); }
API cudaEventDestroy(Event * event) {
    delete event;
    return SUCCESS;
}
API cudaEventRecord(Event * event, void * stream) {
    record(event, stream_of(stream));
    return SUCCESS;
}
/* 1: cudaEventRecordExternal, of no use but in a capture. */
API cudaEventRecordWithFlags(Event * event, void * stream, unsigned flags) { return record(event, stream_of(stream), flags == 1) ? SUCCESS : result(INVALID_VALUE); }
API cudaEventQuery(Event * event) { return event->time <= now() ? SUCCESS : result(600); /* cudaErrorNotReady */ }
API cudaThreadExchangeStreamCaptureMode(int * mode) {
    static thread_local int current; /* cudaStreamCaptureModeGlobal */
    std::swap(current, *mode);
    return SUCCESS;
}
API cudaEventSynchronize(Event * event) {
    wait_until(event->time);
    return SUCCESS;
}
API cudaEventElapsedTime(float * ms, const Event * from, const Event * to) {
    if (!from->time || !to->time) return result(INVALID_HANDLE);
    *ms = (float) ((double) (int64_t) (to->time - from->time) / 1e6);
    return SUCCESS;
}

/* ---- Graphs ---- */

API cudaStreamBeginCapture(void * stream, int) { return result(begin_capture(stream_of(stream))); }
API cudaStreamEndCapture(void * stream, Graph ** graph) { return result(end_capture(stream_of(stream), graph)); }
API cudaStreamIsCapturing(void * stream, int * status) {
    *status = stream_of(stream)->capture ? 1 : 0;
    return SUCCESS;
}
API cudaStreamGetCaptureInfo(void * handle, int * status, unsigned long long * id, Graph ** graph, const void ** dependencies, const void ** edges, size_t * count) {
    Stream * stream = stream_of(handle);
    *status = stream->capture ? 1 : 0;
    if (!stream->capture) return SUCCESS;
    static thread_local std::vector<const Node *> nodes;
    nodes.clear();
    for (const uint32_t i : stream->last) nodes.push_back(&stream->capture->graph->nodes[i]);
    if (id) *id = stream->capture->graph->id;
    if (graph) *graph = stream->capture->graph;
    if (dependencies) *dependencies = nodes.data();
    if (edges) *edges = nullptr;
    if (count) *count = nodes.size();
    return SUCCESS;
}
API cudaGraphInstantiate(Graph ** exec, const Graph * graph, unsigned long long) {
    *exec = clone(*graph);
    return SUCCESS;
}
#ifdef HIP
API cudaGraphExecUpdate(Graph * exec, const Graph * graph, void ** error_node, int * outcome) {
    *error_node = nullptr;
    const bool is_done = update(*exec, *graph);
    *outcome = is_done ? 0 : 1;
    return is_done ? SUCCESS : result(UPDATE_FAILURE);
}
#else
API cudaGraphExecUpdate(Graph * exec, const Graph * graph, UpdateResult * outcome) {
    *outcome = {};
    const bool is_done = update(*exec, *graph);
    outcome->result = is_done ? 0 : 1;
    return is_done ? SUCCESS : result(UPDATE_FAILURE);
}
#endif
API cudaGraphLaunch(const Graph * exec, void * stream) {
    const Call call(CALL_GRAPH);
    return result(launch(stream_of(stream), *exec));
}
API cudaGraphDestroy(Graph * graph) {
    delete graph;
    return SUCCESS;
}
API cudaGraphExecDestroy(Graph * exec) {
    delete exec;
    return SUCCESS;
}
API cudaGraphGetNodes(const Graph * graph, const void ** nodes, size_t * count) {
    for (size_t i = 0; nodes && i < graph->nodes.size() && i < *count; i++) nodes[i] = &graph->nodes[i];
    *count = graph->nodes.size();
    return SUCCESS;
}
/* Of older versions of ggml-cuda, which look for kernels whose parameters they change: no function is one of these. */
API cudaGraphNodeGetType(const Node * node, int * type) {
    static const int types[] = {0, 1, 2, 5}; /* cudaGraphNodeTypeKernel, Memcpy, Memset, Empty */
    *type = types[node->work.kind];
    return SUCCESS;
}
API cudaGraphKernelNodeGetParams(const Node *, KernelParameters * parameters) {
    *parameters = {};
    return SUCCESS;
}
API cudaGraphKernelNodeSetParams(Node *, const KernelParameters *) { return SUCCESS; }
