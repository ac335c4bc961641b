/* The program, or a library that it has loaded, and whether it contains ggml. */
#pragma once

#include "common/system.h"
#include "common/process.h"
#include "recorder/symbols.h"

#define ONE_OF_GGML "ggml_init" /* each ggml has it */

struct object {
    const void * address; /* of something in it */
    uintptr_t base; /* the difference between addresses in memory and in the file */
};

/* The program; its address is NULL where it is not known. */
struct object object_of_program(void);

/* The symbols of an object that contains ggml; false: it contains none, or has no symbols. Of libraries, only one that does not export ggml. */
bool object_open(struct symbols * symbols, const struct object * object, bool is_program);

/* The same of a library by its path, which may be another file by now. */
bool object_open_path(struct symbols * symbols, const char * path);

/* Its path, for people: also of a file that was deleted. */
void object_path(const struct object * object, char path[PATH_BYTES]);
