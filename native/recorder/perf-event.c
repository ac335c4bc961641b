#include "recorder/perf-event.h"

int perf_event_open(const struct perf_event_attr * event, int pid, int cpu, int leader) {
    return (int) syscall(SYS_perf_event_open, event, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
}

const char * perf_event_why(int error) {
    switch (error) {
        case EACCES: return "the kernel does not allow perf_event_open (perf_event_paranoid above 2)";
        case EPERM: return "perf_event_open is not allowed here (perf_event_paranoid, or a seccomp filter)";
        case ENOSYS: return "this kernel has no perf_event_open";
        case EMFILE: case ENFILE: return "there is no file descriptor left for perf_event_open";
        default: return "perf_event_open failed";
    }
}
