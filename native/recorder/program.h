/*
 * ggml as a part of the program itself (static libraries), or of a library that does not export it (an add-on of Node.js): no linker binds
 * its calls. The symbols of the program or of the library have its functions, and the hooks are called from their entries (entry.h). Where
 * there are no symbols (strip), nothing is found. One such ggml of a process is recorded, and none where a library exports another one.
 */
#pragma once

#include "common/system.h"

/* Finds a function that a library of the process exports, or NULL. */
typedef void * program_search(const char * name);

/*
 * Before the program's own code runs: constructors of preloaded libraries run first. False: ggml is neither a part of it nor of a library that
 * it is linked with. Of libraries, those only with ENV_LIBRARIES; then those are awaited that it loads.
 */
bool program_redirect(program_search * exported);

/* Does this process look at libraries that it loads? */
bool program_awaits_library(void);

/*
 * The same for a library that dlopen has just returned, before the caller of dlopen has it. PROGRAM_NOTHING: it contains no such ggml, or was
 * among those that loaded_note() noted last: it may be in use. PROGRAM_REDIRECTED: it must not be unloaded. PROGRAM_LEFT_ALONE: the process
 * contains another ggml; program_facts names it.
 */
enum program_loaded { PROGRAM_NOTHING, PROGRAM_REDIRECTED, PROGRAM_LEFT_ALONE };
enum program_loaded program_redirect_loaded(void * library);

/* A hook's function was found in a library: if it is one of ggml, that one is recorded. */
void program_note_library(const char * function);

/* Is ggml a part of the program, or of such a library? */
bool program_has_ggml(void);

/* A function of it, without the hook; NULL: there is no such ggml, or it has no function of this name. */
void * program_function(const char * name);

/* Why a function of it was left alone; NULL: it was not, or it has none of this name. */
const char * program_problem(const char * name);

/* What was redirected, and what was left alone, with the reason; what it has reported already it leaves out. Not thread-safe. */
void program_facts(void (*fact)(const char * key, const char * value));
