/* SIGBUS: another program truncates the log while it is recorded. */
#pragma once

struct ggtrace;

/*
 * From now on, a SIGBUS from a page of this log ends the log instead of the process. Every other SIGBUS goes to the handler that the host has
 * had so far. A handler that the host sets later replaces this one.
 */
void bus_watch(struct ggtrace * log);
