#include "recorder/numa.h"

#include "common/clock.h"
#include "common/hold.h"
#include "common/process.h"
#include "log/ggtrace-nvtx.h"
#include "recorder/cpu-list.h"
#include "recorder/full.h"
#include "recorder/libraries.h"
#include "recorder/lines.h"
#include "recorder/numa-policies.h"
#include "recorder/parts.h"
#include "recorder/recording.h"
#include "recorder/registry.h"
#include "recorder/topology.h"

enum {
    BUFFERS_MAX = 1024, LOOKS_MAX = 4096, /* of the process */
    EXACT_PAGES = 1024,                   /* of which each is asked for; of larger buffers a part */
    STRIDE = 11,                          /* of that part: coprime to numbers of nodes, over which pages may be interleaved */
    ASKED_MAX = 1 << 20, AT_ONCE = 512, RUNS_MAX = 8192, NODES_COUNTED = 64,
};
/* For each GiB, and at least. */
static const uint64_t LIMIT_NS = 20000000;
enum { GIB_BITS = 30 };
/* Numbers of `node` in a run that are no nodes, see docs/reference/ggtrace-format.md. */
enum { NODE_BITS = 12, NO_PAGE = 0xfff, NOT_KNOWN = 0xffe };

struct buffer {
    uint32_t id, policy, page_kb;
    uint64_t base, size;
    bool is_seen;
};

static struct buffer buffers[BUFFERS_MAX]; /* in no order; id 0: free */
static int buffer_count;
static _Atomic int unseen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;      /* of `buffers`; none is taken inside */
static pthread_mutex_t look_lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static int looks;
static bool is_refused;

bool numa_has_nodes(void) {
    return topology_nodes() > 1;
}

/* ---- Buffers ---- */

static void note_buffer(uint32_t id, uint64_t base, uint64_t size) {
    if (!base || !size) return;
    HOLD(&lock);
    int i = 0;
    while (i < buffer_count && buffers[i].id) i++;
    if (i == BUFFERS_MAX) {
        full_count(FULL_PAGES);
        return;
    }
    if (i == buffer_count) buffer_count++;
    buffers[i] = (struct buffer){.id = id, .base = base, .size = size};
    atomic_fetch_add_explicit(&unseen, 1, memory_order_relaxed);
}

/* Copies the first buffer from this place on; returns the place after it, or 0. */
static int next_buffer(int from, struct buffer * copy) {
    HOLD(&lock);
    for (int i = from; i < buffer_count; i++) {
        if (!buffers[i].id) continue;
        *copy = buffers[i];
        return i + 1;
    }
    return 0;
}

static void note_seen(const struct buffer * of) {
    HOLD(&lock);
    for (int i = 0; i < buffer_count; i++) {
        if (buffers[i].id != of->id) continue;
        if (!buffers[i].is_seen) atomic_fetch_sub_explicit(&unseen, 1, memory_order_relaxed);
        buffers[i] = *of;
        buffers[i].is_seen = true;
    }
}

/* ---- /proc/self/numa_maps ---- */

static bool is_number_of_node(const char * word) {
    return word[0] == 'N' && word[1] >= '0' && word[1] <= '9';
}

/* What /proc/self/numa_maps has of a mapping: `7f2c0000 interleave:0-1 anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4`. It has no ends. */
struct mapping {
    uint64_t start;
    uint32_t page_kb;
    uint64_t pages[NODES_COUNTED]; /* by node */
};

static bool parse_mapping(char * line, struct mapping * of) {
    char * kept, * rest;
    memset(of, 0, sizeof(*of));
    char * word = strtok_r(line, " ", &kept);
    if (!word) return false;
    of->start = strtoull(word, &rest, 16);
    if (*rest) return false;
    while ((word = strtok_r(NULL, " ", &kept))) {
        if (strncmp(word, "kernelpagesize_kB=", 18) == 0) of->page_kb = (uint32_t) strtoul(word + 18, NULL, 10);
        if (!is_number_of_node(word)) continue;
        const unsigned long node = strtoul(word + 1, &rest, 10);
        if (*rest == '=' && node < NODES_COUNTED) of->pages[node] = strtoull(rest + 1, NULL, 10);
    }
    return of->page_kb != 0;
}

/* Calls `take` with each mapping and the start of the next one. The kernel counts pages for it: 13 ms for each GiB. */
static void read_maps(void (*take)(const struct mapping * of, uint64_t next, void * data), void * data) {
    static struct lines lines;
    static struct mapping mapping, next;
    bool has_one = false;
    if (!lines_open(&lines, "/proc/self/numa_maps")) return;
    for (char * line; (line = lines_next(&lines));) {
        if (!parse_mapping(line, &next)) continue;
        if (has_one) take(&mapping, next.start, data);
        mapping = next;
        has_one = true;
    }
    if (has_one) take(&mapping, UINT64_MAX, data);
    close(lines.file);
}

static bool overlaps(const struct buffer * of, const struct mapping * mapping, uint64_t next) {
    return mapping->start < of->base + of->size && next > of->base;
}

/* ---- Pages ---- */

/* Runs of the pages that were asked for, in order. */
struct runs {
    const struct buffer * of;
    uint32_t moment, page_bytes, stride, count;
    uint64_t time, first, next; /* addresses: of the first page of these runs, and of the page after the last one */
    uint32_t words[RUNS_MAX];
};

enum { HEAD_WORDS = 10 };

static void write_runs(struct runs * runs) {
    static uint32_t words[HEAD_WORDS + RUNS_MAX];
    if (!runs->count) return;
    const uint32_t head[HEAD_WORDS] = {
        runs->of->id, runs->moment, (uint32_t) runs->time, (uint32_t) (runs->time >> 32), (uint32_t) runs->first, (uint32_t) (runs->first >> 32),
        runs->page_bytes, runs->stride, runs->of->policy, runs->of->page_kb,
    };
    memcpy(words, head, sizeof(head));
    memcpy(words + HEAD_WORDS, runs->words, 4 * runs->count);
    if (!ggtrace_define_numbers(recording.log, GGTRACE_PAGES, words, HEAD_WORDS + runs->count)) full_count(FULL_PAGES);
    runs->count = 0;
    runs->first = runs->next;
}

static void add_page(struct runs * runs, int status) {
    /* EFAULT: a hole of memory without a file, or the zero page. */
    const uint32_t node = status >= 0 && status < NOT_KNOWN ? (uint32_t) status : status == -ENOENT || status == -EFAULT ? NO_PAGE : NOT_KNOWN;
    uint32_t * last = runs->count ? &runs->words[runs->count - 1] : NULL;
    if (last && (*last & NO_PAGE) == node && *last >> NODE_BITS != UINT32_MAX >> NODE_BITS) *last += 1u << NODE_BITS;
    else {
        if (runs->count == RUNS_MAX) write_runs(runs);
        runs->words[runs->count++] = 1u << NODE_BITS | node;
    }
    runs->next += (uint64_t) runs->page_bytes * runs->stride;
}

/* Every how many pages one is asked for. */
static uint32_t stride_of(uint64_t pages) {
    uint64_t stride = pages > EXACT_PAGES ? STRIDE : 1;
    while (pages / stride > ASKED_MAX || (stride > STRIDE && (stride % 3 == 0 || stride % 5 == 0))) stride += 2;
    return (uint32_t) stride;
}

/* Asks for these pages of the program; returns false if the kernel does not permit it. Not in the memory of a device: such pages are not known. */
static bool ask(void ** pages, int * nodes, unsigned long count) {
    for (unsigned long i = 0; i < count; i++) nodes[i] = -EFAULT;
    if (syscall(SYS_move_pages, 0, count, pages, NULL, nodes, 0) == 0) return true;
    static bool is_written;
    if (!is_written) ggtrace_fact(recording.log, "numa.missing", errno == EPERM ? "pages: move_pages(2) is not permitted" : "pages: move_pages(2) fails");
    return !(is_written = is_refused = true);
}

/* Under the look lock. */
static void look_at(const struct buffer * of, uint32_t moment) {
    static struct runs runs;
    static void * pages[AT_ONCE];
    static int nodes[AT_ONCE];
    if (is_refused) return;
    if (++looks > LOOKS_MAX) {
        full_count(FULL_PAGES);
        return;
    }
    const uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE), first = of->base & ~(page - 1), end = of->base + of->size;
    const uint64_t step = page * stride_of((end - first + page - 1) / page), gibibytes = of->size >> GIB_BITS;
    const uint64_t start = clock_now(), deadline = start + LIMIT_NS * (gibibytes ? gibibytes : 1);
    runs.of = of;
    runs.moment = moment;
    runs.page_bytes = (uint32_t) page;
    runs.stride = (uint32_t) (step / page);
    runs.time = start;
    runs.first = runs.next = first;
    runs.count = 0;
    bool has_any = false;
    for (uint64_t at = first; at < end && (runs.stride == 1 || clock_now() < deadline);) {
        unsigned long count = 0;
        for (; count < AT_ONCE && at < end; at += step) pages[count++] = (void *) (uintptr_t) at;
        if (!ask(pages, nodes, count)) return;
        for (unsigned long i = 0; i < count; i++) {
            has_any |= nodes[i] >= 0;
            add_page(&runs, nodes[i]);
        }
    }
    if (has_any) write_runs(&runs); /* none: memory of a device, or not used yet */
}

enum { FIRST = 0, LAST = 1 };

/* Does ggml compute as on several nodes: does each worker get the same rows of a product each time? */
static void write_is_numa(void) {
    static bool is_written;
    bool (*is_numa)(void);
    if (is_written) return;
    *(void **) &is_numa = library_resolve("ggml_is_numa", NULL);
    if (is_numa) ggtrace_fact(recording.log, "numa.ggml", is_numa() ? "1" : "0");
    is_written = true;
}

/* Under the look lock. */
static void look_at_new(void) {
    enum { NEW_MAX = 64 };
    static struct buffer new[NEW_MAX];
    int count = 0;
    for (int i = 0; count < NEW_MAX && (i = next_buffer(i, &new[count]));) count += !new[count].is_seen;
    write_is_numa();
    for (int i = 0; i < count; i++) {
        new[i].policy = numa_policies_of(new[i].base, new[i].size);
        look_at(&new[i], FIRST);
        note_seen(&new[i]);
    }
}

void numa_look(void) {
    if (!atomic_load_explicit(&unseen, memory_order_relaxed) || recording_level() < LEVEL_GRAPH) return;
    const int kept = errno;
    const uint64_t start = parts_begin();
    {
        HOLD(&look_lock);
        look_at_new();
    }
    parts_end(start, GGTRACE_RECORDER);
    errno = kept;
}

void numa_end_buffer(uint32_t id) {
    if (!numa_has_nodes()) return;
    const int kept = errno;
    struct buffer of = {0};
    {
        HOLD(&lock);
        for (int i = 0; i < buffer_count; i++) {
            if (buffers[i].id != id) continue;
            of = buffers[i];
            buffers[i].id = 0;
            if (!of.is_seen) atomic_fetch_sub_explicit(&unseen, 1, memory_order_relaxed);
        }
    }
    if (of.is_seen) {
        HOLD(&look_lock);
        look_at(&of, LAST);
    }
    errno = kept;
}

/* ---- Facts ---- */

void numa_note_mode(int mode) {
    static const char * const modes[] = {"disabled", "distribute", "isolate", "numactl", "mirror"};
    if (numa_has_nodes() && mode >= 0 && mode < 5) ggtrace_fact(recording.log, "numa.mode", modes[mode]);
}

void numa_facts(void (*fact)(const char * key, const char * value)) {
    char text[NUMBER_BYTES] = "";
    if (!numa_has_nodes()) return;
    registry_note_buffers(note_buffer);
    process_read_file("/proc/sys/kernel/numa_balancing", text, sizeof(text));
    text[strcspn(text, "\n")] = 0;
    if (*text) fact("numa.balancing", text);
}

/* A mapping of a buffer has its page size; of others, the bytes are counted. */
static void add_mapping(const struct mapping * mapping, uint64_t next, void * data) {
    uint64_t * bytes = data;
    bool is_buffer = false;
    HOLD(&lock);
    for (int i = 0; i < buffer_count; i++) {
        if (!buffers[i].id || !overlaps(&buffers[i], mapping, next)) continue;
        if (mapping->page_kb > buffers[i].page_kb) buffers[i].page_kb = mapping->page_kb;
        is_buffer = true;
    }
    for (int node = 0; node < NODES_COUNTED && !is_buffer; node++) bytes[node] += mapping->pages[node] * mapping->page_kb * 1024;
}

static void write_rest(void (*fact)(const char * key, const char * value)) {
    uint64_t bytes[NODES_COUNTED] = {0};
    struct text text = {0};
    char digits[NUMBER_BYTES];
    read_maps(add_mapping, bytes);
    for (int node = 0; node < NODES_COUNTED; node++) {
        if (!bytes[node]) continue;
        number_text(digits, (uint64_t) node);
        text_add(&text, text.used ? "|" : "");
        text_add(&text, digits);
        number_text(digits, bytes[node]);
        text_add(&text, ":");
        text_add(&text, digits);
    }
    if (text.used) fact("numa.rest", text.bytes);
}

void numa_finish(void (*fact)(const char * key, const char * value)) {
    if (!numa_has_nodes()) return;
    struct buffer of;
    HOLD(&look_lock);
    write_rest(fact);
    for (int i = 0; (i = next_buffer(i, &of));) if (of.is_seen) look_at(&of, LAST);
}
