#include "recorder/vulkan-devices.h"

#include "common/clock.h"
#include "common/table.h"
#include "recorder/full.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

enum { QUEUES_MAX = 64, POOL_CHUNKS = 16, POOLS_MAX = 64, CALIBRATE_NS = 10000000 };

pthread_mutex_t vulkan_lock = PTHREAD_MUTEX_INITIALIZER;

static struct vulkan_device * devices;
static struct vulkan_queue queues[QUEUES_MAX];
static uint32_t device_count, queue_count, defined_queues;
static struct table families; /* of command pools: the index of the family, plus 1 */

struct vulkan_device * vulkan_device_of(VkDevice handle) {
    struct vulkan_device * device = devices;
    while (device && device->handle != handle) device = device->next;
    return device;
}

struct vulkan_device * vulkan_device_add(VkDevice handle) {
    struct vulkan_device * device = reserve(sizeof(*device));
    if (!device) return NULL;
    device->handle = handle;
    device->id = device_count++;
    device->next = devices;
    devices = device;
    return device;
}

void vulkan_device_forget(struct vulkan_device * device) {
    for (struct vulkan_pool * pool = device->pools; pool; pool = pool->next) {
        device->call.vkDestroyQueryPool(device->handle, pool->handle, NULL);
    }
    for (uint32_t i = 0; i < queue_count; i++) if (queues[i].device == device) queues[i].handle = NULL;
    device->free = NULL;
    device->pending = NULL;
    device->handle = NULL;
}

struct vulkan_queue * vulkan_queue_of(VkQueue handle) {
    for (uint32_t i = 0; i < queue_count; i++) if (queues[i].handle == handle) return &queues[i];
    return NULL;
}

void vulkan_queue_note(VkDevice device, VkQueue handle, uint32_t family, uint32_t index) {
    if (!handle || vulkan_queue_of(handle)) return;
    struct vulkan_device * owner = vulkan_device_of(device);
    if (owner && queue_count == QUEUES_MAX) full_count(FULL_QUEUES);
    else if (owner) queues[queue_count++] = (struct vulkan_queue){.handle = handle, .device = owner, .family = family, .index = index};
}

uint32_t vulkan_queue_define(struct vulkan_queue * queue) {
    if (queue->id) return queue->id;
    const struct vulkan_device * device = queue->device;
    const VkQueueFamilyProperties * family = &device->families[queue->family % FAMILIES_MAX];
    queue->id = ++defined_queues;
    ggtrace_define_gpu_queue(recording.log, &(struct ggtrace_gpu_queue){
        .id = queue->id,
        .device = device->id,
        .name = registry_name(device->name),
        .family = queue->family,
        .index = queue->index,
        .flags = family->queueFlags,
        .bits = device->has_calibration ? family->timestampValidBits : 0,
        .period = device->period,
    });
    return queue->id;
}

static struct entry * family_of(VkDevice device, VkCommandPool pool) {
    return table_at(&families, mix(mix(10, (uint64_t) (uintptr_t) device), pool));
}

void vulkan_pool_note(VkDevice device, VkCommandPool pool, uint32_t family) {
    struct entry * entry = family_of(device, pool);
    if (entry) entry->id = family + 1;
}

uint32_t vulkan_pool_family(VkDevice device, VkCommandPool pool) {
    const struct entry * entry = family_of(device, pool);
    return entry && entry->id ? entry->id - 1 : FAMILIES_MAX;
}

void vulkan_device_calibrate(struct vulkan_device * device, struct ggtrace_writer * writer, uint64_t now) {
    if (device->calibrated && now - device->calibrated < CALIBRATE_NS) return;
    static const VkCalibratedTimestampInfoEXT both[] = {
        {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, NULL, VK_TIME_DOMAIN_DEVICE_EXT},
        {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, NULL, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT},
    };
    uint64_t values[2], deviation;
    if (device->call.vkGetCalibratedTimestampsEXT(device->handle, 2, both, values, &deviation) != VK_SUCCESS) return;
    const int64_t late = vulkan_clock_set(&device->clock, values[0], values[1], device->period, device->bits);
    device->calibrated = now;
    ggtrace_gpu_clock(writer, &(struct ggtrace_gpu_clock){
        .time = values[1], .ticks = values[0], .deviation = deviation, .late = late, .device = device->id});
}

/* Another pool of queries, as chunks. */
static void add_pool(struct vulkan_device * device) {
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = POOL_CHUNKS * CHUNK_QUERIES,
    };
    VkQueryPool handle;
    /* First, because memory that is reserved is never freed, and the driver is asked again at each mark. */
    if (device->pool_count == POOLS_MAX || device->call.vkCreateQueryPool(device->handle, &info, NULL, &handle) != VK_SUCCESS) return;
    struct vulkan_pool * pool = reserve(sizeof(*pool));
    struct vulkan_chunk * chunks = pool ? reserve(POOL_CHUNKS * sizeof(*chunks)) : NULL;
    if (!chunks) {
        device->call.vkDestroyQueryPool(device->handle, handle, NULL);
        return;
    }
    pool->handle = handle;
    pool->next = device->pools;
    device->pools = pool;
    device->pool_count++;
    for (uint32_t i = 0; i < POOL_CHUNKS; i++) {
        chunks[i].pool = pool->handle;
        chunks[i].first = i * CHUNK_QUERIES;
        vulkan_chunk_give(device, &chunks[i]);
    }
}

struct vulkan_chunk * vulkan_chunk_take(struct vulkan_device * device, VkCommandBuffer commands) {
    if (!device->free) add_pool(device);
    struct vulkan_chunk * chunk = device->free;
    if (!chunk) return NULL;
    device->free = chunk->next;
    chunk->next = NULL;
    chunk->count = chunk->queries = 0;
    chunk->begins = false;
    if (device->resets_on_host) device->call.vkResetQueryPool(device->handle, chunk->pool, chunk->first, CHUNK_QUERIES);
    else device->call.vkCmdResetQueryPool(commands, chunk->pool, chunk->first, CHUNK_QUERIES);
    return chunk;
}

void vulkan_chunk_give(struct vulkan_device * device, struct vulkan_chunk * chunk) {
    chunk->next = device->free;
    device->free = chunk;
}
