#include "common/report.h"

#include "common/environment.h"
#include "common/process.h"

/* As in lib/node/record/log-report.ts. */
enum { PROBLEMS = 2, PROBLEM_BYTES = 64, PATH_TEXT_BYTES = 512, REASON_BYTES = 64, DETAIL_BYTES = 447, LOADED_MAX = 40, OTHERS_MAX = 24 };

struct report_program {
    char about; /* 0: none */
    char path[PATH_TEXT_BYTES], reason[REASON_BYTES], detail[DETAIL_BYTES];
};

struct report {
    char problems[PROBLEMS][PROBLEM_BYTES];
    _Atomic uint32_t loaded, others; /* how many were added, also beyond what there is room for */
    char unused[PROBLEM_BYTES - 2 * sizeof(uint32_t)];
    struct report_program programs[LOADED_MAX + OTHERS_MAX];
};
_Static_assert(sizeof(struct report) == 192 + 64 * 1024, "as the reader expects it");

static struct report * report;

void report_prepare(void) {
    const char * path = report ? NULL : environment(ENV_REPORT);
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    struct stat status;
    const bool has_room = file >= 0 && fstat(file, &status) == 0 && status.st_size >= (off_t) sizeof(struct report);
    /* Mapped: a write gives SIGXFSZ beyond the process's limit of a file's size, even where the file is large enough. */
    void * bytes = has_room ? mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0) close(file);
    if (bytes != MAP_FAILED) report = bytes;
}

void report_problem(enum report_problem problem, int error) {
    char text[PROBLEM_BYTES] = "", number[NUMBER_BYTES];
    report_prepare();
    if (!report) return;
    number_text(text, (uint64_t) error);
    number_text(number, (uint64_t) geteuid());
    strcat(strcat(strcat(text, " "), number), "\n");
    memcpy(report->problems[problem], text, sizeof(text));
}

static bool is_known(const char * path) {
    for (int i = 0; i < LOADED_MAX; i++) if (report->programs[i].about && strncmp(report->programs[i].path, path, PATH_TEXT_BYTES - 1) == 0) return true;
    return false;
}

static void copy_text(char * to, const char * text, size_t bytes) {
    const size_t length = strnlen(text, bytes - 1);
    memcpy(to, text, length);
    to[length] = 0;
}

struct report_program * report_program(enum report_about about, const char * path, const char * reason, const char * detail) {
    if (!report || (about == REPORT_LOADED && is_known(path))) return NULL;
    const bool is_loaded = about == REPORT_LOADED;
    const uint32_t number = atomic_fetch_add(is_loaded ? &report->loaded : &report->others, 1);
    if (number >= (is_loaded ? LOADED_MAX : OTHERS_MAX)) return NULL;
    struct report_program * program = &report->programs[is_loaded ? number : LOADED_MAX + number];
    copy_text(program->path, path, sizeof(program->path));
    copy_text(program->reason, reason, sizeof(program->reason));
    copy_text(program->detail, detail, sizeof(program->detail));
    program->about = (char) ('1' + (int) about);
    return program;
}

void report_take_back(struct report_program * added) {
    if (added) added->about = 0;
}
