#include "recorder/numa-policies.h"

#include <linux/mempolicy.h>

#include "recorder/cpu-list.h"
#include "recorder/registry.h"
#include "recorder/topology.h"

/* The names of /proc/self/numa_maps, by mode of get_mempolicy(2). */
static const char * const policy_names[] = {"default", "prefer", "bind", "interleave", "local", "prefer (many)", "weighted interleave"};
enum { POLICIES = sizeof(policy_names) / sizeof(*policy_names), MODE_MASK = 0xff };

struct policy {
    int mode;
    struct cpu_list nodes;
};

/* Of this thread, or of the memory at an address; false where it is not known. */
static bool read_policy(struct policy * policy, const void * address) {
    *policy = (struct policy){0};
    const unsigned long flags = address ? MPOL_F_ADDR : 0;
    if (syscall(SYS_get_mempolicy, &policy->mode, policy->nodes.bits, CPU_LIST_MAX, address, flags) != 0) return false;
    policy->mode &= MODE_MASK;
    return policy->mode >= 0 && policy->mode < (int) POLICIES;
}

/* `interleave:0-1` */
static void policy_text(struct text * text, const struct policy * policy) {
    text->used = 0;
    text->is_cut = false;
    text_add(text, policy_names[policy->mode]);
    if (policy->mode && cpu_list_next(&policy->nodes, 0) >= 0) text_add(text, ":"), cpu_list_text(text, &policy->nodes);
}

uint32_t numa_policies_of(uint64_t base, uint64_t size) {
    enum { ADDRESSES = 64 };
    static struct text all, one;
    static struct policy found[ADDRESSES];
    int count = 0;
    all.used = all.bytes[0] = 0;
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        struct policy * policy = &found[count];
        if (!read_policy(policy, (const void *) (uintptr_t) (base + size / ADDRESSES * i))) continue;
        int same = 0;
        while (memcmp(&found[same], policy, sizeof(*policy)) != 0) same++;
        if (same < count) continue;
        count++;
        policy_text(&one, policy);
        text_add(&all, all.used ? ", " : "");
        text_add(&all, one.bytes);
    }
    return registry_name(all.bytes);
}

uint32_t numa_policy_of_thread(void) {
    static __thread int last_mode __attribute__((tls_model("initial-exec")));
    static __thread uint32_t last_name __attribute__((tls_model("initial-exec")));
    static __thread uint64_t last_hash __attribute__((tls_model("initial-exec")));
    if (topology_nodes() < 2) return 0;
    const int kept = errno;
    struct policy policy;
    const bool is_read = read_policy(&policy, NULL);
    errno = kept;
    if (!is_read || !policy.mode) return 0;
    const uint64_t hash = cpu_list_hash(&policy.nodes);
    if (policy.mode == last_mode && hash == last_hash) return last_name;
    struct text text;
    policy_text(&text, &policy);
    last_mode = policy.mode;
    last_hash = hash;
    return last_name = registry_name(text.bytes);
}
