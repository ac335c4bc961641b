#define _GNU_SOURCE
#include "recorder/redirect.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOBAL_DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOBAL_DATA = R_AARCH64_GLOB_DAT };
#else
enum { JUMP_SLOT = -1, GLOBAL_DATA = -1 };
#endif

struct search {
    uintptr_t address, base;
    const ElfW(Dyn) * dynamic;
};

static int find_object(struct dl_phdr_info * object, size_t size, void * data) {
    (void) size;
    struct search * search = data;
    const ElfW(Dyn) * dynamic = NULL;
    bool is_there = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) * part = &object->dlpi_phdr[i];
        const uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC) dynamic = (const void *) start;
        if (part->p_type == PT_LOAD && search->address >= start && search->address < start + part->p_memsz) is_there = true;
    }
    if (!is_there) return 0;
    search->base = object->dlpi_addr;
    search->dynamic = dynamic;
    return 1;
}

struct relocations {
    const ElfW(Rela) * first;
    size_t bytes;
};

/* glibc has added the base to the addresses already, but for those of some objects (the vDSO). */
static uintptr_t at(uintptr_t base, uintptr_t value) {
    return value < base ? base + value : value;
}

static void ** slot_in(const struct search * found, struct relocations list, const ElfW(Sym) * symbols, const char * names, const char * name) {
    for (size_t i = 0; i < list.bytes / sizeof(*list.first); i++) {
        const int type = (int) ELF64_R_TYPE(list.first[i].r_info);
        if (type != JUMP_SLOT && type != GLOBAL_DATA) continue;
        if (strcmp(names + symbols[ELF64_R_SYM(list.first[i].r_info)].st_name, name) == 0) return (void **) (found->base + list.first[i].r_offset);
    }
    return NULL;
}

static void ** slot_of(const struct search * found, const char * name) {
    struct relocations jumps = {0}, others = {0};
    const ElfW(Sym) * symbols = NULL;
    const char * names = NULL;
    for (const ElfW(Dyn) * entry = found->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
        const uintptr_t value = entry->d_un.d_ptr;
        switch (entry->d_tag) {
            case DT_SYMTAB: symbols = (const void *) at(found->base, value); break;
            case DT_STRTAB: names = (const void *) at(found->base, value); break;
            case DT_JMPREL: jumps.first = (const void *) at(found->base, value); break;
            case DT_PLTRELSZ: jumps.bytes = value; break;
            case DT_RELA: others.first = (const void *) at(found->base, value); break;
            case DT_RELASZ: others.bytes = value; break;
            default: break;
        }
    }
    if (!symbols || !names) return NULL;
    void ** slot = jumps.first ? slot_in(found, jumps, symbols, names, name) : NULL;
    return slot || !others.first ? slot : slot_in(found, others, symbols, names, name);
}

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
    struct search found = {.address = (uintptr_t) address};
    if (!dl_iterate_phdr(find_object, &found)) return false;
    void ** slot = slot_of(&found, name);
    if (!slot) return false;
    const size_t size = (size_t) sysconf(_SC_PAGESIZE);
    const uintptr_t page = (uintptr_t) slot & ~(size - 1);
    const int before = protection_of(page);
    if (before < 0 || mprotect((void *) page, size, before | PROT_WRITE) != 0) return false;
    __atomic_store_n(slot, function, __ATOMIC_SEQ_CST);
    if (!(before & PROT_WRITE)) mprotect((void *) page, size, before);
    return true;
}
