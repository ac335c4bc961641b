/* The CPUs of the machine as the kernel describes them: packages, nodes, cores, kinds of cores, caches, limits of their clocks. */
#pragma once

/*
 * Calls `fact` with each fact that the folder `root` (/sys, or a copy) contains; docs/reference/ggtrace-format.md describes them. Takes up
 * to 4 ms of CPU time: what it does not reach by then, or what is too long, is listed in the fact `topology.missing`.
 */
void topology_facts(const char * root, void (*fact)(const char * key, const char * value));

/* The number of NUMA nodes that it found. */
int topology_nodes(void);
