/*
 * Barriers of ggml-cpu as a part of the program (program.h), built with OpenMP by gcc: there, ggml_barrier is a part of most functions that call it, and
 * what they call is GOMP_barrier.
 */
#pragma once

#include "common/system.h"

/* `program`: an address in it. False: it calls no GOMP_barrier, or its calls cannot be redirected. */
bool openmp_redirect(const void * program);

/* Are barriers seen by it? */
bool openmp_is_redirected(void);
