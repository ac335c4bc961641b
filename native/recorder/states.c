#include "recorder/states.h"

#include "recorder/own-threads.h"
#include "recorder/perf-event.h"
#include "recorder/registry.h"

/* The kernel lets every user have 516 KiB per CPU (perf_event_mlock_kb), for all programs. */
enum { RING_PAGES_MOST = 128, RING_PAGES_OF_WRAPPER = 32, RING_PAGES_LEAST = 1, CPUS_MAX = 1024 };
/* How often this thread looks for other threads. That takes longer than to read the rings. */
enum { LOOK_EVERY_NS = 100000000 };
/*
 * How often the rings are read: so often that one is 1/32 full at the rate so far, because the rate may rise at any moment. Threads that
 * wake each other at each barrier fill a ring of 128 pages in 20 ms at the earliest.
 */
enum { DRAIN_EARLIEST_NS = 1000000, DRAIN_LATEST_NS = 20000000, FULL_PART = 32 };
/* Other CPUs may still be writing newer records: up to this age, records are in order. */
enum { SETTLE_NS = 1000000 };

/* The fields that sample_type requests, at the end of every record. */
struct place {
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, reserved;
};

/* The fields that all record types we use have in common. */
struct record {
    struct perf_event_header header;
    uint8_t rest[64];
};

struct ring {
    struct perf_event_mmap_page * page; /* NULL: no ring */
    uint64_t tail;
    uint64_t start; /* the tail when the log began */
    /* The record at `tail`, if `has`. */
    bool has;
    struct record record;
    struct place place;
};

static struct ring rings[CPUS_MAX];
static int ring_count;
static const char * problem = "not asked for";
static struct ggtrace * states_log;
static pthread_t drainer;
static uint32_t drainer_tid;
static pid_t owner; /* the process that the kernel reports on */
static bool is_draining, ends;
/* State of the thread that started the drainer: running. */
static struct {
    uint64_t time;
    uint32_t tid, cpu;
} starter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;

static int open_event(int cpu) {
    struct perf_event_attr event = {
        .size = sizeof(event),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .inherit = 1,
        .inherit_thread = 1, /* Linux 5.13; otherwise child processes would be included */
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .context_switch = 1,
        .task = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    return perf_event_open(&event, 0, cpu, -1);
}

/* The mapping keeps the event alive after the file is closed, so that the program's file descriptors do not change. */
static struct perf_event_mmap_page * map_ring(int file, int pages) {
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    for (; pages >= RING_PAGES_LEAST; pages /= 2) {
        void * memory = mmap(NULL, (size_t) (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory != MAP_FAILED) return madvise(memory, (size_t) (pages + 1) * page, MADV_DONTFORK), memory;
        if (errno != EPERM && errno != ENOMEM) return NULL;
    }
    return NULL;
}

static const char * explain(int error) {
    return error == EINVAL ? "this kernel cannot report the states of threads (this needs Linux 5.13)" : perf_event_why(error);
}

static void give_back(void) {
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    for (int i = 0; i < ring_count; i++) munmap(rings[i].page, page + rings[i].page->data_size);
    ring_count = 0;
}

void states_prepare(bool may_wrap) {
    const int kept = errno;
    const int pages = may_wrap ? RING_PAGES_OF_WRAPPER : RING_PAGES_MOST;
    const int cpus = (int) sysconf(_SC_NPROCESSORS_CONF);
    problem = NULL;
    owner = getpid();
    for (int cpu = 0; cpu < cpus && cpu < CPUS_MAX && !problem; cpu++) {
        const int file = open_event(cpu);
        if (file < 0 && errno == ENODEV) continue; /* the CPU is offline */
        if (file < 0) {
            problem = explain(errno);
            break;
        }
        struct perf_event_mmap_page * page = map_ring(file, pages);
        close(file);
        if (page) rings[ring_count++] = (struct ring){.page = page};
        else problem = "there is no memory for the kernel's records (perf_event_mlock_kb, RLIMIT_MEMLOCK)";
    }
    if (problem) give_back();
    errno = kept;
}

/* ---- Draining ---- */

static void copy_out(const struct ring * ring, uint64_t from, void * to, size_t bytes) {
    const uint8_t * data = (const uint8_t *) ring->page + ring->page->data_offset;
    const uint64_t mask = ring->page->data_size - 1;
    for (size_t i = 0; i < bytes; i++) ((uint8_t *) to)[i] = data[(from + i) & mask];
}

/* Copies the record at the tail, if there is one. */
static bool peek(struct ring * ring, uint64_t head) {
    if (ring->has) return true;
    if (ring->tail >= head) return false;
    copy_out(ring, ring->tail, &ring->record.header, sizeof(ring->record.header));
    const uint16_t size = ring->record.header.size;
    if (size < sizeof(struct perf_event_header) + sizeof(struct place)) {
        ring->tail = head; /* unknown layout: skip everything */
        return false;
    }
    const size_t rest = size - sizeof(struct perf_event_header), kept = sizeof(ring->record.rest);
    copy_out(ring, ring->tail + sizeof(struct perf_event_header), ring->record.rest, rest < kept ? rest : kept);
    copy_out(ring, ring->tail + size - sizeof(struct place), &ring->place, sizeof(struct place));
    ring->has = true;
    return true;
}

static void drop(struct ring * ring) {
    ring->tail += ring->record.header.size;
    ring->has = false;
    __atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

static void write_switch(struct ggtrace_writer * writer, const struct ring * ring) {
    const uint16_t misc = ring->record.header.misc;
    const bool is_out = misc & PERF_RECORD_MISC_SWITCH_OUT, is_preempted = misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    const struct place * place = &ring->place;
    if (place->tid == drainer_tid) return;
    const enum ggtrace_state state = !is_out ? GGTRACE_RUNNING : is_preempted ? GGTRACE_RUNNABLE : GGTRACE_BLOCKED;
    ggtrace_state(writer, place->time, place->tid, place->cpu, state);
}

/*
 * The kernel reports a loss with the next record for which there is space. Nothing reads a ring before the log begins, so it may have
 * been full then: such a loss is reported by the first record afterwards.
 */
static bool is_before_log(const struct ring * ring) {
    return ring->place.time < starter.time || (ring->record.header.type == PERF_RECORD_LOST && ring->tail == ring->start);
}

static void write_record(struct ggtrace_writer * writer, const struct ring * ring) {
    uint64_t numbers[2];
    if (is_before_log(ring)) return;
    __builtin_memcpy(numbers, ring->record.rest, sizeof(numbers));
    switch (ring->record.header.type) {
        case PERF_RECORD_SWITCH:
            write_switch(writer, ring);
            return;
        case PERF_RECORD_EXIT:
            if (ring->place.tid != drainer_tid) {
                ggtrace_state(writer, ring->place.time, ring->place.tid, ring->place.cpu, GGTRACE_ENDED);
            }
            return;
        case PERF_RECORD_LOST:
            ggtrace_loss(writer, ring->place.time, (uint32_t) numbers[1], registry_name("thread states"));
            return;
        default:
            return;
    }
}

/* How many times fuller a ring is than it should be when it is read; below 1 it may be read later. */
static double fullest(void) {
    double most = 0;
    for (int i = 0; i < ring_count; i++) {
        const uint64_t used = __atomic_load_n(&rings[i].page->data_head, __ATOMIC_RELAXED) - rings[i].tail;
        const double times = (double) used * FULL_PART / (double) rings[i].page->data_size;
        if (times > most) most = times;
    }
    return most;
}

static uint64_t next_interval(uint64_t interval) {
    const double most = fullest();
    if (most * DRAIN_LATEST_NS <= (double) interval) return DRAIN_LATEST_NS;
    const uint64_t next = (uint64_t) ((double) interval / most);
    return next < DRAIN_EARLIEST_NS ? DRAIN_EARLIEST_NS : next;
}

/* Writes all records up to a time, in order of time. */
static void drain(uint64_t until) {
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(states_log, GGTRACE_NO_WORKER);
    uint64_t heads[CPUS_MAX];
    for (int i = 0; i < ring_count; i++) heads[i] = __atomic_load_n(&rings[i].page->data_head, __ATOMIC_ACQUIRE);
    for (;;) {
        struct ring * first = NULL;
        for (int i = 0; i < ring_count; i++) {
            if (!peek(&rings[i], heads[i])) continue;
            if (!first || rings[i].place.time < first->place.time) first = &rings[i];
        }
        if (!first || first->place.time > until) return;
        write_record(writer, first);
        drop(first);
    }
}

/*
 * The rings must not overflow while others compute. From Linux 6.12 on, a thread with a short time slice runs early. Of a program under SCHED_FIFO,
 * a thread of the same priority would run only when another one waits.
 */
static void ask_for_early_turns(void) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } wish = {.size = sizeof(wish), .nice = getpriority(PRIO_PROCESS, 0), .runtime = 100000};
    const int policy = sched_getscheduler(0);
    if (policy == SCHED_OTHER) syscall(SYS_sched_setattr, 0, &wish, 0);
    struct sched_param own;
    if ((policy != SCHED_FIFO && policy != SCHED_RR) || sched_getparam(0, &own) != 0) return;
    own.sched_priority++;
    sched_setscheduler(0, policy, &own); /* refused without the right to it, and above the highest */
}

/* Also ends where it cannot find out whether it is alone. */
static void * drain_often(void * unused) {
    (void) unused;
    ask_for_early_turns();
    pthread_mutex_lock(&lock);
    drainer_tid = (uint32_t) syscall(SYS_gettid);
    /* One writer for all states: records of two writers have no order. */
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(states_log, GGTRACE_NO_WORKER);
    ggtrace_state(writer, starter.time, starter.tid, starter.cpu, GGTRACE_RUNNING);
    enum company others = WITH_OTHERS;
    uint64_t interval = DRAIN_EARLIEST_NS, looked = 0;
    while (!ends) {
        if (ggtrace_now() - looked >= LOOK_EVERY_NS) {
            if ((others = own_thread_company()) != WITH_OTHERS) break;
            looked = ggtrace_now();
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long) interval;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        pthread_cond_timedwait(&wake, &lock, &until);
        interval = next_interval(interval);
        drain(ggtrace_now() - SETTLE_NS);
    }
    drain(UINT64_MAX);
    pthread_mutex_unlock(&lock);
    if (others == UNKNOWN) ggtrace_fact(states_log, "states.end", "the rest may be missing: /proc/self cannot be read any more");
    own_thread_leaves(others);
    return NULL;
}

/* Skips records from before the start of the log. */
static void skip_old(void) {
    for (int i = 0; i < ring_count; i++) {
        rings[i].tail = rings[i].start = __atomic_load_n(&rings[i].page->data_head, __ATOMIC_ACQUIRE);
        __atomic_store_n(&rings[i].page->data_tail, rings[i].tail, __ATOMIC_RELEASE);
    }
}

const char * states_start(struct ggtrace * log) {
    if (problem) return problem;
    if (owner != getpid()) return "the kernel reports only on the process that was started";
    states_log = log;
    if (own_thread_company() == UNKNOWN) return "/proc/self cannot be read, which the thread that reads the kernel's records needs";
    skip_old();
    /* The calling thread is running; the states of the others follow with their next change. Comes before all other records. */
    starter.time = ggtrace_now();
    starter.tid = (uint32_t) syscall(SYS_gettid);
    starter.cpu = (uint32_t) sched_getcpu();
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &attributes);
    pthread_condattr_destroy(&attributes);
    is_draining = own_thread_start(&drainer, drain_often);
    return is_draining ? NULL : "no thread could be created to read the kernel's records";
}

void states_stop(void) {
    /* A child that libc does not know about has no drainer either. */
    if (!is_draining || owner != getpid()) return;
    is_draining = false;
    pthread_mutex_lock(&lock);
    ends = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    /* A thread's states are in order only if one thread writes all of them: exit handlers may run on the drainer. */
    if (pthread_equal(drainer, pthread_self())) drain(UINT64_MAX);
    else pthread_join(drainer, NULL);
}

void states_forked(void) {
    is_draining = false;
    ring_count = 0;
}
