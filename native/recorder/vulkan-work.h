/* What the program puts into Vulkan's command buffers and submits, and when its devices did it. All functions are thread-safe. */
#pragma once

#include "common/system.h"
#include "log/ggtrace-gpu.h"
#include "recorder/vulkan-api.h"

struct vulkan_submission;

/* A command buffer was allocated, for queues of a family. */
void vulkan_work_allocated(VkDevice device, VkCommandBuffer handle, uint32_t family);

/* The recording of a command buffer begins and ends. Timed are those that are submitted once. */
void vulkan_work_begin(VkCommandBuffer handle, bool is_for_once);
void vulkan_work_end(VkCommandBuffer handle);

/* A label of the program begins and ends. */
void vulkan_work_label(VkCommandBuffer handle, const char * label);
void vulkan_work_label_end(VkCommandBuffer handle);

/* A copy or fill begins. Returns whether it is timed: then call vulkan_work_plain_end after it. Part of an operator is not. */
bool vulkan_work_plain(VkCommandBuffer handle, enum ggtrace_gpu_work what, uint64_t bytes);
void vulkan_work_plain_end(VkCommandBuffer handle);

/* Work that has no mark of its own is put into a command buffer, within an operator or outside of all. */
void vulkan_work_other(VkCommandBuffer handle);

/*
 * Command buffers are about to be submitted; NULL: this is not recorded. Call vulkan_work_submit with each of them, then, after the
 * submission, vulkan_work_submitted.
 */
struct vulkan_submission * vulkan_work_submission(VkQueue queue);
void vulkan_work_submit(struct vulkan_submission * submission, VkCommandBuffer handle);
void vulkan_work_submitted(struct vulkan_submission * submission, uint64_t start, uint64_t end, bool is_done);

/* A fence is about to be submitted to a queue, after its submissions so far. */
void vulkan_work_fence(VkQueue queue, VkFence fence);

/* A fence was found signalled at this time: the submissions before it are complete. Results are read then, and only then, so that nothing waits. */
void vulkan_work_complete(VkDevice device, VkFence fence, uint64_t now);

/* The submissions of a queue (NULL: of all of the device) up to this number are complete. The number of the latest one, read before a wait. */
void vulkan_work_idle(VkDevice device, VkQueue queue, uint32_t last, uint64_t now);
uint32_t vulkan_work_latest(void);
