/* Takes secrets out of a command line before it is recorded. lib/read/ggtrace/redact.ts does the same for logs without it. */
#ifndef GGML2PERFETTO_REDACT_H
#define GGML2PERFETTO_REDACT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the words of a command, each of which ends in a 0, with blanks between them. Values that look like secrets are
 * replaced by [redacted]. Returns how many there were. What has no room in `out` is left out.
 */
uint32_t redact_command(const char * words, size_t length, char * out, size_t size);

#endif
