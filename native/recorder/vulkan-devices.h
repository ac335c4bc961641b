/* The Vulkan devices of the program, their queues, and timestamp queries for them. Callers of all functions hold vulkan_lock. */
#pragma once

#include "common/system.h"
#include "log/ggtrace-gpu.h"
#include "recorder/vulkan-api.h"
#include "recorder/vulkan-clock.h"

extern pthread_mutex_t vulkan_lock;

enum { FAMILIES_MAX = 32, CHUNK_MARKS = 64, CHUNK_QUERIES = 2 * CHUNK_MARKS };

/* Something that a command buffer contains, between two timestamps: numbers of queries of its chunk. */
struct vulkan_mark {
    uint32_t start, end;
    uint32_t what; /* enum ggtrace_gpu_work */
    uint32_t tensor, last, part, kernel, dispatches, call, graph;
    uint64_t bytes;
};

/* Timestamp queries, at most two for each mark. Many, because a program may submit much work before any of it is complete. */
struct vulkan_chunk {
    struct vulkan_chunk * next;
    VkQueryPool pool;
    uint32_t first; /* number of its first query in the pool */
    uint32_t count; /* of marks in use */
    uint32_t queries; /* of queries in use */
    bool begins; /* its first mark is a whole command buffer */
    struct vulkan_mark marks[CHUNK_MARKS];
};

struct vulkan_pool {
    VkQueryPool handle;
    struct vulkan_pool * next;
};

struct vulkan_functions {
    VkResult (*vkCreateQueryPool)(VkDevice, const VkQueryPoolCreateInfo *, const void *, VkQueryPool *);
    void (*vkDestroyQueryPool)(VkDevice, VkQueryPool, const void *);
    VkResult (*vkGetQueryPoolResults)(VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void *, VkDeviceSize, VkFlags);
    void (*vkCmdWriteTimestamp)(VkCommandBuffer, VkFlags, VkQueryPool, uint32_t);
    void (*vkCmdResetQueryPool)(VkCommandBuffer, VkQueryPool, uint32_t, uint32_t);
    void (*vkResetQueryPool)(VkDevice, VkQueryPool, uint32_t, uint32_t);
    VkResult (*vkGetCalibratedTimestampsEXT)(VkDevice, uint32_t, const VkCalibratedTimestampInfoEXT *, uint64_t *, uint64_t *);
};

struct vulkan_device {
    VkDevice handle; /* NULL: it was destroyed */
    uint32_t id; /* from 0 */
    char name[256];
    double period; /* ns per tick */
    VkFlags stage; /* when timestamps are written: commands before them are complete */
    uint32_t bits; /* valid ones of timestamps: of its families, the most */
    bool has_calibration; /* its clock can be read together with the host's */
    bool resets_on_host; /* the program enabled hostQueryReset */
    VkQueueFamilyProperties families[FAMILIES_MAX];
    struct vulkan_functions call;
    struct vulkan_clock clock;
    uint64_t calibrated; /* time of the latest reading of its clock; 0: none */
    struct vulkan_pool * pools;
    uint32_t pool_count;
    struct vulkan_chunk * free;
    struct vulkan_submission * pending; /* in order of submission */
    struct vulkan_device * next;
};

struct vulkan_queue {
    VkQueue handle;
    struct vulkan_device * device;
    uint32_t id; /* of its definition in the log; 0: not defined yet */
    uint32_t family, index;
};

struct vulkan_device * vulkan_device_of(VkDevice handle);

/* A device was created. NULL if memory is short. */
struct vulkan_device * vulkan_device_add(VkDevice handle);

/* A device will be destroyed, and its query pools before it. */
void vulkan_device_forget(struct vulkan_device * device);

void vulkan_queue_note(VkDevice device, VkQueue handle, uint32_t family, uint32_t index);
struct vulkan_queue * vulkan_queue_of(VkQueue handle);

/* Defines the queue in the log if necessary. Returns its id. */
uint32_t vulkan_queue_define(struct vulkan_queue * queue);

/* The family of queues for which a command pool is. */
void vulkan_pool_note(VkDevice device, VkCommandPool pool, uint32_t family);
uint32_t vulkan_pool_family(VkDevice device, VkCommandPool pool);

/* Reads both clocks if that is due. */
void vulkan_device_calibrate(struct vulkan_device * device, struct ggtrace_writer * writer, uint64_t now);

/* Queries that are reset, for use in this command buffer; NULL if all are in use. And back: when no submitted command writes them. */
struct vulkan_chunk * vulkan_chunk_take(struct vulkan_device * device, VkCommandBuffer commands);
void vulkan_chunk_give(struct vulkan_device * device, struct vulkan_chunk * chunk);
