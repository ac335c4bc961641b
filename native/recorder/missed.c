#include "recorder/missed.h"

#include <link.h>
#include <sys/prctl.h>
#include <sys/xattr.h>

#include "common/environment.h"
#include "common/process.h"
#include "common/report.h"

enum { HEAD_BYTES = 4096, SCRIPTS_MAX = 4, PATHS_BYTES = 1024 };

#if defined(__GLIBC__)
enum { IS_MUSL = false };
#else
enum { IS_MUSL = true };
#endif

static char own[PATHS_BYTES]; /* the recorder, as LD_PRELOAD has it; empty: nothing is reported */
static uint16_t machine;
static struct stat root, logs; /* the root directory, and the log's folder */
static pid_t only; /* 0: children are recorded, too */

static bool stat_folder_of_log(struct stat * status) {
    char folder[PATH_BYTES];
    const char * log = environment(ENV_OUT), * slash = log ? strrchr(log, '/') : NULL;
    if (!slash || (size_t) (slash - log) >= sizeof(folder) - 1) return false;
    const size_t length = slash == log ? 1 : (size_t) (slash - log);
    memcpy(folder, log, length);
    folder[length] = 0;
    return stat(folder, status) == 0;
}

void missed_prepare(void) {
    Dl_info recorder;
    if (!dladdr(&root, &recorder) || strlen(recorder.dli_fname) >= sizeof(own) || stat("/", &root) != 0 || !stat_folder_of_log(&logs)) return;
    only = environment(ENV_CHILDREN) ? 0 : getpid();
    machine = ((const ElfW(Ehdr) *) recorder.dli_fbase)->e_machine;
    strcpy(own, recorder.dli_fname);
}

/* ---- The program's file ---- */

struct head {
    int file;
    ssize_t length;
    union { ElfW(Ehdr) elf; char text[HEAD_BYTES]; } is;
};

/* The interpreter of a script, a text in `head`; NULL: it is none. */
static const char * interpreter_of(struct head * head) {
    if (head->length < 4 || memcmp(head->is.text, "#!", 2) != 0) return NULL;
    char * at = head->is.text + 2;
    head->is.text[head->length < HEAD_BYTES ? head->length : HEAD_BYTES - 1] = 0;
    at += strspn(at, " \t");
    at[strcspn(at, " \t\n")] = 0;
    return at;
}

/* What the system loads: the file, or the interpreter of a script. */
static bool open_program(struct head * head, const char * path) {
    for (int scripts = 0; scripts <= SCRIPTS_MAX; scripts++) {
        head->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (head->file < 0) return false;
        head->length = pread(head->file, head->is.text, HEAD_BYTES, 0);
        path = interpreter_of(head);
        if (!path) return true;
        close(head->file);
    }
    return false;
}

/* The loader that it names; NULL: none. */
static const char * loader_of(const struct head * head, char path[PATHS_BYTES]) {
    const ElfW(Ehdr) * elf = &head->is.elf;
    for (int i = 0; i < elf->e_phnum && elf->e_phoff + (size_t) (i + 1) * sizeof(ElfW(Phdr)) <= (size_t) head->length; i++) {
        ElfW(Phdr) part;
        memcpy(&part, head->is.text + elf->e_phoff + (size_t) i * sizeof(part), sizeof(part));
        if (part.p_type != PT_INTERP || !part.p_filesz || part.p_filesz > PATHS_BYTES) continue;
        const ssize_t length = pread(head->file, path, part.p_filesz, (off_t) part.p_offset);
        if (length <= 0) return NULL;
        path[length - 1] = 0;
        return path;
    }
    return NULL;
}

/* `ld.so program` names no loader, and is one. */
static bool is_loader(const char * path) {
    const char * name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return strncmp(name, "ld", 2) == 0 && strstr(name, ".so");
}

/* Does the system give it more rights, so that its loader ignores LD_PRELOAD? */
static bool raises_rights(int file) {
    struct stat status;
    char capabilities[64];
    if (fstat(file, &status) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return false;
    if (status.st_mode & S_ISUID && status.st_uid != geteuid()) return true;
    if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getegid()) return true;
    return geteuid() != 0 && fgetxattr(file, "security.capability", capabilities, sizeof(capabilities)) > 0;
}

static const char * why_of_file(const struct head * head, const char * path) {
    char text[PATHS_BYTES];
    const ElfW(Ehdr) * elf = &head->is.elf;
    if (head->length < (ssize_t) sizeof(*elf) || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return NULL; /* run by the shell */
    if (elf->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) || elf->e_machine != machine) return "machine";
    const char * loader = loader_of(head, text);
    if (!loader && !is_loader(path)) return "static";
    if (loader && (strstr(loader, "/ld-musl-") != NULL) != IS_MUSL) return "libc";
    return raises_rights(head->file) ? "rights" : NULL;
}

/* ---- What it gets ---- */

static bool is_preloaded(char * const variables[]) {
    static const char name[] = "LD_PRELOAD=";
    for (; variables && *variables; variables++) if (strncmp(*variables, name, sizeof(name) - 1) == 0 && strstr(*variables, own)) return true;
    return false;
}

static bool has_other_root(void) {
    struct stat now;
    return stat("/", &now) == 0 && (now.st_dev != root.st_dev || now.st_ino != root.st_ino);
}

static const char * why_of_process(char * const variables[]) {
    if (!is_preloaded(variables)) return "dropped";
    /* Not by open: capabilities that this process has, access leaves out, as the start of a program does. */
    const bool is_there = access(own, R_OK) == 0;
    if (!is_there && errno == EACCES) return "denied";
    if (!is_there && errno == ENOENT) return has_other_root() ? "root" : "absent";
    struct stat folder;
    if (!stat_folder_of_log(&folder)) return errno == ENOENT ? "log" : NULL;
    return folder.st_dev == logs.st_dev && folder.st_ino == logs.st_ino ? NULL : "elsewhere";
}

/* ---- Its path ---- */

static bool join(char path[PATHS_BYTES], const char * folder, size_t length, const char * name) {
    if (length + 1 + strlen(name) >= PATHS_BYTES) return false;
    memcpy(path, folder, length);
    if (length) path[length++] = '/';
    strcpy(path + length, name);
    return true;
}

/* As execvp searches it. */
static bool search(char path[PATHS_BYTES], const char * name) {
    const char * at = getenv("PATH");
    if (!at) at = "/bin:/usr/bin";
    for (;; at++) {
        const size_t length = strcspn(at, ":");
        if (join(path, at, length, name) && access(path, X_OK) == 0) return true;
        at += length;
        if (!*at) return false;
    }
}

/* `path` as `record` can open it, from its own folder. */
static const char * absolute(const char * path, char text[PATHS_BYTES]) {
    char folder[PATHS_BYTES];
    if (*path == '/' || !getcwd(folder, sizeof(folder))) return path;
    return join(text, folder, strlen(folder), strncmp(path, "./", 2) == 0 ? path + 2 : path) ? text : path;
}

static struct report_program * report(const char * program, bool is_searched, char * const variables[]) {
    char found[PATHS_BYTES], whole[PATHS_BYTES];
    struct head head;
    if (is_searched && !strchr(program, '/')) {
        if (!search(found, program)) return NULL;
        program = found;
    }
    if (!open_program(&head, program)) return NULL;
    const char * why = why_of_file(&head, program);
    close(head.file);
    if (!why) why = why_of_process(variables);
    return why ? report_program(REPORT_MISSED, absolute(program, whole), why, program_invocation_short_name) : NULL;
}

struct report_program * missed_report(const char * program, bool is_searched, char * const variables[]) {
    if (!*own || !program || (only && only != getpid())) return NULL;
    const int kept = errno;
    struct report_program * added = report(program, is_searched, variables);
    errno = kept;
    return added;
}
