#include "recorder/redirect.h"

#include <stdio.h>

#include "recorder/imports.h"

/* May the table be written? The linker makes it read-only when all its functions are known (RELRO). */
static int protection_of(uintptr_t page) {
    FILE * maps = fopen("/proc/self/maps", "re");
    char line[512];
    int protection = -1;
    while (maps && protection < 0 && fgets(line, sizeof(line), maps)) {
        unsigned long from, to;
        char may[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, may) != 3 || page < from || page >= to) continue;
        protection = (may[0] == 'r' ? PROT_READ : 0) | (may[1] == 'w' ? PROT_WRITE : 0) | (may[2] == 'x' ? PROT_EXEC : 0);
    }
    if (maps) fclose(maps);
    return protection;
}

bool redirect(const void * address, const char * name, void * function) {
    void ** slot = imports_slot(address, name);
    if (!slot) return false;
    const size_t size = (size_t) sysconf(_SC_PAGESIZE);
    const uintptr_t page = (uintptr_t) slot & ~(size - 1);
    const int before = protection_of(page);
    if (before < 0 || mprotect((void *) page, size, before | PROT_WRITE) != 0) return false;
    __atomic_store_n(slot, function, __ATOMIC_SEQ_CST);
    if (!(before & PROT_WRITE)) mprotect((void *) page, size, before);
    return true;
}
