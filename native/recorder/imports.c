#define _GNU_SOURCE
#include "recorder/imports.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOBAL_DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOBAL_DATA = R_AARCH64_GLOB_DAT };
#else
enum { JUMP_SLOT = -1, GLOBAL_DATA = -1 };
#endif

struct imports {
    ElfW(Addr) base;
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
    struct imports found = {.base = object->dlpi_addr};
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

struct search {
    const void * address;
    struct imports imports;
};

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
    search->imports = imports_of(object, dynamic);
    return 1;
}

/* The relocation of an imported function: any, or one of a table of addresses only. */
static const ElfW(Rela) * relocation_of(const struct imports * imports, const char * function, bool is_of_slot) {
    if (!imports->symbols || !imports->strings) return NULL;
    for (int table = 0; table < 2; table++) {
        const ElfW(Rela) * rela = imports->tables[table];
        for (size_t i = 0; rela && i < imports->bytes[table] / sizeof(*rela); i++) {
            const int type = (int) ELF64_R_TYPE(rela[i].r_info);
            if (is_of_slot && type != JUMP_SLOT && type != GLOBAL_DATA) continue;
            const ElfW(Sym) * symbol = &imports->symbols[ELF64_R_SYM(rela[i].r_info)];
            if (symbol->st_shndx == SHN_UNDEF && strcmp(imports->strings + symbol->st_name, function) == 0) return &rela[i];
        }
    }
    return NULL;
}

bool imports_function(const void * address, const char * function) {
    struct search search = {.address = address};
    dl_iterate_phdr(look, &search);
    return relocation_of(&search.imports, function, false) != NULL;
}

void ** imports_slot(const void * address, const char * function) {
    struct search search = {.address = address};
    dl_iterate_phdr(look, &search);
    const ElfW(Rela) * found = relocation_of(&search.imports, function, true);
    return found ? (void **) (search.imports.base + found->r_offset) : NULL;
}
