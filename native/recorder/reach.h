/*
 * Tests which hooks the CPU backend passes. If a library was linked with -Bsymbolic, or built by clang or with
 * -fno-semantic-interposition, some or all calls of its own functions bypass the dynamic linker, or are inlined.
 */
#pragma once

#include "common/system.h"

/*
 * Called before a graph: the first time, ggml-cpu computes a test graph of two nodes on this thread. The log contains which hooks were
 * not passed, and operators are recorded accordingly. If no backend is loaded yet, the test is repeated later. False: their starts are not seen,
 * and none of them is recorded.
 */
bool reach_find(void);
