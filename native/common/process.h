/* What every log tells of the process that writes it, and how its file is called. */
#ifndef GGML2PERFETTO_PROCESS_H
#define GGML2PERFETTO_PROCESS_H

#include "log/ggtrace.h"

enum { NUMBER_BYTES = 24, PATH_BYTES = 4096 };

/* A number's digits. */
void number_text(char text[NUMBER_BYTES], uint64_t number);

/* Opens the log: <path>, or <path>.<pid> where another process of the run took that name. NULL and errno. */
struct ggtrace * process_open_log(const char * path, const struct ggtrace_options * options);

/* Tells of the process and the machine, one fact after the other; a value may be empty. */
void process_facts(void (*fact)(const char * key, const char * value));

#endif
