/*
 * ggml as a part of the program itself (static libraries): no linker binds its calls. The program's symbols have its functions, and the
 * hooks are called from their entries (entry.h). Where the program has no symbols (strip), nothing is found.
 */
#pragma once

#include "common/system.h"

/* Before the program's own code runs: constructors of preloaded libraries run first. False: ggml is not a part of it. */
bool program_redirect(void);

/* Is ggml a part of the program? */
bool program_has_ggml(void);

/* A function of the program, without the hook; NULL: ggml is not a part of it, or it has no function of this name. */
void * program_function(const char * name);

/* What was redirected, and each function that was left alone, with the reason. */
void program_facts(void (*fact)(const char * key, const char * value));
