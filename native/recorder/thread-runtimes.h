/* Whose threads ggml's workers are: those of its own pools, or of an OpenMP runtime; and which runtimes are loaded. */
#pragma once

typedef void (*fact_function)(const char * key, const char * value);

/* ggml's CPU backend is loaded: `address` is one of its functions. Its runtime becomes a fact, once. */
void thread_runtimes_find(const void * address, fact_function fact);

/* The same, where that library is to be found first: in a program that has just made a context. */
void thread_runtimes_prepare(fact_function fact);

/* The log ends: runtimes that were loaded since. */
void thread_runtimes_finish(fact_function fact);

/* The program made a pool of threads. */
void thread_runtimes_note_pool(const void * params);
