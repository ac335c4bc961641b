/* Ends with 0 where perf_event_open tells this user when his own threads run: Linux 5.13, perf_event_paranoid, no filter. */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    struct perf_event_attr event = {
        .size = sizeof event,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .inherit = 1,
        .inherit_thread = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .context_switch = 1,
    };
    return syscall(SYS_perf_event_open, &event, 0, sched_getcpu(), -1, 0) < 0;
}
