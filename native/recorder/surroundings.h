/* What surrounds the process: CPUs and limits of its control groups, the machine's topology, variables of the environment. */
#pragma once

/* The log is opened: each of them becomes a fact. */
void surroundings_open(void (*fact)(const char * key, const char * value));

/* The log ends: how long the limit of CPU time kept the process from its CPUs since then. */
void surroundings_finish(void (*fact)(const char * key, const char * value));
