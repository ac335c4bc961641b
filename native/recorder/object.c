#include "recorder/object.h"

#include <sys/auxv.h>

#include "recorder/loaded.h"

static int note_program(struct dl_phdr_info * info, size_t size, void * data) {
    (void) size;
    *(struct object *) data = (struct object){info->dlpi_phdr, info->dlpi_addr};
    return 1; /* the program is the first */
}

struct object object_of_program(void) {
    struct object object = {0};
    dl_iterate_phdr(note_program, &object);
    return object;
}

/* Of libraries, only one that does not export ggml: calls of what it exports pass the dynamic linker, and with it the hooks. */
static bool open_symbols(struct symbols * symbols, const char * path, bool is_program) {
    if (!symbols_open(symbols, path, SHT_SYMTAB) && !(is_program && symbols_open(symbols, path, SHT_DYNSYM))) return false;
    const bool is_named = memmem(symbols->names, symbols->name_bytes, ONE_OF_GGML, sizeof(ONE_OF_GGML));
    const ElfW(Sym) * one = is_named ? symbols_find(symbols, ONE_OF_GGML) : NULL;
    if (one && (is_program || ELF64_ST_BIND(one->st_info) == STB_LOCAL)) return true;
    symbols_close(symbols);
    return false;
}

bool object_open_path(struct symbols * symbols, const char * path) {
    return open_symbols(symbols, path, false);
}

/* By the file that the kernel has mapped: that of a path may be another one by now. Without /proc (a chroot), by the path that was started. */
bool object_open(struct symbols * symbols, const struct object * object, bool is_program) {
    char path[PATH_BYTES];
    if (loaded_path(object->address, path)) return open_symbols(symbols, path, is_program);
    const char * started = is_program && access("/proc/self/maps", F_OK) != 0 ? (const char *) getauxval(AT_EXECFN) : NULL;
    return started && open_symbols(symbols, started, true);
}

void object_path(const struct object * object, char path[PATH_BYTES]) {
    *path = 0;
    if (!loaded_path(object->address, path) || strncmp(path, "/proc/self/", 11) != 0) return;
    char link[PATH_BYTES];
    const ssize_t length = readlink(strcpy(link, path), path, PATH_BYTES - 1);
    path[length < 0 ? 0 : length] = 0;
}
