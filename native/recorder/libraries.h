/* Finds the library that contains an address, and the real functions that hooks replace. */
#pragma once

#include "common/system.h"

/* The handle of the library that contains an address, and its path; a search in it includes its dependencies. */
void * library_of(const void * address, const char ** path);

/* A function of ggml: the program's, if ggml is a part of it (program.h), else that of the library. NULL: it has none. */
void * library_function(void * library, const char * name);

/*
 * The function `name` that a program would call without the recorder, seen from `caller`. Backends are loaded with
 * RTLD_LOCAL, where RTLD_NEXT does not look, so the caller's own library is searched.
 */
void * library_resolve(const char * name, const void * caller);

/* The function `name` that any library of the process exports, but the recorder. */
void * library_search(const char * name);

/* Is the address inside the recorder? */
bool library_is_own(const void * address);
