/*
 * Programs into which the system's loader will not load the recorder: nothing in them can report why there is no log. The process that starts one
 * reports it to `record` (common/report.h).
 */
#pragma once

#include "common/system.h"

struct report_program;

/* Before main: remembers the recorder's path, and the root in which it is there. Without it, nothing is reported. */
void missed_prepare(void);

/*
 * Before a program is started: reports it if it will not have the recorder. `is_searched`: a name without a slash is searched in PATH. The result
 * is for report_take_back, if it does not start. Async-signal-safe; keeps errno.
 */
struct report_program * missed_report(const char * program, bool is_searched, char * const variables[]);
