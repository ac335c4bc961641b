/* What limits the process from outside: CPUs, control groups, variables of the OpenMP runtime. */
#pragma once

/* The log is opened: each limit becomes a fact. */
void surroundings_open(void (*fact)(const char * key, const char * value));

/* The log ends: how long the limit of CPU time kept the process from its CPUs since then. */
void surroundings_finish(void (*fact)(const char * key, const char * value));
