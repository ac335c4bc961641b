#include "recorder/symbols.h"

static bool is_within(const struct symbols * symbols, uint64_t offset, uint64_t bytes) {
    return offset <= symbols->file_bytes && bytes <= symbols->file_bytes - offset;
}

static bool map_file(struct symbols * symbols, const char * path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stats;
    const bool is_file = file >= 0 && fstat(file, &stats) == 0 && stats.st_size >= (off_t) sizeof(ElfW(Ehdr));
    /* Shared: the kernel writes the breakpoints of uprobes into private mappings of the file, too. */
    void * bytes = is_file ? mmap(NULL, (size_t) stats.st_size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0) close(file);
    if (bytes == MAP_FAILED) return false;
    symbols->file = bytes;
    symbols->file_bytes = (size_t) stats.st_size;
    return true;
}

static bool find_table(struct symbols * symbols, uint32_t type) {
    const ElfW(Ehdr) * head = (const void *) symbols->file;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(ElfW(Shdr))) return false;
    if (head->e_shoff % sizeof(uint64_t) || !is_within(symbols, head->e_shoff, (uint64_t) head->e_shnum * sizeof(ElfW(Shdr)))) return false;
    symbols->sections = (const void *) (symbols->file + head->e_shoff);
    symbols->section_count = head->e_shnum;
    const ElfW(Shdr) * found = NULL;
    for (size_t i = 0; i < symbols->section_count && !found; i++) if (symbols->sections[i].sh_type == type) found = &symbols->sections[i];
    if (!found || found->sh_link >= symbols->section_count || found->sh_offset % sizeof(uint64_t)) return false;
    const ElfW(Shdr) * names = &symbols->sections[found->sh_link];
    if (!is_within(symbols, found->sh_offset, found->sh_size) || !is_within(symbols, names->sh_offset, names->sh_size)) return false;
    symbols->table = (const void *) (symbols->file + found->sh_offset);
    symbols->count = found->sh_size / sizeof(ElfW(Sym));
    symbols->names = (const char *) symbols->file + names->sh_offset;
    symbols->name_bytes = names->sh_size;
    return symbols->name_bytes && symbols->names[symbols->name_bytes - 1] == 0;
}

bool symbols_open(struct symbols * symbols, const char * path, uint32_t type) {
    *symbols = (struct symbols){0};
    if (map_file(symbols, path) && find_table(symbols, type)) return true;
    symbols_close(symbols);
    return false;
}

void symbols_close(struct symbols * symbols) {
    if (symbols->file) munmap((void *) (uintptr_t) symbols->file, symbols->file_bytes);
    *symbols = (struct symbols){0};
}

const ElfW(Sym) * symbols_find(const struct symbols * symbols, const char * name) {
    const ElfW(Sym) * local = NULL;
    bool is_ambiguous = false;
    for (size_t i = 0; i < symbols->count; i++) {
        const ElfW(Sym) * symbol = &symbols->table[i];
        const char * own = symbols_function(symbols, symbol);
        if (!own || strcmp(own, name) != 0) continue;
        if (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL) return symbol;
        is_ambiguous |= local != NULL;
        local = symbol;
    }
    return is_ambiguous ? NULL : local;
}

const ElfW(Sym) * symbols_at(const struct symbols * symbols, ElfW(Addr) address) {
    for (size_t i = 0; i < symbols->count; i++) {
        if (symbols->table[i].st_value == address && symbols_function(symbols, &symbols->table[i])) return &symbols->table[i];
    }
    return NULL;
}

const uint8_t * symbols_code(const struct symbols * symbols, const ElfW(Sym) * symbol) {
    const ElfW(Shdr) * section = &symbols->sections[symbol->st_shndx];
    const uint64_t offset = symbol->st_value - section->sh_addr;
    if (section->sh_type != SHT_PROGBITS || offset > section->sh_size || symbol->st_size > section->sh_size - offset) return NULL;
    return is_within(symbols, section->sh_offset + offset, symbol->st_size) ? symbols->file + section->sh_offset + offset : NULL;
}
