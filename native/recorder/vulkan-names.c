/*
 * How a program finds the functions of Vulkan: by vkGetInstanceProcAddr and vkGetDeviceProcAddr, which return the recorder's where it
 * has one. And functions of extensions, which the loader does not export, with the pipelines that get names by one of them.
 */
#include "recorder/vulkan-names.h"

#include "common/clock.h"
#include "common/environment.h"
#include "recorder/hook.h"
#include "recorder/recorder.h"
#include "recorder/registry.h"
#include "recorder/vulkan-work.h"

static PFN_vkVoidFunction (*_Atomic find_in_instance)(VkInstance, const char *);
static _Atomic(VkInstance) latest_instance;

bool vulkan_is_wanted(void) {
    const char * gpu = environment(ENV_GPU);
    return recording_level() != LEVEL_OFF && environment(ENV_OUT) && !(gpu && strcmp(gpu, "0") == 0);
}

/* ggml then labels what it submits to Vulkan. */
__attribute__((constructor)) static void request_labels(void) {
    if (vulkan_is_wanted()) setenv("GGML_VK_DEBUG_MARKERS", "1", 0);
}

PFN_vkVoidFunction vulkan_function(const char * name) {
    PFN_vkVoidFunction (*find)(VkInstance, const char *) = atomic_load(&find_in_instance);
    return find ? find(atomic_load(&latest_instance), name) : NULL;
}

HOOK(VkResult, vkCreateInstance, const void * info, const void * allocator, VkInstance * instance) {
    REAL(vkCreateInstance);
    const VkResult result = real(info, allocator, instance);
    PFN_vkVoidFunction (*find)(VkInstance, const char *);
    *(void **) &find = library_resolve("vkGetInstanceProcAddr", CALLER);
    atomic_store(&find_in_instance, find);
    if (result == VK_SUCCESS) atomic_store(&latest_instance, *instance);
    return result;
}

/* ---- Functions that are looked up ---- */

/* Only a program that has looked one up calls it. */
static struct { const char * name; _Atomic(void *) real; } extensions[EXTENSION_COUNT] = {
    [EXTENSION_BEGIN_LABEL].name = "vkCmdBeginDebugUtilsLabelEXT",
    [EXTENSION_END_LABEL].name = "vkCmdEndDebugUtilsLabelEXT",
    [EXTENSION_SET_NAME].name = "vkSetDebugUtilsObjectNameEXT",
    [EXTENSION_SUBMIT2].name = "vkQueueSubmit2KHR",
    [EXTENSION_WAIT_SEMAPHORES].name = "vkWaitSemaphoresKHR",
};

PFN_vkVoidFunction vulkan_extension(enum vulkan_extension_function function) {
    return atomic_load_explicit(&extensions[function].real, memory_order_relaxed);
}

/* The recorder's function of this name: whatever its library exports, other libraries excepted. */
static PFN_vkVoidFunction own_function(const char * name) {
    static _Atomic(void *) library;
    Dl_info own, found;
    if (!atomic_load(&library)) {
        if (!dladdr(extensions, &own)) return NULL;
        atomic_store(&library, dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD));
    }
    PFN_vkVoidFunction function;
    function = atomic_load(&library) ? dlsym(atomic_load(&library), name) : NULL;
    if (!function || !dladdr(extensions, &own) || !dladdr(function, &found)) return NULL;
    return own.dli_fbase == found.dli_fbase ? function : NULL;
}

static PFN_vkVoidFunction replaced(const char * name, PFN_vkVoidFunction real) {
    PFN_vkVoidFunction own = real && vulkan_is_wanted() ? own_function(name) : NULL;
    for (int i = 0; own && i < EXTENSION_COUNT; i++) {
        if (strcmp(name, extensions[i].name) != 0) continue;
        PFN_vkVoidFunction for_all = vulkan_function(name);
        if (!for_all) for_all = real;
        atomic_store(&extensions[i].real, for_all);
    }
    return own ? own : real;
}

HOOK(PFN_vkVoidFunction, vkGetInstanceProcAddr, VkInstance instance, const char * name) {
    REAL(vkGetInstanceProcAddr);
    return replaced(name, real(instance, name));
}

HOOK(PFN_vkVoidFunction, vkGetDeviceProcAddr, VkDevice device, const char * name) {
    REAL(vkGetDeviceProcAddr);
    return replaced(name, real(device, name));
}

/* ---- Labels ---- */

HOOK(void, vkCmdBeginDebugUtilsLabelEXT, VkCommandBuffer buffer, const VkDebugUtilsLabelEXT * label) {
    void (*real)(VkCommandBuffer, const VkDebugUtilsLabelEXT *);
    *(void **) &real = vulkan_extension(EXTENSION_BEGIN_LABEL);
    real(buffer, label);
    vulkan_work_label(buffer, label->pLabelName);
}

HOOK(void, vkCmdEndDebugUtilsLabelEXT, VkCommandBuffer buffer) {
    void (*real)(VkCommandBuffer);
    *(void **) &real = vulkan_extension(EXTENSION_END_LABEL);
    vulkan_work_label_end(buffer);
    real(buffer);
}

/* ---- Pipelines ---- */

/* What this thread compiled last. Written when it has a name, or when it is known that it gets none. */
static __thread struct { VkPipeline handle; struct ggtrace_gpu_pipeline record; } compiled __attribute__((tls_model("initial-exec")));

static void write_compiled(const char * name) {
    if (compiled.record.count == 0) return;
    struct ggtrace * log = vulkan_is_wanted() ? recorder_log() : NULL;
    struct ggtrace_writer * writer = log ? ggtrace_writer_of_thread(log, GGTRACE_NO_WORKER) : NULL;
    if (writer) {
        if (name) compiled.record.name = registry_name(name);
        ggtrace_gpu_pipeline(writer, &compiled.record);
    }
    compiled.record.count = 0;
}

HOOK(VkResult, vkCreateComputePipelines, VkDevice device, VkPipelineCache cache, uint32_t count, const void * infos,
     const void * allocator, VkPipeline * pipelines) {
    REAL(vkCreateComputePipelines);
    write_compiled(NULL);
    const uint64_t start = clock_now();
    const VkResult result = real(device, cache, count, infos, allocator, pipelines);
    compiled.record = (struct ggtrace_gpu_pipeline){.start = start, .end = clock_now(), .count = count};
    compiled.handle = *pipelines;
    if (!vulkan_extension(EXTENSION_SET_NAME)) write_compiled(NULL);
    return result;
}

HOOK(VkResult, vkSetDebugUtilsObjectNameEXT, VkDevice device, const VkDebugUtilsObjectNameInfoEXT * info) {
    VkResult (*real)(VkDevice, const VkDebugUtilsObjectNameInfoEXT *);
    *(void **) &real = vulkan_extension(EXTENSION_SET_NAME);
    if (info->objectType == VK_OBJECT_TYPE_PIPELINE && info->objectHandle == compiled.handle) write_compiled(info->pObjectName);
    return real(device, info);
}
