/* The symbols of an ELF file, also those that no linker needs at run time (.symtab). */
#pragma once

#include "common/system.h"

#include <link.h>

struct symbols {
    const uint8_t * file;
    size_t file_bytes;
    const ElfW(Shdr) * sections;
    size_t section_count;
    const ElfW(Sym) * table;
    size_t count;
    const char * names;
    size_t name_bytes;
};

/* `type`: SHT_SYMTAB or SHT_DYNSYM. False: the file cannot be read, is damaged, or has no such symbols. Not thread-safe. */
bool symbols_open(struct symbols * symbols, const char * path, uint32_t type);
void symbols_close(struct symbols * symbols);

/* A function that the file defines; NULL: it is none. */
static inline const char * symbols_function(const struct symbols * symbols, const ElfW(Sym) * symbol) {
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= symbols->section_count) return NULL;
    return symbol->st_name < symbols->name_bytes ? symbols->names + symbol->st_name : NULL;
}

/*
 * The function of a name. One that its own source file only can call is found if no other has its name, since that may be another function
 * of another file.
 */
const ElfW(Sym) * symbols_find(const struct symbols * symbols, const char * name);

/* The function at an address. */
const ElfW(Sym) * symbols_at(const struct symbols * symbols, ElfW(Addr) address);

/* Its code in the file; NULL: the file has none, or not all of it. */
const uint8_t * symbols_code(const struct symbols * symbols, const ElfW(Sym) * symbol);
