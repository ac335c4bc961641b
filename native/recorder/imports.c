#include "recorder/imports.h"

#include <elf.h>
#include <link.h>

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
    const ElfW(Half) * versions; /* of symbols */
    const ElfW(Verneed) * needed;
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
            case DT_VERSYM: found.versions = address_in(object, value); break;
            case DT_VERNEED: found.needed = address_in(object, value); break;
            default: break;
        }
    }
    return found;
}

struct search {
    const void * address;
    uintptr_t from, end;
    struct imports imports;
};

static int look(struct dl_phdr_info * object, size_t size, void * data) {
    (void) size;
    struct search * search = data;
    const ElfW(Dyn) * dynamic = NULL;
    bool is_sought = false;
    uintptr_t from = UINTPTR_MAX, end = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) * part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn) *) begin;
        if (part->p_type != PT_LOAD) continue;
        is_sought |= (uintptr_t) search->address - begin < part->p_memsz;
        if (begin < from) from = begin;
        if (begin + part->p_memsz > end) end = begin + part->p_memsz;
    }
    if (!is_sought || !dynamic) return 0;
    search->from = from;
    search->end = end;
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

/* The name of the version of an imported symbol; NULL: it has none. */
static const char * version_of(const struct imports * imports, size_t symbol) {
    const ElfW(Half) number = imports->versions ? imports->versions[symbol] & 0x7fff : VER_NDX_LOCAL;
    const ElfW(Verneed) * file = number > VER_NDX_GLOBAL ? imports->needed : NULL;
    for (; file; file = file->vn_next ? (const void *) ((const char *) file + file->vn_next) : NULL) {
        const ElfW(Vernaux) * version = (const void *) ((const char *) file + file->vn_aux);
        for (; version; version = version->vna_next ? (const void *) ((const char *) version + version->vna_next) : NULL) {
            if (version->vna_other == number) return imports->strings + version->vna_name;
        }
    }
    return NULL;
}

struct binding imports_binding(const void * address, const char * function) {
    struct search search = {.address = address};
    dl_iterate_phdr(look, &search);
    const ElfW(Rela) * found = relocation_of(&search.imports, function, false);
    return (struct binding){search.from, search.end - search.from, found, found ? version_of(&search.imports, ELF64_R_SYM(found->r_info)) : NULL};
}
