#include "recorder/cpu-list.h"

#include "common/process.h"

void text_add(struct text * text, const char * more) {
    const size_t length = strlen(more), room = sizeof(text->bytes) - 1 - text->used;
    const size_t added = length < room ? length : room;
    memcpy(text->bytes + text->used, more, added);
    text->bytes[text->used += added] = 0;
    text->is_cut |= added < length;
}

void cpu_list_parse(struct cpu_list * cpus, const char * list) {
    *cpus = (struct cpu_list){0};
    for (const char * at = list; *at >= '0' && *at <= '9';) {
        char * end;
        const unsigned long first = strtoul(at, &end, 10);
        const unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (unsigned long cpu = first; cpu <= last && cpu < CPU_LIST_MAX; cpu++) cpus->bits[cpu / 64] |= 1ull << cpu % 64;
        at = *end == ',' ? end + 1 : "";
    }
}

int cpu_list_next(const struct cpu_list * cpus, int from) {
    for (int cpu = from; cpu < CPU_LIST_MAX; cpu++)
        if (cpu_list_has(cpus, cpu)) return cpu;
    return -1;
}

static void add_number(struct text * text, const char * before, int number) {
    char digits[NUMBER_BYTES];
    number_text(digits, (uint64_t) number);
    text_add(text, before);
    text_add(text, digits);
}

void cpu_list_text(struct text * text, const struct cpu_list * cpus) {
    const char * before = "";
    for (int first = cpu_list_next(cpus, 0); first >= 0; before = ",") {
        int last = first;
        while (cpu_list_has(cpus, last + 1)) last++;
        add_number(text, before, first);
        if (last > first) add_number(text, "-", last);
        first = cpu_list_next(cpus, last + 1);
    }
}

void cpu_list_add_all(struct cpu_list * cpus, const struct cpu_list * others) {
    for (size_t i = 0; i < CPU_LIST_MAX / 64; i++) cpus->bits[i] |= others->bits[i];
}

uint64_t cpu_list_hash(const struct cpu_list * cpus) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < CPU_LIST_MAX / 64; i++) hash = (hash ^ cpus->bits[i]) * 0x100000001b3ull;
    return hash;
}
