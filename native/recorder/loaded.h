/* What the loader has loaded: the program and its libraries, each known by where it was loaded (`base`: what is added to the addresses in its file). */
#pragma once

#include "common/system.h"
#include "common/process.h"

/* Notes all that are loaded now, for `loaded_before`. */
void loaded_note(void);

/* Was it loaded when they were last noted, by any thread? Also true where there are too many to note. */
bool loaded_before(uintptr_t base);

/* Calls `look` for each library until it returns true; the program is not among them. */
bool loaded_find(bool (*look)(const char * path, uintptr_t base, const void * inside));

/*
 * The file that is mapped at an address, as the kernel has it: that of a library's path may be another one by now. If it was deleted or replaced since,
 * the path leads to it through /proc.
 */
bool loaded_path(const void * address, char path[PATH_BYTES]);
