#include "recorder/loaded.h"

#include <link.h>
#include <stdio.h>

#include "common/hold.h"
#include "recorder/lines.h"

enum { LOADED_MAX = 512 };

struct loaded {
    uintptr_t base;
    const char * path;
    const void * inside;
};

struct list {
    size_t count; /* also of those beyond LOADED_MAX */
    struct loaded all[LOADED_MAX];
};

static int note(struct dl_phdr_info * object, size_t size, void * data) {
    (void) size;
    struct list * list = data;
    const void * dynamic = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) dynamic = (const void *) (object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    }
    if (list->count < LOADED_MAX) list->all[list->count] = (struct loaded){object->dlpi_addr, object->dlpi_name, dynamic};
    list->count++;
    return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t noted[LOADED_MAX];
static size_t noted_count;

void loaded_note(void) {
    struct list list;
    list.count = 0;
    dl_iterate_phdr(note, &list); /* takes a lock of the loader */
    HOLD(&lock);
    noted_count = list.count;
    for (size_t i = 0; i < list.count && i < LOADED_MAX; i++) noted[i] = list.all[i].base;
}

bool loaded_before(uintptr_t base) {
    HOLD(&lock);
    bool is_noted = noted_count > LOADED_MAX;
    for (size_t i = 0; i < noted_count && !is_noted; i++) is_noted = noted[i] == base;
    return is_noted;
}

bool loaded_find(bool (*look)(const char * path, uintptr_t base, const void * inside)) {
    struct list list;
    list.count = 0;
    dl_iterate_phdr(note, &list);
    for (size_t i = 1; i < list.count && i < LOADED_MAX; i++) {
        const struct loaded * loaded = &list.all[i];
        if (loaded->path && *loaded->path && loaded->inside && look(loaded->path, loaded->base, loaded->inside)) return true;
    }
    return false;
}

/* A file without a name: as the program, which every user may open, or as a mapping, for root only. */
static void find_nameless(char path[PATH_BYTES], const char * range, unsigned long inode) {
    static const char program[] = "/proc/self/exe", mappings[] = "/proc/self/map_files/";
    struct stat status;
    const bool is_program = stat(program, &status) == 0 && status.st_ino == inode;
    strcpy(path, is_program ? program : mappings);
    if (!is_program) strcat(path, range);
}

static bool is_deleted(const char * path) {
    static const char mark[] = " (deleted)";
    const size_t length = strlen(path);
    return length >= sizeof(mark) && strcmp(path + length - sizeof(mark) + 1, mark) == 0 && access(path, F_OK) != 0;
}

/* Lines: `begin-end rights offset device inode path`. The numbers of a range begin with zeros there, and with none in the name of its mapping. */
bool loaded_path(const void * address, char path[PATH_BYTES]) {
    struct lines lines;
    char range[2 * NUMBER_BYTES];
    if (!lines_open(&lines, "/proc/self/maps")) return false;
    bool is_found = false;
    for (char * line; !is_found && (line = lines_next(&lines));) {
        unsigned long from, to, inode;
        const char * slash = strchr(line, '/');
        if (!slash || sscanf(line, "%lx-%lx %*s %*s %*s %lu", &from, &to, &inode) != 3 || (uintptr_t) address < from || (uintptr_t) address >= to) continue;
        is_found = strlen(slash) < PATH_BYTES;
        if (is_found) strcpy(path, slash);
        snprintf(range, sizeof(range), "%lx-%lx", from, to);
        if (is_found && is_deleted(path)) find_nameless(path, range, inode);
    }
    close(lines.file);
    return is_found;
}
