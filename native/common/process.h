/* The facts of the process that each log contains, and the name of the log file. */
#ifndef GGML2PERFETTO_PROCESS_H
#define GGML2PERFETTO_PROCESS_H

#include "log/ggtrace.h"

enum { NUMBER_BYTES = 24, PATH_BYTES = 4096 };

/* Writes a number in decimal. */
void number_text(char text[NUMBER_BYTES], uint64_t number);

/* Opens the log: <path>, or <path>.<pid> if another process of the run has taken that name. NULL and errno on failure. */
struct ggtrace * process_open_log(const char * path, const struct ggtrace_options * options);

/* Calls `fact` with each fact of the process and the machine; a value may be empty. */
void process_facts(void (*fact)(const char * key, const char * value));

#endif
