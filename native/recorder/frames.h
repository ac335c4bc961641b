/*
 * What hooks set around the functions that they call. These may never return: a callback of the program throws an exception, or longjmps
 * out of llama_decode. Whatever a hook sets, and resets when the function returns, is opened here as a frame, with what resets it otherwise.
 *
 * The stack grows downwards, and each hook passes its own frame address: a hook inside an open frame has a lower one. A hook whose address is
 * not lower proves that the frame was left.
 */
#pragma once

#include "common/system.h"

struct frame {
    uintptr_t at;
    void (*left)(uint32_t before); /* resets what the hook set */
    uint32_t before; /* what it was */
};

enum { FRAMES_MAX = 32 };

/* The open frames of this thread, outer ones first. */
extern __thread struct frames {
    uint32_t count;
    struct frame open[FRAMES_MAX];
} frames __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The frame address of the hook in whose body this is used. */
#define HERE ((uintptr_t) __builtin_frame_address(0))

/* All frames from this address downwards were left, the innermost first. */
void frames_leave(uintptr_t here);

/* At the begin of each hook: a frame that it is not inside of was left. */
static inline void frames_settle(uintptr_t here) {
    const uint32_t count = frames.count;
    if (__builtin_expect(count && here >= frames.open[count - 1].at, 0)) frames_leave(here);
}

/* Opens a frame. Hooks of ggml nest less deeply than there is room for. */
static inline void frames_begin(uintptr_t here, void (*left)(uint32_t before), uint32_t before) {
    if (frames.count < FRAMES_MAX) frames.open[frames.count++] = (struct frame){here, left, before};
}

/*
 * The function of the frame returned. False: the frame is taken as left already, because another hook of this thread ran on another stack (a
 * fiber).
 */
static inline bool frames_end(uintptr_t here) {
    if (frames.count && frames.open[frames.count - 1].at < here) frames_leave(here - 1); /* what threw inside, and was caught inside */
    if (!frames.count || frames.open[frames.count - 1].at != here) return false;
    frames.count--;
    return true;
}
