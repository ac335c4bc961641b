/*
 * The functions of Vulkan that the recorder interposes. A program is linked to them, or finds them by a function (vulkan-names.c).
 * Each calls the real function with the same arguments, and returns its result.
 */
#include "common/hold.h"
#include "recorder/vulkan-api.h"

#include "common/clock.h"
#include "recorder/calls.h"
#include "recorder/hook.h"
#include "recorder/recorder.h"
#include "recorder/vulkan-devices.h"
#include "recorder/vulkan-names.h"
#include "recorder/vulkan-work.h"

enum { EXTENSIONS_MAX = 512 };

typedef VkResult vulkan_submit2(VkQueue, uint32_t, const VkSubmitInfo2 *, VkFence);
typedef VkResult vulkan_wait_semaphores(VkDevice, const void *, uint64_t);

/* ---- Devices ---- */

static bool can_calibrate(VkPhysicalDevice physical) {
    VkResult (*domains_of)(VkPhysicalDevice, uint32_t *, VkTimeDomainEXT *);
    *(void **) &domains_of = vulkan_function("vkGetPhysicalDeviceCalibrateableTimeDomainsEXT");
    VkTimeDomainEXT domains[16];
    uint32_t count = sizeof(domains) / sizeof(*domains);
    if (!domains_of || domains_of(physical, &count, domains) < 0) return false;
    bool has_device = false, has_host = false;
    for (uint32_t i = 0; i < count; i++) {
        has_device |= domains[i] == VK_TIME_DOMAIN_DEVICE_EXT;
        has_host |= domains[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
    }
    return has_device && has_host;
}

static const char calibrated_timestamps[] = "VK_EXT_calibrated_timestamps";

static bool has_extension(VkPhysicalDevice physical, const char * name) {
    VkResult (*extensions_of)(VkPhysicalDevice, const char *, uint32_t *, VkExtensionProperties *);
    *(void **) &extensions_of = vulkan_function("vkEnumerateDeviceExtensionProperties");
    static VkExtensionProperties extensions[EXTENSIONS_MAX];
    uint32_t count = EXTENSIONS_MAX;
    if (!extensions_of || extensions_of(physical, NULL, &count, extensions) < 0) return false;
    for (uint32_t i = 0; i < count; i++) if (strcmp(extensions[i].extensionName, name) == 0) return true;
    return false;
}

static bool resets_on_host(const VkDeviceCreateInfo * info) {
    for (const VkBaseInStructure * at = info->pNext; at; at = at->pNext) {
        const void * structure = at;
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
            if (((const VkPhysicalDeviceVulkan12Features *) structure)->hostQueryReset) return true;
        } else if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES) {
            if (((const VkPhysicalDeviceHostQueryResetFeatures *) structure)->hostQueryReset) return true;
        }
    }
    return false;
}

#define LOAD(find, handle, device, name) *(void **) &(device)->call.name = find(handle, #name)

static void describe(struct vulkan_device * device, VkPhysicalDevice physical, const void * caller) {
    PFN_vkVoidFunction (*find)(VkDevice, const char *);
    *(void **) &find = library_resolve("vkGetDeviceProcAddr", caller);
    LOAD(find, device->handle, device, vkCreateQueryPool);
    LOAD(find, device->handle, device, vkDestroyQueryPool);
    LOAD(find, device->handle, device, vkGetQueryPoolResults);
    LOAD(find, device->handle, device, vkCmdWriteTimestamp);
    LOAD(find, device->handle, device, vkCmdResetQueryPool);
    LOAD(find, device->handle, device, vkResetQueryPool);
    LOAD(find, device->handle, device, vkGetCalibratedTimestampsEXT);
    if (!device->call.vkGetCalibratedTimestampsEXT) device->has_calibration = false;
    if (!device->call.vkResetQueryPool) device->resets_on_host = false;
    void (*get_properties)(VkPhysicalDevice, VkPhysicalDeviceProperties *);
    void (*get_families)(VkPhysicalDevice, uint32_t *, VkQueueFamilyProperties *);
    *(void **) &get_properties = vulkan_function("vkGetPhysicalDeviceProperties");
    *(void **) &get_families = vulkan_function("vkGetPhysicalDeviceQueueFamilyProperties");
    VkPhysicalDeviceProperties properties;
    uint32_t count = FAMILIES_MAX;
    get_properties(physical, &properties);
    get_families(physical, &count, device->families);
    memcpy(device->name, properties.deviceName, sizeof(device->name));
    device->period = (double) properties.timestampPeriod;
    /* Mesa's driver for the CPU completes a dispatch before the next command (llvmpipe_launch_grid), and wakes threads if a timestamp waits for it. */
    const bool is_in_order = strncmp(properties.deviceName, "llvmpipe", strlen("llvmpipe")) == 0;
    device->stage = is_in_order ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
    for (uint32_t i = 0; i < count; i++) {
        if (device->families[i].timestampValidBits > device->bits) device->bits = device->families[i].timestampValidBits;
    }
    struct ggtrace * log = device->has_calibration ? NULL : recorder_log();
    if (log) ggtrace_fact(log, "gpu.missing", "times of a GPU: it has no VK_EXT_calibrated_timestamps with CLOCK_MONOTONIC; only the host's times of submissions are recorded");
}

/* Enables VK_EXT_calibrated_timestamps for the recorder, which changes nothing for the program. */
HOOK(VkResult, vkCreateDevice, VkPhysicalDevice physical, const VkDeviceCreateInfo * info, const void * allocator, VkDevice * created) {
    REAL(vkCreateDevice);
    if (!vulkan_is_wanted() || !vulkan_function("vkEnumerateDeviceExtensionProperties")) return real(physical, info, allocator, created);
    VkDeviceCreateInfo changed = *info;
    const char * names[EXTENSIONS_MAX];
    HOLD(&vulkan_lock);
    bool is_enabled = false, can = info->enabledExtensionCount < EXTENSIONS_MAX && has_extension(physical, calibrated_timestamps);
    can = can && can_calibrate(physical);
    for (uint32_t i = 0; can && i < info->enabledExtensionCount; i++) {
        names[i] = info->ppEnabledExtensionNames[i];
        is_enabled |= strcmp(names[i], calibrated_timestamps) == 0;
    }
    if (can && !is_enabled) {
        names[changed.enabledExtensionCount++] = calibrated_timestamps;
        changed.ppEnabledExtensionNames = names;
    }
    const VkResult result = real(physical, &changed, allocator, created);
    struct vulkan_device * device = result == VK_SUCCESS ? vulkan_device_add(*created) : NULL;
    if (device) {
        device->has_calibration = can;
        device->resets_on_host = resets_on_host(info);
        describe(device, physical, CALLER);
    }
    return result;
}

HOOK(void, vkDestroyDevice, VkDevice handle, const void * allocator) {
    REAL(vkDestroyDevice);
    if (handle) vulkan_work_idle(handle, NULL, vulkan_work_latest(), clock_now());
    pthread_mutex_lock(&vulkan_lock);
    struct vulkan_device * device = vulkan_device_of(handle);
    if (handle && device) vulkan_device_forget(device);
    pthread_mutex_unlock(&vulkan_lock);
    real(handle, allocator);
}

static void note_queue(VkDevice device, VkQueue queue, uint32_t family, uint32_t index) {
    HOLD(&vulkan_lock);
    vulkan_queue_note(device, queue, family, index);
}

HOOK_AFTER_VOID(vkGetDeviceQueue, note_queue(device, *queue, family, index),
    LIST(VkDevice device, uint32_t family, uint32_t index, VkQueue * queue), device, family, index, queue)

HOOK_AFTER_VOID(vkGetDeviceQueue2, note_queue(device, *queue, info->queueFamilyIndex, info->queueIndex),
    LIST(VkDevice device, const VkDeviceQueueInfo2 * info, VkQueue * queue), device, info, queue)

/* ---- Command buffers ---- */

HOOK_AFTER(VkResult, vkCreateCommandPool, HOLD(&vulkan_lock); if (result == VK_SUCCESS) vulkan_pool_note(device, *pool, info->queueFamilyIndex),
    LIST(VkDevice device, const VkCommandPoolCreateInfo * info, const void * allocator, VkCommandPool * pool), device, info, allocator, pool)

HOOK(VkResult, vkAllocateCommandBuffers, VkDevice device, const VkCommandBufferAllocateInfo * info, VkCommandBuffer * buffers) {
    REAL(vkAllocateCommandBuffers);
    const VkResult result = real(device, info, buffers);
    if (result != VK_SUCCESS) return result;
    pthread_mutex_lock(&vulkan_lock);
    const uint32_t family = vulkan_pool_family(device, info->commandPool);
    pthread_mutex_unlock(&vulkan_lock);
    for (uint32_t i = 0; i < info->commandBufferCount; i++) vulkan_work_allocated(device, buffers[i], family);
    return result;
}

HOOK_AFTER(VkResult, vkBeginCommandBuffer,
    if (result == VK_SUCCESS) vulkan_work_begin(buffer, (info->flags & VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT) != 0),
    LIST(VkCommandBuffer buffer, const VkCommandBufferBeginInfo * info), buffer, info)

HOOK_BEFORE(VkResult, vkEndCommandBuffer, vulkan_work_end(buffer), VkCommandBuffer buffer, buffer)

HOOK_BEFORE_VOID(vkCmdDispatch, vulkan_work_other(buffer),
    LIST(VkCommandBuffer buffer, uint32_t x, uint32_t y, uint32_t z), buffer, x, y, z)

HOOK(void, vkCmdCopyBuffer, VkCommandBuffer buffer, VkBuffer from, VkBuffer to, uint32_t count, const VkBufferCopy * regions) {
    REAL(vkCmdCopyBuffer);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) bytes += regions[i].size;
    const bool is_timed = vulkan_work_plain(buffer, GGTRACE_GPU_COPY, bytes);
    real(buffer, from, to, count, regions);
    if (is_timed) vulkan_work_plain_end(buffer);
}

HOOK_AROUND(vkCmdFillBuffer, const bool is_timed = vulkan_work_plain(buffer, GGTRACE_GPU_FILL, size == UINT64_MAX ? 0 : size),
    if (is_timed) vulkan_work_plain_end(buffer),
    LIST(VkCommandBuffer buffer, VkBuffer to, VkDeviceSize offset, VkDeviceSize size, uint32_t data), buffer, to, offset, size, data)

/* ---- Submissions ---- */

/* `buffer_count`, `buffer`: fields of an info, how many command buffers it has, and number `k` of them. */
#define SUBMIT(buffer_count, buffer)                                                             \
    struct vulkan_submission * submission = vulkan_work_submission(queue);                       \
    if (fence && vulkan_is_wanted()) vulkan_work_fence(queue, fence);                            \
    if (!submission) return real(queue, count, infos, fence);                                    \
    for (uint32_t i = 0; i < count; i++) {                                                       \
        for (uint32_t k = 0; k < infos[i].buffer_count; k++) vulkan_work_submit(submission, infos[i].buffer); \
    }                                                                                            \
    const uint64_t start = clock_now();                                                          \
    const VkResult result = real(queue, count, infos, fence);                                    \
    vulkan_work_submitted(submission, start, clock_now(), result == VK_SUCCESS);                 \
    return result

HOOK(VkResult, vkQueueSubmit, VkQueue queue, uint32_t count, const VkSubmitInfo * infos, VkFence fence) {
    REAL(vkQueueSubmit);
    SUBMIT(commandBufferCount, pCommandBuffers[k]);
}

static VkResult submit2(VkQueue queue, uint32_t count, const VkSubmitInfo2 * infos, VkFence fence, vulkan_submit2 * real) {
    SUBMIT(commandBufferInfoCount, pCommandBufferInfos[k].commandBuffer);
}

HOOK(VkResult, vkQueueSubmit2, VkQueue queue, uint32_t count, const VkSubmitInfo2 * infos, VkFence fence) {
    REAL(vkQueueSubmit2);
    return submit2(queue, count, infos, fence, real);
}

HOOK(VkResult, vkQueueSubmit2KHR, VkQueue queue, uint32_t count, const VkSubmitInfo2 * infos, VkFence fence) {
    vulkan_submit2 * real;
    *(void **) &real = vulkan_extension(EXTENSION_SUBMIT2);
    return submit2(queue, count, infos, fence, real);
}

/* ---- Waits ---- */

/* The host waited for a device. */
static void record_wait(VkDevice device, uint64_t start, uint64_t end, enum ggtrace_gpu_wait what) {
    if (recording_level() < LEVEL_GRAPH || !calls_take()) return;
    pthread_mutex_lock(&vulkan_lock);
    const struct vulkan_device * known = vulkan_device_of(device);
    pthread_mutex_unlock(&vulkan_lock);
    struct ggtrace_writer * writer = known ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (!writer) return;
    ggtrace_gpu_wait(writer, &(struct ggtrace_gpu_wait_record){
        .start = start, .end = end, .what = what, .device = known->id, .call = calls_current()});
}

HOOK(VkResult, vkWaitForFences, VkDevice device, uint32_t count, const VkFence * fences, VkBool32 all, uint64_t timeout) {
    REAL(vkWaitForFences);
    const uint64_t start = clock_now();
    const VkResult result = real(device, count, fences, all, timeout);
    const uint64_t end = clock_now();
    record_wait(device, start, end, GGTRACE_WAIT_FENCES);
    const bool are_all = result == VK_SUCCESS && (all || count == 1);
    for (uint32_t i = 0; are_all && i < count; i++) vulkan_work_complete(device, fences[i], end);
    return result;
}

/* When this thread first found the fence not ready that it asks for again and again; 0: it does not wait in this way. */
static __thread struct { uint64_t start; VkFence fence; } spinning __attribute__((tls_model("initial-exec")));

HOOK(VkResult, vkGetFenceStatus, VkDevice device, VkFence fence) {
    REAL(vkGetFenceStatus);
    if (spinning.fence != fence) spinning.start = 0;
    spinning.fence = fence;
    const uint64_t start = spinning.start ? spinning.start : clock_now();
    const VkResult result = real(device, fence);
    spinning.start = result == VK_NOT_READY ? start : 0;
    if (result != VK_SUCCESS) return result;
    const uint64_t end = clock_now();
    record_wait(device, start, end, GGTRACE_WAIT_FENCES);
    vulkan_work_complete(device, fence, end);
    return result;
}

static VkResult wait_semaphores(VkDevice device, const void * info, uint64_t timeout, vulkan_wait_semaphores * real) {
    const uint64_t start = clock_now();
    const VkResult result = real(device, info, timeout);
    record_wait(device, start, clock_now(), GGTRACE_WAIT_SEMAPHORES);
    return result;
}

HOOK(VkResult, vkWaitSemaphores, VkDevice device, const void * info, uint64_t timeout) {
    REAL(vkWaitSemaphores);
    return wait_semaphores(device, info, timeout, real);
}

HOOK(VkResult, vkWaitSemaphoresKHR, VkDevice device, const void * info, uint64_t timeout) {
    vulkan_wait_semaphores * real;
    *(void **) &real = vulkan_extension(EXTENSION_WAIT_SEMAPHORES);
    return wait_semaphores(device, info, timeout, real);
}

HOOK(VkResult, vkQueueWaitIdle, VkQueue queue) {
    REAL(vkQueueWaitIdle);
    const uint32_t last = vulkan_work_latest();
    const uint64_t start = clock_now();
    const VkResult result = real(queue);
    const uint64_t end = clock_now();
    pthread_mutex_lock(&vulkan_lock);
    const struct vulkan_queue * known = vulkan_queue_of(queue);
    const VkDevice device = known ? known->device->handle : NULL;
    pthread_mutex_unlock(&vulkan_lock);
    if (!device || result != VK_SUCCESS) return result;
    record_wait(device, start, end, GGTRACE_WAIT_QUEUE);
    vulkan_work_idle(device, queue, last, end);
    return result;
}

HOOK(VkResult, vkDeviceWaitIdle, VkDevice device) {
    REAL(vkDeviceWaitIdle);
    const uint32_t last = vulkan_work_latest();
    const uint64_t start = clock_now();
    const VkResult result = real(device);
    const uint64_t end = clock_now();
    if (result != VK_SUCCESS) return result;
    record_wait(device, start, end, GGTRACE_WAIT_DEVICE);
    vulkan_work_idle(device, NULL, last, end);
    return result;
}
