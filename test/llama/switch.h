/* Switches the functions of a preloaded library on and off, to compare the times of calls with and without them in one process. */
#ifndef SWITCH_H
#define SWITCH_H

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Where a library calls a function of the preloaded library: the slot, that function, and the one that it stands for. */
struct slot { void ** place; void * preloaded, * real; };

static struct slot slots[1024];
static size_t slot_count;

static bool is_preloaded(const void * address) {
    Dl_info info;
    const char * preloaded = getenv("LD_PRELOAD");
    return preloaded && dladdr(address, &info) && strcmp(info.dli_fname, preloaded) == 0;
}

static size_t dynamic_value(const struct link_map * library, int64_t tag) {
    const ElfW(Dyn) * entry = library->l_ld;
    while (entry->d_tag != tag && entry->d_tag != DT_NULL) entry++;
    return entry->d_un.d_val;
}

static void find_slots_in(const struct link_map * library, void * handle, size_t table, size_t size) {
    const ElfW(Sym) * symbols = (const void *) dynamic_value(library, DT_SYMTAB);
    const char * names = (const char *) dynamic_value(library, DT_STRTAB);
    const ElfW(Rela) * relocations = (const void *) table;
    for (size_t i = 0; i < size / sizeof *relocations; i++) {
        const uint32_t type = ELF64_R_TYPE(relocations[i].r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
        void ** place = (void **) (library->l_addr + relocations[i].r_offset);
        if (!is_preloaded(*place)) continue;
        void * real = dlsym(handle, names + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name); /* a library's handle leaves preloaded ones out */
        if (!real) continue;
        if (slot_count == sizeof slots / sizeof *slots) exit(fprintf(stderr, "switch.h: too many slots\n"));
        mprotect((void *) ((uintptr_t) place & -UINT64_C(4096)), 4096, PROT_READ | PROT_WRITE);
        slots[slot_count++] = (struct slot){place, *place, real};
    }
}

/* The dynamic linker must have filled the slots: that is, after some calls. */
static void find_slots(void) {
    for (const struct link_map * library = _r_debug.r_map; library; library = library->l_next) {
        void * handle = *library->l_name && !is_preloaded(library->l_ld) ? dlopen(library->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (!handle) continue;
        find_slots_in(library, handle, dynamic_value(library, DT_JMPREL), dynamic_value(library, DT_PLTRELSZ));
        find_slots_in(library, handle, dynamic_value(library, DT_RELA), dynamic_value(library, DT_RELASZ));
    }
}

static void switch_preloaded(bool on) {
    if (!slot_count) find_slots();
    for (size_t i = 0; i < slot_count; i++) *slots[i].place = on ? slots[i].preloaded : slots[i].real;
}

#endif
