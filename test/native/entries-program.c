/*
 * Redirects each function of a generated file (entries.test.ts), and prints one line for each: its name, why it was left alone or `redirected`
 * or `keeping`, whether its results are the same before and after, how often it was called directly, and how often its hook was.
 *     entries-program                     the functions
 *     entries-program lengths < LIST      counts instructions of another program whose length is read wrong: lines `hexadecimal bytes`
 */
#define _GNU_SOURCE
#include "entries-program.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder/entry.h"
#include "recorder/instruction.h"
#include "recorder/register-use.h"
#include "recorder/symbols.h"

enum { FUNCTIONS_MAX = 512, ROOMS_BYTES = FUNCTIONS_MAX * ENTRY_ROOM_BYTES, ARGUMENTS = 6 };

static uint8_t rooms[ROOMS_BYTES + 4096] __attribute__((aligned(4096)));
static const long arguments[ARGUMENTS][3] = {{0, 0, 0}, {1, 2, 3}, {-5, 7, 11}, {100, 3, -2}, {6, 6, 6}, {41, -1, 12}};

static int note_base(struct dl_phdr_info * info, size_t size, void * base) {
    (void) size;
    *(uintptr_t *) base = info->dlpi_addr;
    return 1;
}

static uint64_t results_of(long (*function)(long, long, long)) {
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < ARGUMENTS; i++) {
        const uint64_t result = (uint64_t) function(arguments[i][0], arguments[i][1], arguments[i][2]);
        hash = (hash ^ result) * 1099511628211u;
    }
    return hash;
}

static const ElfW(Sym) * part_of(const struct symbols * symbols, const char * name) {
    char cold[256];
    snprintf(cold, sizeof cold, "%s.cold", name);
    return symbols_find(symbols, cold);
}

static void reset(void) {
    test_state = 1;
}

static int test_functions(void) {
    static uint64_t before[FUNCTIONS_MAX];
    static const char * problems[FUNCTIONS_MAX];
    static bool keeps[FUNCTIONS_MAX];
    uintptr_t base = 0;
    struct symbols symbols;
    dl_iterate_phdr(note_base, &base);
    if (!symbols_open(&symbols, "/proc/self/exe", SHT_SYMTAB)) return 3;
    for (int i = 0; i < test_count; i++) reset(), before[i] = results_of(test_functions_list[i].function);
    if (mprotect(rooms, sizeof rooms, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 4;
    static struct function_entry entries[FUNCTIONS_MAX];
    for (int i = 0; i < test_count; i++) {
        const struct test_function * test = &test_functions_list[i];
        const ElfW(Sym) * symbol = symbols_find(&symbols, test->name);
        const struct code function = register_use_code(base, symbol), part = register_use_code(base, part_of(&symbols, test->name));
        if (function.bytes != (uint8_t *) (uintptr_t) test->function) return 5;
        problems[i] = entry_find(&entries[i], &function, &part);
        if (problems[i]) continue;
        keeps[i] = !register_use_is_full(&symbols, base, &function, &part);
        const enum entry_call call = keeps[i] ? ENTRY_KEEPING_RESULT : ENTRY_PLAIN;
        problems[i] = entry_prepare(&entries[i], rooms + i * ENTRY_ROOM_BYTES, (const void *) (uintptr_t) test->hook, call, (void **) test->real);
    }
    for (int i = 0; i < test_count; i++) {
        if (problems[i]) continue;
        uint8_t * page = (uint8_t *) ((uintptr_t) entries[i].at & ~(uintptr_t) 4095);
        if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0 && mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 6;
        entry_redirect(&entries[i], rooms + i * ENTRY_ROOM_BYTES);
    }
    for (int i = 0; i < test_count; i++) {
        const struct test_function * test = &test_functions_list[i];
        const long hits = *test->hits;
        reset();
        const bool is_same = results_of(test->function) == before[i];
        printf("%s\t%s\t%s\t%d\t%ld\n", test->name, problems[i] ? problems[i] : keeps[i] ? "keeping" : "redirected", is_same ? "same" : "DIFFERENT", ARGUMENTS, *test->hits - hits);
    }
    return 0;
}

static int test_lengths(void) {
    char line[256];
    long right = 0, wrong = 0, unknown = 0;
    while (fgets(line, sizeof line, stdin)) {
        uint8_t bytes[INSTRUCTION_BYTES_MAX + 1] = {0};
        size_t count = 0;
        char * at = line;
        for (char * end; count < INSTRUCTION_BYTES_MAX; at = end) {
            const unsigned long byte = strtoul(at, &end, 16);
            if (end == at) break;
            bytes[count++] = (uint8_t) byte;
        }
        struct instruction instruction;
        /* Behind it there is more code. */
        if (!instruction_read(&instruction, bytes, INSTRUCTION_BYTES_MAX)) unknown++, fprintf(stderr, "unknown: %s", line);
        else if (instruction.length != count) wrong++, fprintf(stderr, "%d: %s", instruction.length, line);
        else right++;
    }
    printf("%ld %ld %ld\n", right, wrong, unknown);
    return 0;
}

int main(int argc, char ** argv) {
    return argc > 1 && strcmp(argv[1], "lengths") == 0 ? test_lengths() : test_functions();
}
