#include "common/process.h"

#include <sys/utsname.h>

#include "common/bus.h"
#include "common/environment.h"
#include "common/redact.h"

enum { TEXT_BYTES = 4096, STARTS_MAX = 1000 };

void number_text(char text[NUMBER_BYTES], uint64_t number) {
    char digits[NUMBER_BYTES];
    char * at = digits + sizeof(digits) - 1;
    *at = 0;
    do *--at = (char) ('0' + number % 10); while (number /= 10);
    strcpy(text, at);
}

ssize_t process_read_file(const char * path, char * text, size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    *text = 0;
    if (file < 0) return -1;
    const ssize_t length = read(file, text, size - 1);
    close(file);
    text[length < 0 ? 0 : length] = 0;
    return length;
}

/* Writes the command line, its arguments separated by spaces, without anything that looks like a secret. */
static void command_facts(void (*fact)(const char * key, const char * value)) {
    char words[TEXT_BYTES], text[TEXT_BYTES];
    const ssize_t length = process_read_file("/proc/self/cmdline", words, sizeof(words));
    const uint32_t redacted = redact_command(words, length < 0 ? 0 : (size_t) length, text, sizeof(text));
    fact("command", text);
    number_text(text, redacted);
    if (redacted) fact("redacted", text);
}

/* The first value of a key in /proc/cpuinfo. */
static char * value_of(char * text, const char * key) {
    char * line = strstr(text, key);
    char * value = line ? strstr(line, ": ") : NULL;
    return value ? value + 2 : NULL;
}

/* On arm64 /proc/cpuinfo contains no CPU names, only the numbers of implementer and part. */
static const char * read_cpu(char text[TEXT_BYTES]) {
    if (process_read_file("/proc/cpuinfo", text, TEXT_BYTES) <= 0) return "";
    char * name = value_of(text, "model name");
    char * maker = name ? NULL : value_of(text, "CPU implementer"), * part = name ? NULL : value_of(text, "CPU part");
    if (name) name[strcspn(name, "\n")] = 0;
    if (name || !maker || !part) return name ? name : "";
    maker[strcspn(maker, "\n")] = part[strcspn(part, "\n")] = 0;
    char words[64] = "CPU implementer ";
    strncat(words, maker, 16);
    strcat(words, ", part ");
    strncat(words, part, 16);
    return strcpy(text, words);
}

/* The kernel makes this random id at each boot. Two logs with the same id have the same clock origin. */
static const char * read_boot_id(char text[TEXT_BYTES]) {
    if (process_read_file("/proc/sys/kernel/random/boot_id", text, TEXT_BYTES) <= 0) return "";
    text[strcspn(text, "\n")] = 0;
    return text;
}

/* The process's namespace of a kind. Empty: that of the system, which has the number `initial`. */
static const char * read_namespace(const char * path, const char * initial, char text[TEXT_BYTES]) {
    const ssize_t length = readlink(path, text, TEXT_BYTES - 1);
    text[length < 0 ? 0 : length] = 0;
    return strcmp(text, initial) == 0 ? "" : text;
}

void process_facts(void (*fact)(const char * key, const char * value)) {
    struct utsname host;
    char text[TEXT_BYTES];
    command_facts(fact);
    const ssize_t length = readlink("/proc/self/exe", text, sizeof(text) - 1);
    text[length < 0 ? 0 : length] = 0;
    fact("executable", text);
    fact("cpu", read_cpu(text));
    if (uname(&host) == 0) fact("kernel", host.release);
    fact("boot_id", read_boot_id(text));
    /* Its clocks differ from those of the system by constant times; the numbers of processes and threads are others. The kernel's PROC_…_INIT_INO. */
    fact("time_namespace", read_namespace("/proc/self/ns/time", "time:[4026531834]", text));
    fact("pid_namespace", read_namespace("/proc/self/ns/pid", "pid:[4026531836]", text));
    number_text(text, (uint64_t) sysconf(_SC_NPROCESSORS_ONLN));
    fact("cpus", text);
}

/* Under sudo, the log belongs to the user who called sudo. */
static void set_owner(struct ggtrace_options * options) {
    const char * user = getenv("SUDO_UID"), * group = getenv("SUDO_GID");
    if (geteuid() != 0 || !user || !*user || !group || !*group) return;
    options->has_owner = true;
    options->user = (uint32_t) strtoul(user, NULL, 10);
    options->group = (uint32_t) strtoul(group, NULL, 10);
}

/*
 * The path of the first log of a run: the requested path, or, if an older file has that name, a temporary name that later
 * replaces it. The inode identifies the older file: a file with another inode is a log of this run.
 */
static const char * first_path(const char * path, struct ggtrace_options * options) {
    const char * new = environment(ENV_NEW), * old = environment(ENV_OLD);
    struct stat older;
    if (!new || !old || lstat(path, &older) != 0 || older.st_ino != strtoull(old, NULL, 10)) return path;
    if (S_ISREG(older.st_mode)) options->mode = older.st_mode & 0666;
    return new;
}

struct ggtrace * process_open_log(const char * path, const struct ggtrace_options * wanted) {
    struct ggtrace_options options = wanted ? *wanted : (struct ggtrace_options){0};
    set_owner(&options);
    struct ggtrace * log = ggtrace_open(first_path(path, &options), &options);
    char own[PATH_BYTES];
    const size_t length = strnlen(path, sizeof(own) - 2 * NUMBER_BYTES - 2);
    memcpy(own, path, length);
    own[length] = '.';
    number_text(own + length + 1, (uint64_t) getpid());
    char * end = own + strlen(own);
    /* In a container that is started again and again, the process always has the same number. */
    for (uint64_t start = 1; !log && errno == EEXIST && start <= STARTS_MAX; start++) {
        *end = start > 1 ? '.' : 0;
        if (start > 1) number_text(end + 1, start);
        log = ggtrace_open(own, &options);
    }
    if (log) bus_watch(log);
    return log;
}
