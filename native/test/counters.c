/*
 * Tests counters: reading a kernel page with a simulated register, extrapolation, names, and what this machine counts.
 * Prints nothing and returns 0 on success.
 */
#define USER_PAGE_TEST
#include "recorder/counter-names.c"
#include "recorder/perf-event.c"
#include "recorder/counters.c"

#include <stdio.h>

static struct perf_event_mmap_page page;
static uint64_t counted; /* value of the simulated register */
static int changes_left; /* how often the kernel changes the page while it is read */

uint64_t user_page_register(uint32_t number) {
    if (number != 4) return 0;
    const uint64_t value = counted;
    if (changes_left > 0) {
        changes_left--;
        page.lock += 2;
        page.offset += 1000;
    }
    return value;
}

uint32_t registry_name(const char * text) {
    return (uint32_t) strlen(text);
}

static void expect(bool holds, const char * what) {
    if (holds) return;
    printf("counters: %s\n", what);
    exit(1);
}

static bool is_counted(uint64_t wanted) {
    uint64_t count = 0, on = 0;
    return user_page_count(&page, &count, &on) && count == wanted && on == page.time_enabled;
}

static void test_pages(void) {
    uint64_t count = 7, on = 0;
    page = (struct perf_event_mmap_page){.index = 5, .offset = 1000000, .pmc_width = 48, .time_enabled = 9, .time_running = 9};
    expect(!user_page_count(&page, &count, &on), "reads a register that it may not read");
    page.cap_user_rdpmc = 1;
    counted = 42;
    expect(is_counted(1000042), "does not add the register to the offset");
    counted = (UINT64_C(1) << 48) - 42; /* the kernel starts registers below 0, so that they overflow in time */
    expect(is_counted(999958), "takes a register of 48 bits for one of 64");
    page.pmc_width = 64;
    counted = (uint64_t) -3;
    expect(is_counted(999997), "does not read registers of 64 bits");
    page.pmc_width = 32;
    counted = UINT32_MAX;
    expect(is_counted(999999), "does not read registers of 32 bits");
    page.offset = -1;
    counted = 11;
    expect(is_counted(10), "does not read offsets below 0");
    page.offset = 0;
    changes_left = 3;
    expect(is_counted(3011), "mixes what the page said before with what it says after");
    changes_left = 1000;
    expect(!user_page_count(&page, &count, &on), "waits for ever for a page that always changes");
    changes_left = 0;
    page.index = 0;
    expect(!user_page_count(&page, &count, &on), "reads an event that is in no register");
    page.index = 5;
    page.time_running = 8;
    expect(!user_page_count(&page, &count, &on), "does not see that the register was shared");
    page.pmc_width = 0;
    page.time_running = 9;
    expect(!user_page_count(&page, &count, &on), "believes in a register without bits");
}

static void test_extrapolation(void) {
    expect(extrapolated(100, 300, 100) == 300, "a third of the time is not three times the count");
    expect(extrapolated(100, 300, 0) == 0, "counts what was never counted");
    expect(extrapolated(UINT64_MAX / 2, 4000000000, 2000000000) == UINT64_MAX - 1, "overflows");
}

static void test_names(void) {
    struct counter counter;
    expect(!counter_find(&counter, "cycles", 6) && counter.type == PERF_TYPE_HARDWARE, "cycles");
    expect(!counter_find(&counter, "r01c2", 5) && counter.type == PERF_TYPE_RAW && counter.config == 0x1c2, "a raw code");
    expect(!counter_find(&counter, "r1,cycles", 2) && counter.config == 1, "a name that ends at a comma");
    expect(!counter_find(&counter, "software/config=0x2/", 20) && counter.type == PERF_TYPE_SOFTWARE && counter.config == 2,
           "an event of a unit");
    static const char * const wrong[] = {"", "r", "rx", "r-1", "cycle", "cycles2", "software/2/", "software/config=/",
                                         "software/config=2", "no/config=2/", "../software/config=2/", "/config=1/"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        expect(counter_find(&counter, wrong[i], strlen(wrong[i])) != NULL, wrong[i]);
    }
    char longest[200];
    memset(longest, '1', sizeof(longest));
    longest[0] = 'r';
    expect(counter_find(&counter, longest, sizeof(longest)) != NULL, "a long name");
}

static char facts[2][TEXT_BYTES];

static void fact(const char * key, const char * value) {
    strcpy(facts[strcmp(key, "counters") != 0], value);
}

/* Counters that every machine has. */
static void test_machine(const char * path) {
    enum { PAGES = 50 };
    struct ggtrace * log = ggtrace_open(path, &(struct ggtrace_options){.replace = true});
    expect(log, "no log");
    setenv("GGML2PERFETTO_COUNTERS", "page-faults,,task-clock,nonsense,page-faults,minor-faults,bytes-read", 1);
    counters_start(log, fact);
    expect(strcmp(facts[0], "page-faults, task-clock, minor-faults, bytes-read") == 0, facts[0]);
    expect(strcmp(facts[1], "nonsense: there is no counter of that name") == 0, facts[1]);
    const size_t size = (size_t) sysconf(_SC_PAGESIZE);
    volatile char * memory = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *) memory, PAGES * size, MADV_NOHUGEPAGE);
    struct counts before, after;
    counters_join();
    counters_read(&before);
    counters_read(&before);
    for (size_t i = 0; i < PAGES; i++) memory[i * size] = 1;
    counters_read(&after);
    const uint64_t faults = after.values[0] - before.values[0];
    expect(faults >= PAGES, "page faults"); /* sanitizers cause additional ones */
    expect(after.values[2] - before.values[2] == faults, "minor faults");
    expect(after.values[1] > before.values[1], "the task's clock does not advance");
    expect(after.values[3] == before.values[3], "something was read");
    counters_write(ggtrace_writer_of_thread(log, 0), ggtrace_now(), &before, &after);
    expect(ggtrace_totals(log).written == 1, "writes no record");
    counters_leave();
    ggtrace_close(log);
    unlink(path);
}

int main(int count, char ** args) {
    test_pages();
    test_extrapolation();
    test_names();
    test_machine(count > 1 ? args[1] : "counters.ggtrace");
    return 0;
}
