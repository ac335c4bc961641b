/* Removes secrets from a command line before it is recorded. lib/read/ggtrace/redact.ts does the same for logs that still have them. */
#pragma once

#include "common/system.h"

/*
 * Writes the words of a command, each of which ends in a 0, separated by spaces. Values that look like secrets are
 * replaced by [redacted]. Returns their number. Text that does not fit into `out` is left out.
 */
uint32_t redact_command(const char * words, size_t length, char * out, size_t size);
