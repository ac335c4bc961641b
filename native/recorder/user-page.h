/*
 * Reads a hardware counter without a system call: from the CPU's register, with the help of the page that the kernel shares
 * per event (struct perf_event_mmap_page, perf_event_open(2)).
 */
#pragma once

#include "common/system.h"

#include <linux/perf_event.h>

#if defined(USER_PAGE_TEST)
uint64_t user_page_register(uint32_t number);
#elif defined(__x86_64__)
static inline uint64_t user_page_register(uint32_t number) {
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
    return (uint64_t) high << 32 | low;
}
#elif defined(__aarch64__)
/* Registers 0 to 30 are general counters, 31 is the cycle counter. The register number is part of the instruction. */
#define USER_PAGE_CASE(n) \
    case n: __asm__ volatile("mrs %0, pmevcntr" #n "_el0" : "=r"(value)); break;
static inline uint64_t user_page_register(uint32_t number) {
    uint64_t value = 0;
    __asm__ volatile("isb" ::: "memory");
    switch (number) {
        USER_PAGE_CASE(0) USER_PAGE_CASE(1) USER_PAGE_CASE(2) USER_PAGE_CASE(3) USER_PAGE_CASE(4) USER_PAGE_CASE(5)
        USER_PAGE_CASE(6) USER_PAGE_CASE(7) USER_PAGE_CASE(8) USER_PAGE_CASE(9) USER_PAGE_CASE(10) USER_PAGE_CASE(11)
        USER_PAGE_CASE(12) USER_PAGE_CASE(13) USER_PAGE_CASE(14) USER_PAGE_CASE(15) USER_PAGE_CASE(16) USER_PAGE_CASE(17)
        USER_PAGE_CASE(18) USER_PAGE_CASE(19) USER_PAGE_CASE(20) USER_PAGE_CASE(21) USER_PAGE_CASE(22) USER_PAGE_CASE(23)
        USER_PAGE_CASE(24) USER_PAGE_CASE(25) USER_PAGE_CASE(26) USER_PAGE_CASE(27) USER_PAGE_CASE(28) USER_PAGE_CASE(29)
        USER_PAGE_CASE(30)
        case 31: __asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value)); break;
    }
    return value;
}
#else
static inline uint64_t user_page_register(uint32_t number) {
    return number;
}
#endif

/* Architectures that the function above supports. */
#if defined(USER_PAGE_TEST) || defined(__x86_64__) || defined(__aarch64__)
enum { USER_PAGE_CAN_READ = 1 };
#else
enum { USER_PAGE_CAN_READ = 0 };
#endif

/* The kernel changes a page only while its thread is not running, or in an interrupt: one attempt is nearly always enough. */
enum { USER_PAGE_TRIES = 16 };

/*
 * The count of the page's event, and how long it was enabled (ns, at the kernel's last update). False if only a system call can
 * return it: the event is not in a register now, or has shared one, so that its count must be scaled.
 */
static inline bool user_page_count(const volatile struct perf_event_mmap_page * page, uint64_t * count, uint64_t * on) {
    for (int tries = 0; tries < USER_PAGE_TRIES && USER_PAGE_CAN_READ; tries++) {
        const uint32_t version = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
        const uint32_t index = page->index, width = page->pmc_width;
        if (!page->cap_user_rdpmc || index == 0 || width == 0 || width > 64) return false;
        const uint64_t enabled = page->time_enabled;
        if (enabled != page->time_running) return false;
        const uint64_t lost = 64 - width; /* number of bits that the register does not have */
        const int64_t since = (int64_t) (user_page_register(index - 1) << lost) >> lost;
        *count = (uint64_t) page->offset + (uint64_t) since;
        *on = enabled;
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the kernel changes the page on this CPU */
        if (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) == version) return true;
    }
    return false;
}
