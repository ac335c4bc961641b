/* Redirects a function for one library of the process only, in that library's table of functions (GOT). */
#pragma once

#include "common/system.h"

/*
 * Calls of `name` by the library that contains `address` reach `function` from now on: also those that the linker has not bound yet. False:
 * the library does not call it through its table, or the table cannot be written.
 */
bool redirect(const void * address, const char * name, void * function);
