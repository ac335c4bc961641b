/* Sampling: which output of which context the samplers of this thread work on. */
#pragma once

#include "common/system.h"
#include "recorder/functions.h"

/* This thread reads the output at this place of the context's last batch (llama_get_logits_ith); −1: the last one. */
void sampling_reads(const void * context, int32_t output);

/* The thread enters a function of this sampler, or (NULL) one that samples a whole token, from the output that was read last. */
void sampling_begin(struct ggtrace_function * function, uint32_t what, const void * sampler);

/* Does this thread accept a token already, in the sampler that contains this one? `here`: of the hook, see frames.h. */
bool sampling_accepts(uintptr_t here);

/*
 * The sampler has accepted a token. The first acceptance after a sampler was applied is that of a sampled token, and is written; of
 * others, such as those of a prompt's tokens, only long ones.
 */
void sampling_accepted(uintptr_t here, struct ggtrace_function * function);

/* The name of a sampler. */
uint32_t sampling_name(const void * sampler);
