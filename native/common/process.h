/* The facts of the process that each log contains, and the name of the log file. */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"

enum { NUMBER_BYTES = 24, PATH_BYTES = 4096 };

/* Writes a number in decimal. */
void number_text(char text[NUMBER_BYTES], uint64_t number);

/* Reads the start of a file; the text ends in a 0, and is empty where it cannot be read: then it returns -1. */
ssize_t process_read_file(const char * path, char * text, size_t size);

/* Opens the log: <path>, or <path>.<pid> if another process of the run has taken that name. NULL and errno on failure. */
struct ggtrace * process_open_log(const char * path, const struct ggtrace_options * options);

/* Calls `fact` with each fact of the process and the machine; a value may be empty. */
void process_facts(void (*fact)(const char * key, const char * value));
