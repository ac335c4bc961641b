#include "common/system.h"
#include "recorder/program.h"

#include <stdio.h>

#include "common/environment.h"
#include "common/hold.h"
#include "common/process.h"
#include "recorder/entry.h"
#include "recorder/imports.h"
#include "recorder/loaded.h"
#include "recorder/register-use.h"
#include "recorder/symbols.h"

enum { HOOKS_MAX = 256, STEP_BYTES = 1 << 16 };

static const char BARRIER[] = "ggml_barrier";
static const char ONE_OF_GGML[] = "ggml_init"; /* each ggml has it */

/* A function that the recorder has a hook of, and the program contains. */
struct hooked {
    const char * name;
    const void * hook;
    const ElfW(Sym) * symbol, * part; /* NULL: the program has none */
    bool is_ambiguous;
    bool is_left_out; /* its hook is not needed */
    bool has_copies; /* which the compiler made for some of its calls */
    const char * problem, * other; /* why it was left alone; another name of its code */
    struct function_entry entry;
    enum entry_call call;
    uint8_t * room;
    void * real;
};

/* The program, or a library. */
struct object {
    const void * address; /* of something in it */
    uintptr_t base; /* the difference between addresses in memory and in the file */
};

static struct {
    struct object object;
    struct symbols symbols;
    struct hooked hooked[HOOKS_MAX];
    size_t count;
} program;

/* Where ggml is. One of a process is recorded: hooks have one real function. */
enum place { UNDECIDED, IN_LIBRARIES, IN_OBJECT };
static _Atomic enum place place;

static atomic_bool has_ggml; /* `program` is complete */

/* Not those of the system's and the drivers' libraries. */
static bool is_of_ggml(const char * name) {
    static const char * const starts[] = {"ggml_", "llama_", "mtmd_", "_Z"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) if (strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

static bool is_wanted(const struct hooked * hooked) {
    return hooked->symbol && !hooked->is_left_out;
}

static bool decide(enum place decided) {
    enum place before = UNDECIDED;
    return atomic_compare_exchange_strong(&place, &before, decided);
}

void program_note_library(const char * function) {
    if (is_of_ggml(function)) decide(IN_LIBRARIES);
}

/* ---- Files ---- */

static int note_program(struct dl_phdr_info * object, size_t size, void * data) {
    (void) size;
    *(struct object *) data = (struct object){object->dlpi_phdr, object->dlpi_addr};
    return 1; /* the program is the first */
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

/* By the file that the kernel has mapped: that of a path may be another one by now. */
static bool open_object(struct symbols * symbols, const struct object * object, bool is_program) {
    char path[PATH_BYTES];
    return loaded_path(object->address, path) && open_symbols(symbols, path, is_program);
}

/* ---- The recorder's hooks, and the program's functions of their names ---- */

static int by_name(const void * a, const void * b) {
    return strcmp(((const struct hooked *) a)->name, ((const struct hooked *) b)->name);
}

/* By their names. Not by qsort, which may call malloc. */
static void add_hook(const char * name, const void * hook) {
    size_t at = program.count++;
    for (; at > 0 && strcmp(program.hooked[at - 1].name, name) > 0; at--) program.hooked[at] = program.hooked[at - 1];
    program.hooked[at] = (struct hooked){.name = name, .hook = hook};
}

static Dl_info recorder;

/* Names are kept, as is the recorder's file then. */
static void find_hooks(void) {
    static struct symbols own;
    if (!recorder.dli_fname || !symbols_open(&own, recorder.dli_fname, SHT_DYNSYM)) return;
    for (size_t i = 0; i < own.count && program.count < HOOKS_MAX; i++) {
        const char * name = symbols_function(&own, &own.table[i]);
        if (name && is_of_ggml(name)) add_hook(name, (const char *) recorder.dli_fbase + own.table[i].st_value);
    }
}

static void note_symbol(struct hooked * hooked, const ElfW(Sym) * symbol, const char * behind) {
    const bool is_local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
    if (*behind == 0) {
        const bool was_local = hooked->symbol && ELF64_ST_BIND(hooked->symbol->st_info) == STB_LOCAL;
        if (hooked->symbol && is_local) hooked->is_ambiguous |= was_local;
        else hooked->symbol = symbol, hooked->is_ambiguous = false;
    } else if (strncmp(behind, ".cold", 5) == 0) hooked->part = symbol;
    else hooked->has_copies = true; /* .constprop, .isra, .part */
}

/* A compiler's additions to a name follow a point, which no name contains. */
static void find_functions(void) {
    char name[512];
    for (size_t i = 0; i < program.symbols.count; i++) {
        const ElfW(Sym) * symbol = &program.symbols.table[i];
        const char * whole = symbols_function(&program.symbols, symbol);
        if (!whole || !is_of_ggml(whole)) continue;
        const size_t length = strcspn(whole, ".");
        if (length >= sizeof(name)) continue;
        memcpy(name, whole, length);
        name[length] = 0;
        const struct hooked key = {.name = name};
        struct hooked * hooked = bsearch(&key, program.hooked, program.count, sizeof(key), by_name);
        if (hooked) note_symbol(hooked, symbol, whole + length);
    }
}

/* ---- What may be redirected ---- */

static struct code code_of(const ElfW(Sym) * symbol) {
    return register_use_code(program.object.base, symbol);
}

/* Is the code as in the file? A debugger or a uprobe writes breakpoints into it. */
static bool is_unchanged(const ElfW(Sym) * symbol) {
    const uint8_t * code = symbol ? symbols_code(&program.symbols, symbol) : NULL;
    return !symbol || (code && memcmp(code, code_of(symbol).bytes, symbol->st_size) == 0);
}

/* The constructors of a class have two names, C1 and C2, and usually the same code. */
static bool is_same_constructor(const char * a, const char * b) {
    size_t at = 0;
    while (a[at] && a[at] == b[at]) at++;
    return at > 0 && a[at - 1] == 'C' && (a[at] == '1' || a[at] == '2') && (b[at] == '1' || b[at] == '2') && strcmp(a + at + 1, b + at + 1) == 0;
}

/* A function of another name with the same code: its calls could not be distinguished. */
static const char * other_name_of(const struct hooked * hooked) {
    for (size_t i = 0; i < program.symbols.count; i++) {
        const ElfW(Sym) * symbol = &program.symbols.table[i];
        if (symbol->st_value != hooked->symbol->st_value) continue;
        const char * name = symbols_function(&program.symbols, symbol);
        if (name && strcmp(name, hooked->name) != 0 && !is_same_constructor(name, hooked->name)) return name;
    }
    return NULL;
}

/* Its barriers are those of OpenMP (openmp.h): no hook may see them twice. */
static bool has_barriers_of_openmp(void) {
    return imports_function(program.object.address, "GOMP_barrier");
}

static void examine(struct hooked * hooked) {
    const struct code function = code_of(hooked->symbol), part = code_of(hooked->part);
    hooked->other = other_name_of(hooked);
    if (hooked->other) hooked->problem = "its code is also that of ";
    else if (hooked->is_ambiguous) hooked->problem = "its name is also that of another function";
    else if (!is_unchanged(hooked->symbol) || !is_unchanged(hooked->part)) hooked->problem = "its code is not as in the file (a breakpoint?)";
    else hooked->problem = entry_find(&hooked->entry, &function, &part);
    if (hooked->problem || register_use_is_full(&program.symbols, program.object.base, &function, &part)) return;
    /* Those two have one argument, one of them a result. */
    if (strcmp(hooked->name, BARRIER) == 0) hooked->call = ENTRY_KEEPING;
    else if (strcmp(hooked->name, "llama_get_memory") == 0) hooked->call = ENTRY_KEEPING_RESULT;
    else hooked->problem = "its callers may expect that it changes few registers";
}

/* ---- Redirection ---- */

/* Below the object, where nothing grows; the kernel keeps the lowest addresses free. */
static uint8_t * map_rooms(size_t bytes) {
    uintptr_t first = UINTPTR_MAX;
    for (size_t i = 0; i < program.symbols.section_count; i++) {
        const ElfW(Shdr) * section = &program.symbols.sections[i];
        if (section->sh_flags & SHF_ALLOC && program.object.base + section->sh_addr < first) first = program.object.base + section->sh_addr;
    }
    first &= ~(uintptr_t) (STEP_BYTES - 1);
    for (uintptr_t at = first; at > 2 * STEP_BYTES + bytes && first - at < INT32_MAX / 2;) {
        at -= STEP_BYTES;
        void * wanted = (void *) (at - bytes);
        void * found = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (found == wanted) return found;
        if (found != MAP_FAILED) munmap(found, bytes); /* before Linux 4.17 it is a wish */
    }
    return NULL;
}

/* Writable and executable in between: SELinux may refuse that, but not the return to what it was, without which the program could not run. */
static bool write_jump(const struct hooked * hooked) {
    const uintptr_t size = (uintptr_t) sysconf(_SC_PAGESIZE), from = (uintptr_t) hooked->entry.at & ~(size - 1);
    const size_t bytes = (uintptr_t) hooked->entry.at + ENTRY_JUMP_BYTES - from;
    if (mprotect((void *) from, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
    entry_redirect(&hooked->entry, hooked->room);
    mprotect((void *) from, bytes, PROT_READ | PROT_EXEC);
    return true;
}

static void prepare_all(uint8_t * rooms) {
    for (size_t i = 0; i < program.count; i++) {
        struct hooked * hooked = &program.hooked[i];
        if (!is_wanted(hooked) || hooked->problem) continue;
        if (!rooms) {
            hooked->problem = "there is no room near the program";
            continue;
        }
        hooked->room = rooms + i * ENTRY_ROOM_BYTES;
        hooked->problem = entry_prepare(&hooked->entry, hooked->room, hooked->hook, hooked->call, &hooked->real);
    }
}

static void write_all(uint8_t * rooms, size_t bytes) {
    static const char refused[] = "the system allows no change of code (SELinux?)";
    const bool may_run = rooms && mprotect(rooms, bytes, PROT_READ | PROT_EXEC) == 0;
    for (size_t i = 0; i < program.count; i++) {
        struct hooked * hooked = &program.hooked[i];
        if (!is_wanted(hooked) || hooked->problem) continue;
        if (!may_run || !write_jump(hooked)) hooked->problem = refused;
    }
}

/* Once in a process. */
static void redirect_in(const struct object * object, const struct symbols * symbols) {
    program.object = *object;
    program.symbols = *symbols;
    find_hooks();
    find_functions();
    const bool is_openmp = has_barriers_of_openmp();
    for (size_t i = 0; i < program.count; i++) {
        struct hooked * hooked = &program.hooked[i];
        if (is_openmp && strcmp(hooked->name, BARRIER) == 0) hooked->is_left_out = true;
        if (is_wanted(hooked)) examine(hooked);
    }
    const size_t page = (size_t) sysconf(_SC_PAGESIZE), bytes = (program.count * ENTRY_ROOM_BYTES + page - 1) & ~(page - 1);
    uint8_t * rooms = map_rooms(bytes);
    prepare_all(rooms);
    atomic_store(&has_ggml, true); /* a hook may be called from now on */
    write_all(rooms, bytes);
}

/* ---- Where ggml is ---- */

static program_search * find_exported;

static _Atomic(const char *) left_alone; /* a library that contains ggml, too; not reported yet */

/* Two that contain ggml could both be used. */
static bool is_alone(void) {
    return atomic_load(&place) == UNDECIDED && !find_exported(ONE_OF_GGML);
}

/* A library that the program is linked with. */
static bool redirect_linked(const char * path, uintptr_t base, const void * inside) {
    struct symbols symbols;
    if (!open_symbols(&symbols, path, false)) return false;
    symbols_close(&symbols);
    const struct object object = {inside, base};
    const bool may = is_alone() && open_object(&symbols, &object, false);
    if (may && decide(IN_OBJECT)) redirect_in(&object, &symbols);
    else atomic_store(&left_alone, path);
    return may;
}

static pid_t awaiting; /* the process whose libraries are looked at; 0: none. Its children are not */

bool program_redirect(program_search * exported) {
    struct object object = {0};
    struct symbols symbols;
    find_exported = exported;
    if (!dladdr(&program, &recorder)) return false;
    awaiting = environment(ENV_LIBRARIES) ? getpid() : 0;
    dl_iterate_phdr(note_program, &object);
    if (object.address && open_object(&symbols, &object, true)) {
        decide(IN_OBJECT);
        redirect_in(&object, &symbols);
    } else if (awaiting) loaded_find(redirect_linked);
    return program_has_ggml();
}

bool program_awaits_library(void) {
    return awaiting && getpid() == awaiting;
}

/*
 * Where two threads load a library at once, one of them waits here until the other has redirected it. No function that takes the loader's
 * lock may be called under this one: a library's constructor, which has that lock, may load another library.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool redirect_first(const struct object * object, const struct symbols * symbols) {
    HOLD(&lock);
    const bool is_first = symbols && !loaded_before(object->base) && decide(IN_OBJECT);
    if (is_first) redirect_in(object, symbols);
    return is_first;
}

enum program_loaded program_redirect_loaded(void * library) {
    struct link_map * map;
    struct symbols symbols = {0};
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return PROGRAM_NOTHING;
    const struct object object = {map->l_ld, map->l_addr};
    const bool contains_it = !loaded_before(object.base) && open_object(&symbols, &object, false);
    const bool may = contains_it && is_alone();
    if (redirect_first(&object, may ? &symbols : NULL)) return PROGRAM_REDIRECTED;
    if (!contains_it) return PROGRAM_NOTHING;
    symbols_close(&symbols);
    if (program_has_ggml() && program.object.base == object.base) return PROGRAM_NOTHING; /* by another thread */
    atomic_store(&left_alone, strdup(map->l_name));
    return PROGRAM_LEFT_ALONE;
}

bool program_has_ggml(void) {
    return atomic_load_explicit(&has_ggml, memory_order_acquire);
}

void * program_function(const char * name) {
    /* Not those of its libc or of a sanitizer, which may call the hook themselves. */
    if (!program_has_ggml() || !is_of_ggml(name)) return NULL;
    const struct hooked key = {.name = name};
    const struct hooked * hooked = bsearch(&key, program.hooked, program.count, sizeof(key), by_name);
    if (hooked && is_wanted(hooked) && !hooked->problem) return hooked->real;
    const ElfW(Sym) * symbol = hooked && !hooked->is_ambiguous ? hooked->symbol : symbols_find(&program.symbols, name);
    return symbol ? (char *) program.object.base + symbol->st_value : NULL;
}

/* ---- Facts ---- */

/* Readers join facts of one key. */
static void fact_of_refused(void (*fact)(const char * key, const char * value), const struct hooked * hooked) {
    char text[1024] = "";
    const char * const parts[] = {hooked->name, ": ", hooked->problem, hooked->other ? hooked->other : ""};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) strncat(text, parts[i], sizeof(text) - 1 - strlen(text));
    fact("program.refused", text);
}

void program_facts(void (*fact)(const char * key, const char * value)) {
    static bool are_written;
    static const char reason[] = ": all of it, since the process contains another ggml";
    char text[PATH_BYTES + sizeof(reason)];
    const char * other = atomic_exchange(&left_alone, NULL);
    snprintf(text, sizeof(text), "%s%s", other ? other : "", reason);
    if (other) fact("program.refused", text);
    if (!program_has_ggml() || are_written) return;
    are_written = true;
    size_t redirected = 0;
    for (size_t i = 0; i < program.count; i++) {
        const struct hooked * hooked = &program.hooked[i];
        if (!is_wanted(hooked)) continue;
        if (hooked->problem) fact_of_refused(fact, hooked);
        else redirected++;
        if (hooked->has_copies) fact("program.copies", hooked->name);
    }
    char number[NUMBER_BYTES];
    number_text(number, redirected);
    fact("program.functions", number);
}
