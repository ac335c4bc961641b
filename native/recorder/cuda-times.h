/* Events of CUDA, by the cudart of ggml-cuda itself, and their times on CLOCK_MONOTONIC. No call leaves an error behind that the program would find. */
#pragma once

#include "common/system.h"

/* Finds the functions in the libraries of ggml-cuda, which contains `address`. False: there are none for it. */
bool cuda_times_start(const void * address);

/* An event of the current device; NULL: there is none. Events are kept for later use, never destroyed. */
void * cuda_event_take(uint32_t device);
void cuda_event_give(uint32_t device, void * event);

/* Puts the event behind what the stream was given so far. `captures`: as a node of a graph, which records it whenever it is replayed. */
bool cuda_event_record(void * event, void * stream, bool captures);

enum cuda_event_state { CUDA_EVENT_OPEN, CUDA_EVENT_COMPLETE, CUDA_EVENT_FAILED };
enum cuda_event_state cuda_event_state(void * event);

/* The time of a complete event; 0: unknown. */
uint64_t cuda_event_time(uint32_t device, void * event);

/* Of the recorder's thread: reads the clock of each device that has had an event, if it was not read for a second. */
void cuda_times_read_clocks(void);
