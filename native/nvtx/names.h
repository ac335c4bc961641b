/* Maps texts of the program to ids of the log: each text is defined once, and later found without a lock. */
#pragma once

#include "common/system.h"

#include <wchar.h>

#include "log/ggtrace-nvtx.h"

/* The id of a text; 0 for none. Long texts are cut as in the log. Wide characters become UTF-8. */
uint32_t nvtx_name(const char * text);
uint32_t nvtx_wide_name(const wchar_t * text);

/* Returns the id if it is that of a text defined here, else 0. */
uint32_t nvtx_known_name(uint64_t id);

/* The id of a domain with that name, defined if it is new. Domains with the same name are one domain. */
uint32_t nvtx_domain(uint32_t name);

/* Returns the id if it is a domain's, else 0. 0 is the default domain. */
uint32_t nvtx_known_domain(uint64_t id);

/* Defines the name of a category or thread, unless it has that name already. */
void nvtx_define(enum ggtrace_type type, uint32_t of, uint32_t number, uint32_t name);

/* After a fork: a thread that does not exist in the child may have held the lock. */
void nvtx_names_forked(void);
