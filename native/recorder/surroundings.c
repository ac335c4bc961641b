#include "common/system.h"
#include "recorder/surroundings.h"

#include "common/environment.h"
#include "common/process.h"
#include "common/redact.h"
#include "recorder/cpu-list.h"
#include "recorder/lines.h"
#include "recorder/numa.h"
#include "recorder/topology.h"

enum { CPUS_MAX = 1 << 15, VARIABLES_MAX = 64, VARIABLE_BYTES = 512 };
/* Version 1 has no word for "no limit", but a number near 2^63. */
static const uint64_t NO_LIMIT = 1ull << 60;

/* ---- The process's control group ---- */

/* Its folder of a controller. The groups above it limit it too, up to where the hierarchy is mounted. */
struct group {
    bool is_first_version;
    size_t top; /* length of the path of the mount */
    char path[PATH_BYTES];
};

/* Is the name among those that are separated by commas? */
static bool lists(const char * names, const char * name) {
    const size_t length = strlen(name);
    for (const char * at = names; at; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0)) return true;
    return false;
}

/* Of /proc/self/cgroup: `4:cpu,cpuacct:/path`, in the second version `0::/path`. */
static bool find_path(const char * controller, struct group * group, char path[LINE_BYTES]) {
    struct lines lines;
    bool is_found = false;
    group->is_first_version = false;
    if (!lines_open(&lines, "/proc/self/cgroup")) return false;
    for (char * line; !group->is_first_version && (line = lines_next(&lines));) {
        char * names = strchr(line, ':'), * at = names ? strchr(names + 1, ':') : NULL;
        if (!at) continue;
        *at++ = 0;
        group->is_first_version = lists(names + 1, controller);
        if (!group->is_first_version && names[1]) continue;
        strcpy(path, at);
        is_found = true;
    }
    close(lines.file);
    return is_found;
}

/* Of /proc/self/mountinfo: `36 35 0:30 /root /mount/point rw shared:1 - cgroup cgroup rw,cpu`. */
static bool is_mount(char * line, const char * controller, const struct group * group, char ** root, char ** point) {
    char * type = strstr(line, " - ");
    if (!type) return false;
    *type = 0;
    char * kept, * options = NULL;
    *root = *point = NULL;
    strtok_r(line, " ", &kept);
    for (int i = 0; i < 2; i++) strtok_r(NULL, " ", &kept);
    *root = strtok_r(NULL, " ", &kept);
    *point = strtok_r(NULL, " ", &kept);
    type = strtok_r(type + 3, " ", &kept);
    for (char * word; (word = strtok_r(NULL, " ", &kept));) options = word;
    if (!*point || !type) return false;
    if (!group->is_first_version) return strcmp(type, "cgroup2") == 0;
    return strcmp(type, "cgroup") == 0 && options && lists(options, controller);
}

static bool find_group(const char * controller, struct group * group) {
    char path[LINE_BYTES], * root, * point;
    struct lines lines;
    bool is_found = false;
    if (!find_path(controller, group, path) || !lines_open(&lines, "/proc/self/mountinfo")) return false;
    for (char * line; !is_found && (line = lines_next(&lines));) {
        if (!is_mount(line, controller, group, &root, &point)) continue;
        const size_t shared = strcmp(root, "/") == 0 ? 0 : strlen(root);
        const char * below = strncmp(path, root, shared) == 0 ? path + shared : "";
        group->top = strlen(point);
        if (group->top + strlen(below) >= sizeof(group->path)) break;
        strcat(strcpy(group->path, point), strcmp(below, "/") == 0 ? "" : below);
        is_found = true;
    }
    close(lines.file);
    return is_found;
}

/* The group above; false: there is none. */
static bool go_up(struct group * group) {
    char * slash = strrchr(group->path, '/');
    if (!slash || (size_t) (slash - group->path) < group->top) return false;
    *slash = 0;
    return true;
}

/* The first line of a file of the group; empty if there is none. */
static const char * first_line(const struct group * group, const char * name, struct lines * lines) {
    char path[PATH_BYTES + 64];
    if (!lines_open(lines, strcat(strcat(strcpy(path, group->path), "/"), name))) return "";
    const char * line = lines_next(lines);
    close(lines->file);
    return line ? line : "";
}

/* ---- CPU time ---- */

struct limit {
    uint64_t quota, period; /* µs */
};

/* CPU time in each period; a quota of 0: unlimited. */
static struct limit limit_of(const struct group * group) {
    struct lines lines;
    struct limit limit = {0};
    char * rest;
    const char * text = first_line(group, group->is_first_version ? "cpu.cfs_quota_us" : "cpu.max", &lines);
    if (*text < '0' || *text > '9') return limit; /* -1, max */
    limit.quota = strtoull(text, &rest, 10);
    limit.period = strtoull(group->is_first_version ? first_line(group, "cpu.cfs_period_us", &lines) : rest, NULL, 10);
    return limit.period ? limit : (struct limit){0};
}

/* The group with the lowest limit. */
static struct group limiting;
static struct limit lowest;

static bool is_lower(struct limit a, struct limit b) {
    return a.quota && (!b.quota || (double) a.quota / (double) a.period < (double) b.quota / (double) b.period);
}

struct throttled {
    uint64_t periods, throttled_periods, ns;
};

static struct throttled read_throttled(void) {
    struct throttled of = {0};
    struct lines lines;
    char path[PATH_BYTES + 64];
    if (!lines_open(&lines, strcat(strcpy(path, limiting.path), "/cpu.stat"))) return of;
    for (char * line; (line = lines_next(&lines));) {
        char * value = strchr(line, ' ');
        if (!value) continue;
        *value++ = 0;
        const uint64_t number = strtoull(value, NULL, 10);
        if (strcmp(line, "nr_periods") == 0) of.periods = number;
        else if (strcmp(line, "nr_throttled") == 0) of.throttled_periods = number;
        else if (strcmp(line, "throttled_time") == 0) of.ns = number;
        else if (strcmp(line, "throttled_usec") == 0) of.ns = number * 1000;
    }
    close(lines.file);
    return of;
}

static struct throttled at_start;

/* ---- Facts ---- */

typedef void (*fact_function)(const char * key, const char * value);

static void fact_number(fact_function fact, const char * key, uint64_t number) {
    char text[NUMBER_BYTES];
    number_text(text, number);
    fact(key, text);
}

/* The CPUs on which this thread may run: by its affinity, within those of its control group. */
static void allowed_facts(fact_function fact) {
    uint64_t bits[CPUS_MAX / 64];
    struct cpu_list cpus;
    struct text list = {0};
    if (sched_getaffinity(0, sizeof(bits), (cpu_set_t *) bits) != 0) return;
    const int count = CPU_COUNT_S(sizeof(bits), (cpu_set_t *) bits);
    fact_number(fact, "cpus.allowed", (uint64_t) count);
    memcpy(&cpus, bits, sizeof(cpus));
    cpu_list_text(&list, &cpus);
    const bool is_whole = CPU_COUNT_S(sizeof(cpus), (cpu_set_t *) bits) == count;
    if (is_whole && !list.is_cut) fact("cpus.allowed_list", list.bytes);
}

/* Those of its control group. */
static void cpuset_facts(fact_function fact) {
    struct group group;
    struct lines lines;
    if (!find_group("cpuset", &group)) return;
    do {
        const char * cpus = first_line(&group, group.is_first_version ? "cpuset.effective_cpus" : "cpuset.cpus.effective", &lines);
        if (!*cpus) continue; /* the controller is not enabled in this group */
        fact("cpuset.cpus", cpus);
        return;
    } while (go_up(&group));
}

static void quota_facts(fact_function fact) {
    struct group group;
    if (!find_group("cpu", &group)) return;
    do {
        const struct limit limit = limit_of(&group);
        if (is_lower(limit, lowest)) lowest = limit, limiting = group;
    } while (go_up(&group));
    if (!lowest.quota) return;
    fact_number(fact, "cpu.quota_us", lowest.quota);
    fact_number(fact, "cpu.period_us", lowest.period);
    at_start = read_throttled();
}

static void memory_facts(fact_function fact) {
    struct group group;
    struct lines lines;
    uint64_t least = UINT64_MAX;
    if (!find_group("memory", &group)) return;
    do {
        const char * text = first_line(&group, group.is_first_version ? "memory.limit_in_bytes" : "memory.max", &lines);
        const uint64_t limit = *text < '0' || *text > '9' ? UINT64_MAX : strtoull(text, NULL, 10);
        if (limit < least) least = limit;
    } while (go_up(&group));
    if (least < NO_LIMIT) fact_number(fact, "memory.limit_bytes", least);
}

/* Is it a variable that sets what runtimes of threads, ggml, llama.cpp and drivers of GPUs do? */
static bool is_recorded(const char * variable) {
    if (strncmp(variable, "GGML_VK_DEBUG_MARKERS=", 22) == 0) return false; /* the recorder sets it */
    static const char * const prefixes[] = {"OMP_", "KMP_", "GOMP_", "GGML_", "LLAMA_", "MKL_", "OPENBLAS_", "BLIS_", "CUDA_VISIBLE_DEVICES=",
                                            "HIP_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES="};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

/* Without secrets, as the command line. */
static void variable_facts(fact_function fact) {
    char text[VARIABLE_BYTES], key[VARIABLE_BYTES + 4];
    int count = 0;
    for (char ** at = environ; at && *at && count < VARIABLES_MAX; at++) {
        if (!is_recorded(*at)) continue;
        redact_command(*at, strlen(*at), text, sizeof(text));
        char * value = strchr(text, '=');
        if (!value || !value[1]) continue;
        *value++ = 0;
        fact(strcat(strcpy(key, "env."), text), value);
        count++;
    }
}

void surroundings_open(fact_function fact) {
    const int kept = errno;
    const char * root = environment(ENV_SYS);
    allowed_facts(fact);
    cpuset_facts(fact);
    quota_facts(fact);
    memory_facts(fact);
    variable_facts(fact);
    topology_facts(root ? root : "/sys", fact);
    numa_facts(fact);
    errno = kept;
}

void surroundings_finish(fact_function fact) {
    if (!lowest.quota) return;
    const struct throttled now = read_throttled();
    fact_number(fact, "cpu.periods", now.periods - at_start.periods);
    fact_number(fact, "cpu.throttled_periods", now.throttled_periods - at_start.throttled_periods);
    fact_number(fact, "cpu.throttled_ns", now.ns - at_start.ns);
}
