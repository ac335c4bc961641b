/* The functions of Vulkan that the recorder itself calls. */
#ifndef GGML2PERFETTO_VULKAN_NAMES_H
#define GGML2PERFETTO_VULKAN_NAMES_H

#include <stdbool.h>

#include "recorder/vulkan-api.h"

/* Is Vulkan's work recorded, or may it be when the recording has begun? A program creates its devices before. */
bool vulkan_is_wanted(void);

/* The real function of the program's latest instance; NULL: there is none. */
PFN_vkVoidFunction vulkan_function(const char * name);

#endif
