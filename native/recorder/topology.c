#include "common/system.h"
#include "recorder/topology.h"

#include "common/process.h"
#include "recorder/cpu-list.h"

enum { FILE_BYTES = 4096, ROOT_BYTES = 1024, VALUES_MAX = 16, VALUE_BYTES = 64, CACHES_MAX = 8 };
/* CPU time: other programs may have the CPU meanwhile. */
enum { TIME_MAX_NS = 4000000 };

typedef void (*fact_function)(const char * key, const char * value);

/* The first CPU of each core by the value of a file. */
struct by_value {
    int count;
    bool is_full; /* more values than there is room for, or no time to read them */
    char values[VALUES_MAX][VALUE_BYTES];
    struct cpu_list cpus[VALUES_MAX];
};

/* What is read of each core. A file of the kernel that does not exist has no value. */
enum attribute { CAPACITY, MAX_KHZ, LIMIT_KHZ, GOVERNOR, ATTRIBUTES };
static const struct {
    const char * key, * file;
} attributes[ATTRIBUTES] = {
    {"topology.capacity", "cpu_capacity"},
    {"topology.max_khz", "cpufreq/cpuinfo_max_freq"},
    {"topology.limit_khz", "cpufreq/scaling_max_freq"},
    {"topology.governor", "cpufreq/scaling_governor"},
};

static struct {
    const char * root;
    fact_function fact;
    uint64_t deadline;
    struct cpu_list online;
    struct text cores, packages, caches, missing;
    char file[FILE_BYTES];
} of;

/* The first line of <root>/<folder><number>/<name>; empty where there is none. The next call replaces it. */
static const char * line_of(const char * folder, int number, const char * name) {
    char path[ROOT_BYTES + FILE_BYTES] = "", digits[NUMBER_BYTES] = "";
    if (number >= 0) number_text(digits, (uint64_t) number);
    strncat(path, of.root, ROOT_BYTES);
    strcat(strcat(strcat(strcat(path, folder), digits), number >= 0 ? "/" : ""), name);
    process_read_file(path, of.file, sizeof(of.file));
    of.file[strcspn(of.file, "\n")] = 0;
    return of.file;
}

#define CPU_FOLDER "/devices/system/cpu/"
#define OF_CPU CPU_FOLDER "cpu"

static const char * of_cpu(int cpu, const char * name) {
    return line_of(OF_CPU, cpu, name);
}

static void missing(const char * key) {
    if (of.missing.used) text_add(&of.missing, ", ");
    text_add(&of.missing, key);
}

static void write_text(const char * key, const struct text * text) {
    if (text->is_cut) missing(key);
    else if (text->used) of.fact(key, text->bytes);
}

static void add_by_value(struct by_value * by, const char * value, int cpu) {
    int i = 0;
    while (i < by->count && strcmp(by->values[i], value) != 0) i++;
    if (i == VALUES_MAX || strlen(value) >= VALUE_BYTES) {
        by->is_full = true;
        return;
    }
    if (i == by->count) strcpy(by->values[by->count++], value);
    by->cpus[i].bits[cpu / 64] |= 1ull << cpu % 64;
}

/* `value:cpus`, separated by |. */
static void write_by_value(const char * key, const struct by_value * by) {
    struct text text = {0};
    for (int i = 0; i < by->count; i++) {
        text_add(&text, i ? "|" : "");
        text_add(&text, by->values[i]);
        text_add(&text, ":");
        cpu_list_text(&text, &by->cpus[i]);
    }
    text.is_cut |= by->is_full;
    write_text(key, &text);
}

/* A list of the kernel becomes the next group. Returns its CPUs. */
static struct cpu_list add_group(struct text * groups, const char * list) {
    struct cpu_list cpus;
    cpu_list_parse(&cpus, list);
    text_add(groups, groups->used ? "|" : "");
    cpu_list_text(groups, &cpus);
    return cpus;
}

/* Older kernels have other names for these lists. */
static const char * list_of(int cpu, const char * name, const char * older) {
    const char * list = of_cpu(cpu, name);
    return *list ? list : of_cpu(cpu, older);
}

/* `L2 1280K`, and for the last level the CPUs that share each: `L3 32768K:0-7|8-15`. */
static void add_caches(int cpu, struct cpu_list * is_done) {
    static const char * const files[] = {"level", "type", "size", "shared_cpu_list"};
    char values[4][VALUE_BYTES], last[4][VALUE_BYTES] = {"", "", "", ""}, path[32];
    for (int index = 0; index < CACHES_MAX; index++) {
        for (int i = 0; i < 4; i++) {
            strcpy(path, "cache/index0/");
            path[strlen(path) - 2] = (char) ('0' + index);
            const char * value = of_cpu(cpu, strcat(path, files[i]));
            if (strlen(value) >= VALUE_BYTES) value = "";
            strcpy(values[i], value);
        }
        if (!*values[0]) break;
        if (strcmp(values[1], "Instruction") != 0 && atoi(values[0]) >= atoi(last[0])) memcpy(last, values, sizeof(last));
    }
    struct cpu_list shared;
    cpu_list_parse(&shared, last[3]);
    cpu_list_add_all(is_done, &shared);
    if (!*last[0] || !*last[3]) return;
    text_add(&of.caches, of.caches.used ? "|L" : "L");
    text_add(&of.caches, last[0]);
    text_add(&of.caches, " ");
    text_add(&of.caches, last[2]);
    text_add(&of.caches, ":");
    cpu_list_text(&of.caches, &shared);
}

static uint64_t cpu_time(void) {
    struct timespec time = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

static bool has_time(void) {
    return cpu_time() < of.deadline;
}

/* The first CPU of each core, its siblings, packages and caches. Returns false if there was no time for all. */
static bool read_cores(struct cpu_list * firsts) {
    struct cpu_list in_core = {0}, in_package = {0}, has_cache = {0};
    for (int cpu = cpu_list_next(&of.online, 0); cpu >= 0; cpu = cpu_list_next(&of.online, cpu + 1)) {
        if (cpu_list_has(&in_core, cpu)) continue;
        const char * list = list_of(cpu, "topology/core_cpus_list", "topology/thread_siblings_list");
        if (!*list) return true; /* the kernel does not describe them */
        if (!has_time()) return false;
        const struct cpu_list siblings = add_group(&of.cores, list);
        cpu_list_add_all(&in_core, &siblings);
        firsts->bits[cpu / 64] |= 1ull << cpu % 64;
        if (!cpu_list_has(&in_package, cpu)) {
            const struct cpu_list package = add_group(&of.packages, list_of(cpu, "topology/package_cpus_list", "topology/core_siblings_list"));
            cpu_list_add_all(&in_package, &package);
        }
        if (!cpu_list_has(&has_cache, cpu)) add_caches(cpu, &has_cache);
    }
    return true;
}

static void write_cores(void) {
    struct cpu_list firsts = {0};
    if (read_cores(&firsts)) {
        write_text("topology.cores", &of.cores);
        write_text("topology.packages", &of.packages);
        write_text("topology.caches", &of.caches);
    } else missing("topology.cores");
    /* Siblings of a core have its capacity, and the processor gives them one clock: only the first is looked at. */
    for (int i = 0; i < ATTRIBUTES; i++) {
        struct by_value by = {0};
        for (int cpu = cpu_list_next(&firsts, 0); cpu >= 0 && !by.is_full; cpu = cpu_list_next(&firsts, cpu + 1)) {
            const char * value = of_cpu(cpu, attributes[i].file);
            if (*value) add_by_value(&by, value, cpu);
            else if (!by.count) break; /* no CPU has this file */
            by.is_full |= !has_time();
        }
        write_by_value(attributes[i].key, &by);
    }
}

static int node_count;

int topology_nodes(void) {
    return node_count;
}

/* `0:0-31|1:32-63`; a node may have no CPUs. */
static void write_nodes(void) {
    struct cpu_list nodes;
    struct text text = {0};
    cpu_list_parse(&nodes, line_of("/devices/system/node/", -1, "online"));
    node_count = 0;
    for (int node = cpu_list_next(&nodes, 0); node >= 0; node = cpu_list_next(&nodes, node + 1)) {
        char number[NUMBER_BYTES];
        node_count++;
        number_text(number, (uint64_t) node);
        text_add(&text, text.used ? "|" : "");
        text_add(&text, number);
        text_add(&text, ":");
        text_add(&text, line_of("/devices/system/node/node", node, "cpulist"));
    }
    write_text("topology.nodes", &text);
}

/* Intel's kinds of cores. Those of others differ by capacity. */
static void write_kinds(void) {
    static const char * const kinds[] = {"core", "atom", "lowpower"};
    char path[32] = "";
    struct text text = {0};
    for (int i = 0; i < 3; i++) {
        const char * cpus = line_of("/devices/cpu_", -1, strcat(strcpy(path, kinds[i]), "/cpus"));
        if (!*cpus) continue;
        text_add(&text, text.used ? "|" : "");
        text_add(&text, kinds[i]);
        text_add(&text, ":");
        text_add(&text, cpus);
    }
    write_text("topology.kinds", &text);
}

/* May the clock be above the nominal one? */
static void write_boost(void) {
    const char * boost = line_of(CPU_FOLDER, -1, "cpufreq/boost");
    if (*boost) of.fact("topology.boost", boost);
    else if (*(boost = line_of(CPU_FOLDER, -1, "intel_pstate/no_turbo"))) of.fact("topology.boost", *boost == '1' ? "0" : "1");
}

void topology_facts(const char * root, void (*fact)(const char * key, const char * value)) {
    memset(&of, 0, sizeof(of));
    of.root = strlen(root) < ROOT_BYTES ? root : "";
    of.fact = fact;
    of.deadline = cpu_time() + TIME_MAX_NS;
    struct text online = {0};
    cpu_list_parse(&of.online, line_of(CPU_FOLDER, -1, "online"));
    cpu_list_text(&online, &of.online);
    write_text("topology.online", &online);
    write_nodes();
    write_kinds();
    write_boost();
    write_cores();
    if (of.missing.used) fact("topology.missing", of.missing.bytes);
}
