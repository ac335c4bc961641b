#include "recorder/affinity.h"

#include "log/ggtrace-requests.h"
#include "recorder/cpu-list.h"
#include "recorder/numa-policies.h"
#include "recorder/registry.h"

/* What this thread recorded last. */
static __thread struct {
    struct ggtrace_writer * writer; /* of a worker: the same thread may serve another one */
    bool is_known;
    int cpu;
    uint32_t call; /* in which the affinity was read: a system call */
    uint32_t allowed;
    uint64_t mask; /* hash of the affinity */
    uint32_t policy;
} last __attribute__((tls_model("initial-exec")));

/* Returns whether the policy changed. */
static bool read_policy(void) {
    const uint32_t policy = numa_policy_of_thread();
    if (policy == last.policy) return false;
    last.policy = policy;
    return true;
}

/* Returns whether the affinity changed. */
static bool read_affinity(void) {
    struct cpu_list cpus = {0};
    const int kept = errno;
    const bool is_read = sched_getaffinity(0, sizeof(cpus), (cpu_set_t *) &cpus) == 0;
    errno = kept;
    const uint64_t mask = is_read ? cpu_list_hash(&cpus) : 0;
    if (last.is_known && mask == last.mask) return false;
    struct text list = {0};
    cpu_list_text(&list, &cpus);
    last.mask = mask;
    last.allowed = is_read && !list.is_cut ? registry_name(list.bytes) : 0;
    return true;
}

void affinity_look(struct ggtrace_writer * writer, uint64_t now, uint32_t call) {
    const int cpu = sched_getcpu();
    const bool is_other = !last.is_known || writer != last.writer;
    bool is_changed = is_other || cpu != last.cpu;
    if (is_other || call != last.call) {
        is_changed |= read_affinity();
        is_changed |= read_policy();
    }
    last.is_known = true;
    last.writer = writer;
    last.call = call;
    if (!is_changed) return;
    last.cpu = cpu;
    ggtrace_affinity(writer, &(struct ggtrace_affinity){.time = now, .cpu = (uint32_t) cpu, .allowed = last.allowed, .policy = last.policy});
}
