#include "recorder/mapped.h"

#include "common/table.h"

enum { LIST_BYTES = 1 << 20, MAPPED_MAX = 256, PATHS_MAX = 1024, LOOK_EVERY = 64 };

struct list {
    int count;
    struct mapped at[MAPPED_MAX];
};

/* The mappings at the last look, and those at the last call of mapped_look. */
static struct list present, reported;
/* Number of addresses outside of all mappings since the last one inside. */
static unsigned misses;

static const char * keep_path(const char * path) {
    static const char * paths[PATHS_MAX];
    static int count;
    for (int i = 0; i < count; i++) if (strcmp(paths[i], path) == 0) return paths[i];
    char * copy = count < PATHS_MAX ? reserve(strlen(path) + 1) : NULL;
    return copy ? paths[count++] = strcpy(copy, path) : NULL;
}

static uint64_t parse_hex(const char ** at) {
    uint64_t number = 0;
    for (;; (*at)++) {
        const char c = **at;
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return number;
        number = number * 16 + (uint64_t) digit;
    }
}

/* Parses one line of /proc/self/maps: `begin-end perms offset dev inode path`. False if the file is not a .gguf. */
static bool parse(const char * line, const char * end, struct mapped * mapping) {
    if (end - line < 6 || strcmp(end - 5, ".gguf") != 0) return false;
    const char * at = line;
    mapping->begin = parse_hex(&at);
    at++;
    mapping->end = parse_hex(&at);
    at = strchr(at + 1, ' '); /* after the permissions */
    if (!at) return false;
    at++;
    mapping->offset = parse_hex(&at);
    at = strchr(at, '/');
    mapping->path = at ? keep_path(at) : NULL;
    return mapping->path;
}

static void look(void) {
    static char * text;
    if (!text) text = reserve(LIST_BYTES);
    const int file = text ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    size_t length = 0;
    for (ssize_t got; length < LIST_BYTES - 1 && (got = read(file, text + length, LIST_BYTES - 1 - length)) > 0;) {
        length += (size_t) got;
    }
    close(file);
    text[length] = 0;
    present.count = 0;
    for (char *line = text, *newline; (newline = strchr(line, '\n')); line = newline + 1) {
        *newline = 0;
        if (present.count < MAPPED_MAX && parse(line, newline, &present.at[present.count])) present.count++;
    }
}

static bool holds(const struct list * list, const struct mapped * mapping) {
    for (int i = 0; i < list->count; i++) {
        const struct mapped * known = &list->at[i];
        const bool same_place = known->begin == mapping->begin && known->end == mapping->end;
        if (same_place && known->offset == mapping->offset && known->path == mapping->path) return true;
    }
    return false;
}

void mapped_look(void (*report)(const struct mapped * mapping)) {
    look();
    for (int i = 0; i < present.count; i++) {
        if (!holds(&reported, &present.at[i])) report(&present.at[i]);
    }
    reported = present;
}

static const struct mapped * find(uint64_t address) {
    for (int i = 0; i < present.count; i++) {
        if (present.at[i].begin <= address && address < present.at[i].end) return &present.at[i];
    }
    return NULL;
}

const struct mapped * mapped_at(const void * address) {
    const struct mapped * mapping = find((uint64_t) (uintptr_t) address);
    /* A model may be loaded without mmap, tensor by tensor: then this looks only now and then. */
    if (!mapping && (misses < LOOK_EVERY || misses % LOOK_EVERY == 0)) {
        look();
        mapping = find((uint64_t) (uintptr_t) address);
    }
    misses = mapping ? 0 : misses + 1;
    return mapping;
}
