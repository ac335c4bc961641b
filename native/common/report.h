/*
 * What `record` must know of the processes of a run although no log contains it. They write it to its report file (ENV_REPORT), if there is one;
 * lib/node/record/log-report.ts reads it. The file is mapped, and has its full size already, so that this works on a full disk, in a process that
 * may not write to files, and in one that has changed its root since.
 */
#pragma once

#include "common/system.h"

/* Maps the file, before the program can change what its path means. */
void report_prepare(void);

/* A log could not be opened, or its disk is full: writes "<errno> <user id>\n". */
enum report_problem { REPORT_CANNOT_OPEN, REPORT_DISK_FULL };
void report_problem(enum report_problem problem, int error);

/* A program that has the recorder; one that has it and contains ggml of which no call can be seen; one that was started without it. */
enum report_about { REPORT_LOADED, REPORT_HIDDEN, REPORT_MISSED };

struct report_program;

/*
 * Adds a program, once if it is REPORT_LOADED: its path, a word for the reason, and details of it; each may be empty. NULL: there is no file, or no
 * room. Async-signal-safe, since a process may start programs after vfork.
 */
struct report_program * report_program(enum report_about about, const char * path, const char * reason, const char * detail);

/* It did not start: takes it back. NULL: does nothing. */
void report_take_back(struct report_program * added);
