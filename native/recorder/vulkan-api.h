/*
 * The part of Vulkan's API that the recorder uses, under the names of the specification and with its layouts: the recorder is built
 * without Vulkan's headers. For machines with pointers of 64 bits.
 */
#pragma once

#include "common/system.h"

typedef struct VkInstance_T * VkInstance;
typedef struct VkPhysicalDevice_T * VkPhysicalDevice;
typedef struct VkDevice_T * VkDevice;
typedef struct VkQueue_T * VkQueue;
typedef struct VkCommandBuffer_T * VkCommandBuffer;
typedef uint64_t VkCommandPool, VkFence, VkQueryPool, VkBuffer, VkPipeline, VkPipelineCache, VkDeviceSize;
typedef uint32_t VkFlags, VkBool32, VkTimeDomainEXT;
typedef int32_t VkResult;
typedef void * PFN_vkVoidFunction; /* of a function, as dlsym returns it */

enum { VK_NOT_READY = 1, VK_INCOMPLETE = 5, VK_SUCCESS = 0 };

/* VkStructureType */
enum {
    VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO = 11,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES = 51,
    VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT = 1000184000,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES = 1000261000,
};

enum { VK_OBJECT_TYPE_PIPELINE = 19, VK_QUERY_TYPE_TIMESTAMP = 2, VK_QUERY_RESULT_64_BIT = 1 };
enum { VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT = 1, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT = 0x2000, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT = 1 };
enum { VK_QUEUE_GRAPHICS_BIT = 1, VK_QUEUE_COMPUTE_BIT = 2 };
enum { VK_TIME_DOMAIN_DEVICE_EXT = 0, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT = 1 };

typedef struct VkBaseInStructure {
    uint32_t sType;
    const struct VkBaseInStructure * pNext;
} VkBaseInStructure;

typedef struct VkDeviceCreateInfo {
    uint32_t sType;
    const void * pNext;
    VkFlags flags;
    uint32_t queueCreateInfoCount;
    const void * pQueueCreateInfos;
    uint32_t enabledLayerCount;
    const char * const * ppEnabledLayerNames;
    uint32_t enabledExtensionCount;
    const char * const * ppEnabledExtensionNames;
    const void * pEnabledFeatures;
} VkDeviceCreateInfo;

typedef struct VkExtensionProperties {
    char extensionName[256];
    uint32_t specVersion;
} VkExtensionProperties;

/* Only the fields that the recorder reads have names. */
typedef struct VkPhysicalDeviceProperties {
    uint32_t versions_and_ids[5];
    char deviceName[256];
    char before_timestampPeriod[444];
    float timestampPeriod; /* of `limits`: ns per tick */
    char after_timestampPeriod[100];
} VkPhysicalDeviceProperties;

typedef struct VkPhysicalDeviceVulkan12Features {
    uint32_t sType;
    const void * pNext;
    VkBool32 before_hostQueryReset[36];
    VkBool32 hostQueryReset;
} VkPhysicalDeviceVulkan12Features;

typedef struct VkPhysicalDeviceHostQueryResetFeatures {
    uint32_t sType;
    const void * pNext;
    VkBool32 hostQueryReset;
} VkPhysicalDeviceHostQueryResetFeatures;

typedef struct VkQueueFamilyProperties {
    VkFlags queueFlags;
    uint32_t queueCount, timestampValidBits;
    uint32_t minImageTransferGranularity[3];
} VkQueueFamilyProperties;

typedef struct VkDeviceQueueInfo2 {
    uint32_t sType;
    const void * pNext;
    VkFlags flags;
    uint32_t queueFamilyIndex, queueIndex;
} VkDeviceQueueInfo2;

typedef struct VkCommandPoolCreateInfo {
    uint32_t sType;
    const void * pNext;
    VkFlags flags;
    uint32_t queueFamilyIndex;
} VkCommandPoolCreateInfo;

typedef struct VkCommandBufferAllocateInfo {
    uint32_t sType;
    const void * pNext;
    VkCommandPool commandPool;
    uint32_t level, commandBufferCount;
} VkCommandBufferAllocateInfo;

typedef struct VkCommandBufferBeginInfo {
    uint32_t sType;
    const void * pNext;
    VkFlags flags;
    const void * pInheritanceInfo;
} VkCommandBufferBeginInfo;

typedef struct VkSubmitInfo {
    uint32_t sType;
    const void * pNext;
    uint32_t waitSemaphoreCount;
    const void * pWaitSemaphores;
    const VkFlags * pWaitDstStageMask;
    uint32_t commandBufferCount;
    const VkCommandBuffer * pCommandBuffers;
    uint32_t signalSemaphoreCount;
    const void * pSignalSemaphores;
} VkSubmitInfo;

typedef struct VkCommandBufferSubmitInfo {
    uint32_t sType;
    const void * pNext;
    VkCommandBuffer commandBuffer;
    uint32_t deviceMask;
} VkCommandBufferSubmitInfo;

typedef struct VkSubmitInfo2 {
    uint32_t sType;
    const void * pNext;
    VkFlags flags;
    uint32_t waitSemaphoreInfoCount;
    const void * pWaitSemaphoreInfos;
    uint32_t commandBufferInfoCount;
    const VkCommandBufferSubmitInfo * pCommandBufferInfos;
    uint32_t signalSemaphoreInfoCount;
    const void * pSignalSemaphoreInfos;
} VkSubmitInfo2;

typedef struct VkQueryPoolCreateInfo {
    uint32_t sType;
    const void * pNext;
    VkFlags flags;
    uint32_t queryType, queryCount;
    VkFlags pipelineStatistics;
} VkQueryPoolCreateInfo;

typedef struct VkBufferCopy {
    VkDeviceSize srcOffset, dstOffset, size;
} VkBufferCopy;

typedef struct VkDebugUtilsLabelEXT {
    uint32_t sType;
    const void * pNext;
    const char * pLabelName;
    float color[4];
} VkDebugUtilsLabelEXT;

typedef struct VkDebugUtilsObjectNameInfoEXT {
    uint32_t sType;
    const void * pNext;
    uint32_t objectType;
    uint64_t objectHandle;
    const char * pObjectName;
} VkDebugUtilsObjectNameInfoEXT;

typedef struct VkCalibratedTimestampInfoEXT {
    uint32_t sType;
    const void * pNext;
    VkTimeDomainEXT timeDomain;
} VkCalibratedTimestampInfoEXT;

#define VULKAN_AT(structure, field, offset) \
    _Static_assert(offsetof(structure, field) == (offset), #structure "." #field " is not where Vulkan has it")

#if UINTPTR_MAX == UINT64_MAX
VULKAN_AT(VkPhysicalDeviceProperties, timestampPeriod, 720);
VULKAN_AT(VkPhysicalDeviceVulkan12Features, hostQueryReset, 160);
VULKAN_AT(VkDeviceCreateInfo, enabledExtensionCount, 48);
VULKAN_AT(VkSubmitInfo, commandBufferCount, 40);
VULKAN_AT(VkSubmitInfo2, commandBufferInfoCount, 32);
VULKAN_AT(VkCommandBufferSubmitInfo, commandBuffer, 16);
_Static_assert(sizeof(VkPhysicalDeviceProperties) == 824, "VkPhysicalDeviceProperties is not as long as in Vulkan");
#endif
