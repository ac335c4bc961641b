/*
 * A driver of Vulkan that a test can make behave as few drivers do, and a program that uses it: timestamps of few bits that wrap around,
 * no calibrated timestamps, no reset of queries by the host, the functions of extensions instead of the core's. -DMODULE: the driver.
 * It runs command buffers while they are submitted, so that their times lie in the call.
 *
 *     vulkan-program BITS CALIBRATED BURST [WORK]
 *
 * submits to two queues in turn, some milliseconds apart, then BURST command buffers at once, then one more. WORK: what each of them
 * contains, c for a copy and d for a dispatch, each of which takes some microseconds.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../llama/stand-in.h"
#include "recorder/vulkan-api.h"

VkResult vkCreateInstance(const void * info, const void * allocator, VkInstance * instance);
PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char * name);
VkResult vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo * info, const void * allocator, VkDevice * device);
void vkDestroyDevice(VkDevice device, const void * allocator);
void vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue * queue);
VkResult vkCreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo * info, const void * allocator, VkCommandPool * pool);
VkResult vkAllocateCommandBuffers(VkDevice device, const VkCommandBufferAllocateInfo * info, VkCommandBuffer * buffers);
VkResult vkBeginCommandBuffer(VkCommandBuffer buffer, const VkCommandBufferBeginInfo * info);
VkResult vkEndCommandBuffer(VkCommandBuffer buffer);
VkResult vkWaitForFences(VkDevice device, uint32_t count, const VkFence * fences, VkBool32 all, uint64_t timeout);
void vkCmdDispatch(VkCommandBuffer buffer, uint32_t x, uint32_t y, uint32_t z);
void vkCmdCopyBuffer(VkCommandBuffer buffer, VkBuffer from, VkBuffer to, uint32_t count, const VkBufferCopy * regions);
PFN_vkVoidFunction vkGetDeviceProcAddr(VkDevice device, const char * name);

enum { BUFFERS_MAX = 2048, COMMANDS_MAX = 16, FAMILIES = 2, WORK_NS = 5000 };

#ifdef MODULE
/* A command buffer: the queries that it writes; without a pool, work. */
struct VkCommandBuffer_T { int count; uint64_t pools[COMMANDS_MAX]; uint32_t queries[COMMANDS_MAX]; };
struct pool { uint32_t count; uint64_t * ticks; uint8_t * is_reset; };

static struct VkCommandBuffer_T buffers_of_all[BUFFERS_MAX];
static int allocated, pools_made;
static char queues[FAMILIES], resets_by_host;

static uint64_t host_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

/* 8 ns per tick. */
static uint64_t ticks_at(uint64_t host) {
    const int bits = atoi(getenv("FAKE_BITS"));
    return (host / 8) & (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1);
}

int32_t llama_decode(struct llama_context * context, struct llama_batch batch) {
    return context && batch.n_tokens > 0 ? 0 : 1;
}

VkResult vkCreateInstance(const void * info, const void * allocator, VkInstance * instance) {
    (void) info, (void) allocator;
    *instance = (VkInstance) queues;
    return VK_SUCCESS;
}

VkResult vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo * info, const void * allocator, VkDevice * device) {
    (void) physical, (void) info, (void) allocator;
    *device = (VkDevice) queues;
    return VK_SUCCESS;
}

void vkDestroyDevice(VkDevice device, const void * allocator) {
    (void) device, (void) allocator;
}

void vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue * queue) {
    (void) device, (void) index;
    *queue = (VkQueue) &queues[family];
}

VkResult vkCreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo * info, const void * allocator, VkCommandPool * pool) {
    (void) device, (void) allocator;
    *pool = 1 + info->queueFamilyIndex;
    return VK_SUCCESS;
}

VkResult vkAllocateCommandBuffers(VkDevice device, const VkCommandBufferAllocateInfo * info, VkCommandBuffer * buffers) {
    (void) device;
    for (uint32_t i = 0; i < info->commandBufferCount; i++) buffers[i] = &buffers_of_all[allocated++];
    return VK_SUCCESS;
}

VkResult vkBeginCommandBuffer(VkCommandBuffer buffer, const VkCommandBufferBeginInfo * info) {
    (void) info;
    buffer->count = 0;
    return VK_SUCCESS;
}

VkResult vkEndCommandBuffer(VkCommandBuffer buffer) {
    (void) buffer;
    return VK_SUCCESS;
}

static VkResult submit(VkQueue queue, uint32_t count, const VkSubmitInfo2 * infos, VkFence fence) {
    (void) queue, (void) fence;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < infos[i].commandBufferInfoCount; k++) {
            const VkCommandBuffer buffer = infos[i].pCommandBufferInfos[k].commandBuffer;
            for (int at = 0; at < buffer->count; at++) {
                struct pool * pool = (struct pool *) (uintptr_t) buffer->pools[at];
                const uint64_t start = host_now();
                while (!pool && host_now() < start + WORK_NS) continue;
                if (!pool) continue;
                if (!pool->is_reset[buffer->queries[at]]) abort();
                pool->is_reset[buffer->queries[at]] = 0;
                pool->ticks[buffer->queries[at]] = ticks_at(start);
            }
        }
    }
    return VK_SUCCESS;
}

static VkResult wait_semaphores(VkDevice device, const void * info, uint64_t timeout) {
    (void) device, (void) info, (void) timeout;
    return VK_SUCCESS;
}

VkResult vkWaitForFences(VkDevice device, uint32_t count, const VkFence * fences, VkBool32 all, uint64_t timeout) {
    (void) device, (void) count, (void) fences, (void) all, (void) timeout;
    return VK_SUCCESS;
}

static VkResult create_query_pool(VkDevice device, const VkQueryPoolCreateInfo * info, const void * allocator, VkQueryPool * made) {
    (void) device, (void) allocator;
    if (getenv("FAKE_NO_POOLS")) return (VkResult) -2; /* VK_ERROR_OUT_OF_DEVICE_MEMORY */
    struct pool * pool = malloc(sizeof(*pool));
    *pool = (struct pool){info->queryCount, calloc(info->queryCount, 8), calloc(info->queryCount, 1)};
    *made = (VkQueryPool) (uintptr_t) pool;
    pools_made++;
    return VK_SUCCESS;
}

static void destroy_query_pool(VkDevice device, VkQueryPool pool, const void * allocator) {
    (void) device, (void) pool, (void) allocator;
    pools_made--;
}

static VkResult results(VkDevice device, VkQueryPool handle, uint32_t first, uint32_t count, size_t size, void * data, VkDeviceSize stride, VkFlags flags) {
    (void) device, (void) size, (void) stride, (void) flags;
    memcpy(data, ((struct pool *) (uintptr_t) handle)->ticks + first, 8 * count);
    return VK_SUCCESS;
}

static void write_timestamp(VkCommandBuffer buffer, VkFlags stage, VkQueryPool pool, uint32_t query) {
    (void) stage;
    if (buffer->count == COMMANDS_MAX) abort();
    buffer->pools[buffer->count] = pool;
    buffer->queries[buffer->count++] = query;
}

void vkCmdDispatch(VkCommandBuffer buffer, uint32_t x, uint32_t y, uint32_t z) {
    (void) x, (void) y, (void) z;
    write_timestamp(buffer, 0, 0, 0);
}

void vkCmdCopyBuffer(VkCommandBuffer buffer, VkBuffer from, VkBuffer to, uint32_t count, const VkBufferCopy * regions) {
    (void) from, (void) to, (void) count, (void) regions;
    write_timestamp(buffer, 0, 0, 0);
}

static void reset(VkQueryPool handle, uint32_t first, uint32_t count) {
    memset(((struct pool *) (uintptr_t) handle)->is_reset + first, 1, count);
}

static void reset_in_commands(VkCommandBuffer buffer, VkQueryPool pool, uint32_t first, uint32_t count) {
    (void) buffer;
    reset(pool, first, count);
}

static void reset_by_host(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count) {
    (void) device;
    resets_by_host = 1;
    reset(pool, first, count);
}

static VkResult calibrated(VkDevice device, uint32_t count, const void * infos, uint64_t * values, uint64_t * deviation) {
    (void) device, (void) count, (void) infos;
    values[1] = host_now();
    values[0] = ticks_at(values[1]);
    *deviation = 8;
    return VK_SUCCESS;
}

static VkResult domains(VkPhysicalDevice physical, uint32_t * count, VkTimeDomainEXT * of) {
    (void) physical;
    *count = 2;
    of[0] = VK_TIME_DOMAIN_DEVICE_EXT;
    of[1] = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
    return VK_SUCCESS;
}

static VkResult extensions(VkPhysicalDevice physical, const char * layer, uint32_t * count, VkExtensionProperties * of) {
    (void) physical, (void) layer;
    const int is_calibrated = atoi(getenv("FAKE_CALIBRATED"));
    *count = (uint32_t) is_calibrated;
    if (is_calibrated) strcpy(of[0].extensionName, "VK_EXT_calibrated_timestamps");
    return VK_SUCCESS;
}

static void properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties * of) {
    (void) physical;
    memset(of, 0, sizeof(*of));
    strcpy(of->deviceName, "Fake GPU");
    of->timestampPeriod = 8;
}

static void families(VkPhysicalDevice physical, uint32_t * count, VkQueueFamilyProperties * of) {
    (void) physical;
    *count = FAMILIES;
    const uint32_t bits = (uint32_t) atoi(getenv("FAKE_BITS"));
    for (int i = 0; i < FAMILIES; i++) of[i] = (VkQueueFamilyProperties){.queueFlags = VK_QUEUE_COMPUTE_BIT, .queueCount = 1, .timestampValidBits = bits};
}

static PFN_vkVoidFunction find(const char * name) {
    static const struct { const char * name; void * function; } known[] = {
        {"vkQueueSubmit2KHR", submit}, {"vkWaitSemaphoresKHR", wait_semaphores}, {"vkCreateQueryPool", create_query_pool},
        {"vkDestroyQueryPool", destroy_query_pool}, {"vkGetQueryPoolResults", results}, {"vkCmdWriteTimestamp", write_timestamp},
        {"vkCmdResetQueryPool", reset_in_commands}, {"vkResetQueryPool", reset_by_host}, {"vkGetCalibratedTimestampsEXT", calibrated},
        {"vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", domains}, {"vkEnumerateDeviceExtensionProperties", extensions},
        {"vkGetPhysicalDeviceProperties", properties}, {"vkGetPhysicalDeviceQueueFamilyProperties", families},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) if (strcmp(name, known[i].name) == 0) return known[i].function;
    return NULL;
}

PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char * name) {
    (void) instance;
    return find(name);
}

PFN_vkVoidFunction vkGetDeviceProcAddr(VkDevice device, const char * name) {
    (void) device;
    return find(name);
}

/* The memory that the process has, but not of files. */
static long memory_kb(void) {
    char line[256];
    long kb = 0;
    FILE * file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Anonymous: %ld", &kb);
    if (file) fclose(file);
    return kb;
}

/* Printed at the end: were queries reset by the host, how many pools are left, and how much memory is used? */
__attribute__((destructor)) static void print(void) {
    printf("{\"resetsByHost\":%d,\"poolsLeft\":%d,\"memoryKb\":%ld}\n", resets_by_host, pools_made, memory_kb());
}
#else
static VkDevice device;
static VkResult (*submit)(VkQueue, uint32_t, const VkSubmitInfo2 *, VkFence);

static const char * work = "";

static void record(VkCommandBuffer buffer) {
    vkBeginCommandBuffer(buffer, &(VkCommandBufferBeginInfo){.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT});
    for (const char * at = work; *at; at++) {
        if (*at == 'd') vkCmdDispatch(buffer, 1, 1, 1);
        else vkCmdCopyBuffer(buffer, 1, 2, 1, &(VkBufferCopy){.size = 64});
    }
    vkEndCommandBuffer(buffer);
}

static void submit_one(VkQueue queue, VkCommandBuffer buffer, VkFence fence) {
    const VkCommandBufferSubmitInfo of = {.commandBuffer = buffer};
    submit(queue, 1, &(VkSubmitInfo2){.commandBufferInfoCount = 1, .pCommandBufferInfos = &of}, fence);
}

int main(int count, char ** arguments) {
    if (count < 4) return 2;
    setenv("FAKE_BITS", arguments[1], 1);
    setenv("FAKE_CALIBRATED", arguments[2], 1);
    const int burst = atoi(arguments[3]);
    if (count > 4) work = arguments[4];
    int32_t tokens[1] = {1};
    VkInstance instance;
    VkQueue queues[FAMILIES];
    VkCommandPool pools[FAMILIES];
    static VkCommandBuffer buffers[FAMILIES][BUFFERS_MAX / FAMILIES];
    vkCreateInstance(NULL, NULL, &instance);
    vkCreateDevice((VkPhysicalDevice) instance, &(VkDeviceCreateInfo){0}, NULL, &device);
    *(void **) &submit = vkGetDeviceProcAddr(device, "vkQueueSubmit2KHR");
    VkResult (*wait)(VkDevice, const void *, uint64_t);
    *(void **) &wait = vkGetDeviceProcAddr(device, "vkWaitSemaphoresKHR");
    for (uint32_t i = 0; i < FAMILIES; i++) {
        vkGetDeviceQueue(device, i, 0, &queues[i]);
        vkCreateCommandPool(device, &(VkCommandPoolCreateInfo){.queueFamilyIndex = i}, NULL, &pools[i]);
        vkAllocateCommandBuffers(device, &(VkCommandBufferAllocateInfo){.commandPool = pools[i], .commandBufferCount = BUFFERS_MAX / FAMILIES}, buffers[i]);
    }
    if (llama_decode((void *) tokens, (struct llama_batch){.n_tokens = 1, .token = tokens})) return 1;
    for (int i = 0; i < 8; i++) {
        const VkFence fence = 1 + (VkFence) i;
        record(buffers[i % FAMILIES][0]);
        submit_one(queues[i % FAMILIES], buffers[i % FAMILIES][0], fence);
        wait(device, NULL, UINT64_MAX);
        vkWaitForFences(device, 1, &fence, 1, UINT64_MAX);
        nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
    }
    const VkFence last = 99;
    for (int i = 0; i < burst; i++) {
        const VkCommandBuffer buffer = buffers[i % FAMILIES][i / FAMILIES];
        record(buffer);
        submit_one(queues[0], buffer, i == burst - 1 ? last : 0);
    }
    if (burst) vkWaitForFences(device, 1, &last, 1, UINT64_MAX);
    record(buffers[1][0]);
    submit_one(queues[1], buffers[1][0], last);
    vkWaitForFences(device, 1, &last, 1, UINT64_MAX);
    vkDestroyDevice(device, NULL);
    return 0;
}
#endif
