/* Texts of the program as ids of the log: each is defined once, and then found without a lock. */
#ifndef GGML2PERFETTO_NVTX_NAMES_H
#define GGML2PERFETTO_NVTX_NAMES_H

#include <stdint.h>
#include <wchar.h>

#include "log/ggtrace-nvtx.h"

/* The id of a text; 0 for none. Cut where the log cuts texts. Wide ones become UTF-8. */
uint32_t nvtx_name(const char * text);
uint32_t nvtx_wide_name(const wchar_t * text);

/* Is that the id of a text that was defined here? 0 if not. */
uint32_t nvtx_known_name(uint64_t id);

/* The id of a domain of that name, defined if it is new; domains of one name are one. */
uint32_t nvtx_domain(uint32_t name);

/* Is that a domain's id? 0 is the default domain. */
uint32_t nvtx_known_domain(uint64_t id);

/* Defines names of categories and threads, unless they have that very name. */
void nvtx_define(enum ggtrace_type type, uint32_t of, uint32_t number, uint32_t name);

/* After a fork: a thread that is not here may have held the lock. */
void nvtx_names_forked(void);

#endif
