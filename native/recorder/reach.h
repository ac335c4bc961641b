/*
 * Which of our hooks the CPU backend's code passes. A library that was linked with -Bsymbolic, or built by clang or with
 * -fno-semantic-interposition, calls its own functions past the dynamic linker, or has them inlined, all or some of them.
 */
#ifndef GGML2PERFETTO_REACH_H
#define GGML2PERFETTO_REACH_H

/*
 * Before a graph: the first time, ggml-cpu is let compute one of two nodes, on this thread alone. The log says what was not seen, and
 * operators are recorded accordingly. Backends may be loaded later: it is tried again then.
 */
void reach_find(void);

#endif
