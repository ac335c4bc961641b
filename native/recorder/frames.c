#include "recorder/frames.h"

__thread struct frames frames __attribute__((tls_model("initial-exec")));

void frames_leave(uintptr_t here) {
    while (frames.count && frames.open[frames.count - 1].at <= here) {
        const struct frame * frame = &frames.open[--frames.count];
        frame->left(frame->before);
    }
}
