/* The functions of Vulkan that the recorder itself calls. */
#pragma once

#include "common/system.h"
#include "recorder/vulkan-api.h"

/* Is Vulkan's work recorded, or may it be when the recording has begun? A program creates its devices before. */
bool vulkan_is_wanted(void);

/* The real function of the program's latest instance; NULL: there is none. */
PFN_vkVoidFunction vulkan_function(const char * name);

/* Functions of extensions, which the loader does not export: a program looks them up before it calls them. */
enum vulkan_extension_function {
    EXTENSION_BEGIN_LABEL, EXTENSION_END_LABEL, EXTENSION_SET_NAME, EXTENSION_SUBMIT2, EXTENSION_WAIT_SEMAPHORES, EXTENSION_COUNT
};

/* The real function, for all devices. */
PFN_vkVoidFunction vulkan_extension(enum vulkan_extension_function function);
