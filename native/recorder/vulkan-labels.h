/* The labels by which ggml marks what it puts into Vulkan's command buffers, if GGML_VK_DEBUG_MARKERS is set. */
#pragma once

#include "common/system.h"

/*
 * The nodes of a label: ids of the first one's tensor and, if several are fused, of the last one's; else 0. part: from 1
 * on, if ggml ended the command buffer within the node and continues it in another one.
 */
struct labelled {
    uint32_t tensor, last, graph, part;
};

/* Reads "RMS_NORM+MUL norm-0": ops of fused nodes, name of the first. Is it a recorded node of the graph that this thread computes? */
bool vulkan_label_find(const char * label, struct labelled * found);

/* The id of the name of a shader, from its label "matmul_f32 (1,1,1)": without the number of its workgroups. */
uint32_t vulkan_label_kernel(const char * label);
