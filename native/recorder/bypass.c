#define _GNU_SOURCE
#include "recorder/bypass.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FRAMES_MAX = 16 };

/* Whether the library with this address imports a function: an undefined symbol that a relocation uses. */
struct search {
    const void * address;
    const char * function;
    bool imports;
};

struct imports {
    const ElfW(Sym) * symbols;
    const char * strings;
    const ElfW(Rela) * tables[2]; /* of the PLT, and of all others */
    size_t bytes[2];
};

/* The loader of glibc has relocated the addresses in the dynamic section, except where that is read-only. */
static const void * address_in(const struct dl_phdr_info * object, ElfW(Addr) value) {
    return (const void *) (value < object->dlpi_addr ? object->dlpi_addr + value : value);
}

static struct imports imports_of(const struct dl_phdr_info * object, const ElfW(Dyn) * entry) {
    struct imports found = {0};
    for (; entry->d_tag != DT_NULL; entry++) {
        const ElfW(Addr) value = entry->d_un.d_ptr;
        switch (entry->d_tag) {
            case DT_SYMTAB: found.symbols = address_in(object, value); break;
            case DT_STRTAB: found.strings = address_in(object, value); break;
            case DT_JMPREL: found.tables[0] = address_in(object, value); break;
            case DT_PLTRELSZ: found.bytes[0] = entry->d_un.d_val; break;
            case DT_RELA: found.tables[1] = address_in(object, value); break;
            case DT_RELASZ: found.bytes[1] = entry->d_un.d_val; break;
            default: break;
        }
    }
    return found;
}

static bool has_import(const struct imports * imports, const char * function) {
    if (!imports->symbols || !imports->strings) return false;
    for (int table = 0; table < 2; table++) {
        const ElfW(Rela) * rela = imports->tables[table];
        for (size_t i = 0; rela && i < imports->bytes[table] / sizeof(*rela); i++) {
            const ElfW(Sym) * symbol = &imports->symbols[ELF64_R_SYM(rela[i].r_info)];
            if (symbol->st_shndx == SHN_UNDEF && strcmp(imports->strings + symbol->st_name, function) == 0) return true;
        }
    }
    return false;
}

static int look(struct dl_phdr_info * object, size_t size, void * data) {
    (void) size;
    struct search * search = data;
    const ElfW(Dyn) * dynamic = NULL;
    bool is_sought = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) * part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn) *) begin;
        if (part->p_type == PT_LOAD) is_sought |= (uintptr_t) search->address - begin < part->p_memsz;
    }
    if (!is_sought || !dynamic) return 0;
    const struct imports imports = imports_of(object, dynamic);
    search->imports = has_import(&imports, search->function);
    return 1;
}

enum bypass bypass_of(const void * inside) {
    void * frames[FRAMES_MAX];
    const int count = backtrace(frames, FRAMES_MAX);
    int at = 0;
    while (at < count && frames[at] != inside) at++;
    if (at + 1 >= count) return BYPASS_UNKNOWN;
    Dl_info function, caller;
    if (!dladdr(inside, &function)) return BYPASS_UNKNOWN;
    if (!dladdr(frames[at + 1], &caller)) return BYPASS_BY_ADDRESS; /* compiled at run time: bound by no loader */
    if (caller.dli_fbase == function.dli_fbase) return BYPASS_INSIDE;
    if (!function.dli_sname) return BYPASS_UNKNOWN;
    struct search search = {.address = frames[at + 1], .function = function.dli_sname};
    dl_iterate_phdr(look, &search);
    return search.imports ? BYPASS_BOUND : BYPASS_BY_ADDRESS;
}
