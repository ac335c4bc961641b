/* What a loaded library imports: the functions that it calls through the dynamic linker, and where it keeps their addresses. */
#pragma once

#include "common/system.h"

/* The library with this address imports the function: an undefined symbol that a relocation uses. */
bool imports_function(const void * address, const char * function);

/* The loaded library with an address, and how it binds a function: the version of the symbol that it was linked with, or NULL. */
struct binding {
    uintptr_t from, size; /* 0: no library */
    bool is_imported;
    const char * version;
};
struct binding imports_binding(const void * address, const char * function);

/* Where it keeps the address of the function (its GOT); NULL: nowhere. */
void ** imports_slot(const void * address, const char * function);
