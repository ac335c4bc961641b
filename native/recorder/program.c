#include "common/system.h"
#include "recorder/program.h"

#include <stdio.h>

#include "common/environment.h"
#include "common/hold.h"
#include "common/process.h"
#include "common/report.h"
#include "recorder/code-change.h"
#include "recorder/entry.h"
#include "recorder/imports.h"
#include "recorder/loaded.h"
#include "recorder/object.h"
#include "recorder/register-use.h"

enum { HOOKS_MAX = 256 };

static const char BARRIER[] = "ggml_barrier";

/* A function that the recorder has a hook of, and the program contains. */
struct hooked {
    const char * name;
    const void * hook;
    const ElfW(Sym) * symbol, * part; /* NULL: the program has none */
    bool is_ambiguous;
    bool is_left_out; /* its hook is not needed */
    bool has_copies; /* which the compiler made for some of its calls; without `symbol`, for all of them */
    const char * problem, * other; /* why it was left alone; another name of its code */
    struct function_entry entry;
    enum entry_call call;
    uint8_t * room;
    void * real;
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

/* ---- The recorder's hooks, and the program's functions of their names ---- */

static int by_name(const void * a, const void * b) {
    return strcmp(((const struct hooked *) a)->name, ((const struct hooked *) b)->name);
}

static struct hooked * find_hooked(const char * name) {
    const struct hooked key = {.name = name};
    return bsearch(&key, program.hooked, program.count, sizeof(key), by_name);
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

/* A linker's additions to the name of a function that was local to its source file. */
static bool is_made_global(const char * behind) {
    return strncmp(behind, ".lto_priv.", 10) == 0 || strncmp(behind, ".llvm.", 6) == 0;
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
        struct hooked * hooked = find_hooked(name);
        if (hooked) note_symbol(hooked, symbol, is_made_global(whole + length) ? "" : whole + length);
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

/* Below the object, where nothing grows. */
static uint8_t * map_rooms(size_t bytes) {
    uintptr_t first = UINTPTR_MAX;
    for (size_t i = 0; i < program.symbols.section_count; i++) {
        const ElfW(Shdr) * section = &program.symbols.sections[i];
        if (section->sh_flags & SHF_ALLOC && program.object.base + section->sh_addr < first) first = program.object.base + section->sh_addr;
    }
    return code_map_below(first, bytes);
}

/* Writable and executable in between: a system may refuse that, but not the return to what it was, without which the program could not run. */
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

static const struct code_refusal * refusal; /* NULL: none so far */

static const struct code_refusal * prepare_change(uint8_t * rooms, size_t bytes) {
    const struct code_refusal * ends = code_change_ends_process();
    if (ends) return ends;
    return mprotect(rooms, bytes, PROT_READ | PROT_EXEC) == 0 ? NULL : code_change_refused(errno);
}

static void write_all(uint8_t * rooms, size_t bytes) {
    bool is_first = true;
    for (size_t i = 0; i < program.count; i++) {
        struct hooked * hooked = &program.hooked[i];
        if (!is_wanted(hooked) || hooked->problem) continue;
        if (is_first) refusal = prepare_change(rooms, bytes);
        if (!refusal && !write_jump(hooked)) refusal = code_change_refused(errno);
        if (refusal) hooked->problem = refusal->text;
        is_first = false;
    }
}

static bool is_seen(const struct hooked * hooked) {
    return hooked && is_wanted(hooked) && !hooked->problem;
}

/* Functions with whose calls a log begins. */
static const char * const beginning[] = {
    "llama_decode", "llama_encode", "llama_process", "ggml_backend_sched_graph_compute_async", "ggml_backend_sched_graph_compute",
    "ggml_backend_graph_compute_async", "_ZL30ggml_backend_cpu_graph_computeP12ggml_backendP11ggml_cgraph", "ggml_graph_compute",
};
enum { BEGINNING = sizeof(beginning) / sizeof(*beginning) };

/* Reports to `record` why there will be no log, if none of them was redirected. */
static void report_hidden(void) {
    char path[PATH_BYTES], detail[512] = "";
    const char * reason = refusal ? refusal->reason : "inlined";
    for (int i = 0; i < BEGINNING && !refusal; i++) {
        const struct hooked * hooked = find_hooked(beginning[i]);
        if (is_seen(hooked)) return;
        if (*detail || !hooked || !hooked->problem) continue;
        reason = hooked->symbol ? "refused" : "copies";
        snprintf(detail, sizeof(detail), "%s: %s%s", hooked->name, hooked->problem, hooked->other ? hooked->other : "");
    }
    object_path(&program.object, path);
    report_program(REPORT_HIDDEN, path, reason, detail);
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
        else if (!hooked->symbol && hooked->has_copies) hooked->problem = "its calls go to copies that the compiler made (.constprop, .isra, .part)";
    }
    const size_t page = (size_t) sysconf(_SC_PAGESIZE), bytes = (program.count * ENTRY_ROOM_BYTES + page - 1) & ~(page - 1);
    uint8_t * rooms = map_rooms(bytes);
    prepare_all(rooms);
    atomic_store(&has_ggml, true); /* a hook may be called from now on */
    write_all(rooms, bytes);
    report_hidden();
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
    if (!object_open_path(&symbols, path)) return false;
    symbols_close(&symbols);
    const struct object object = {inside, base};
    const bool may = is_alone() && object_open(&symbols, &object, false);
    if (may && decide(IN_OBJECT)) redirect_in(&object, &symbols);
    else atomic_store(&left_alone, path);
    return may;
}

static pid_t awaiting; /* the process whose libraries are looked at; 0: none. Its children are not */

bool program_redirect(program_search * exported) {
    const struct object object = object_of_program();
    struct symbols symbols;
    find_exported = exported;
    if (!dladdr(&program, &recorder)) return false;
    awaiting = environment(ENV_LIBRARIES) ? getpid() : 0;
    if (object.address && object_open(&symbols, &object, true)) {
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
    const bool contains_it = !loaded_before(object.base) && object_open(&symbols, &object, false);
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
    const struct hooked * hooked = find_hooked(name);
    if (is_seen(hooked)) return hooked->real;
    const ElfW(Sym) * symbol = hooked && !hooked->is_ambiguous ? hooked->symbol : symbols_find(&program.symbols, name);
    return symbol ? (char *) program.object.base + symbol->st_value : NULL;
}

const char * program_problem(const char * name) {
    const struct hooked * hooked = program_has_ggml() ? find_hooked(name) : NULL;
    return hooked ? hooked->problem : NULL;
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
        if (hooked->problem) fact_of_refused(fact, hooked);
        redirected += is_seen(hooked);
        if (hooked->has_copies) fact("program.copies", hooked->name);
    }
    char number[NUMBER_BYTES];
    number_text(number, redirected);
    fact("program.functions", number);
}
