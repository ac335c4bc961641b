/* Sets of CPUs, and the kernel's lists of them: `0-3,8`. And texts that are cut at their size. */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"

enum { CPU_LIST_MAX = 1024 }; /* CPUs; higher numbers are left out */

struct cpu_list {
    uint64_t bits[CPU_LIST_MAX / 64];
};

struct text {
    size_t used;
    bool is_cut; /* it had no room for all */
    char bytes[GGTRACE_TEXT_BYTES_MAX];
};

void text_add(struct text * text, const char * more);

void cpu_list_parse(struct cpu_list * cpus, const char * list);
void cpu_list_text(struct text * text, const struct cpu_list * cpus);
void cpu_list_add_all(struct cpu_list * cpus, const struct cpu_list * others);

static inline bool cpu_list_has(const struct cpu_list * cpus, int cpu) {
    return cpu >= 0 && cpu < CPU_LIST_MAX && cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

uint64_t cpu_list_hash(const struct cpu_list * cpus);

/* The first CPU from this one on; -1: none. */
int cpu_list_next(const struct cpu_list * cpus, int from);
