/*
 * A ring log that keeps slow calls only. Every call is noted when it ends. One that lasts as long as the limit stays in the log, with those
 * of the second before it (at most 1024); all others are removed, and the log contains their number and total time.
 */
#pragma once

#include "log/ggtrace.h"

void ggtrace_note_call(struct ggtrace * log, uint64_t start, uint64_t end);
