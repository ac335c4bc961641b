/*
 * The program's clock, where a library replaces clock_gettime and its time is not that of the system (libfaketime). All times of a log are of the
 * system's clocks, as are those of the kernel (states of threads) and of drivers: from program_clock_prepare on, the log reads them past that library.
 */
#pragma once

#include "common/system.h"

/* When the library is loaded. */
void program_clock_prepare(void);

/* Facts of a clock that differs: when the log is opened, what is known by then; at its end, the speed, too. */
void program_clock_open(void (*fact)(const char * key, const char * value));
void program_clock_finish(void (*fact)(const char * key, const char * value));
