/*
 * What llama-server does with its tasks: written as TASK records, and as MESSAGE records the lines of its own log about tasks, slots
 * and reuse. They are few for each request, so neither --every nor a pause leaves them out: requests stay complete.
 */
#pragma once

#include "common/system.h"

/* When the log is opened: is this a server, and which of its functions are missing? `caller`: as in recorder_begin. */
void server_find(const void * caller, void (*fact)(const char * key, const char * value));

/* When the log is closed: which of them were never called, though others were? */
void server_finish(void (*fact)(const char * key, const char * value));

/* A step of a task: enum ggtrace_step; -1: unknown. */
void server_step(uint32_t step, int32_t task, int32_t slot);

/* `ids`: the std::unordered_set<int> of libstdc++ with the numbers of the tasks that are posted together. */
void server_posted(const void * ids);

/* `result`: the server_task_result that is sent. */
void server_sent(const void * result);

/*
 * A line of llama.cpp's log with its format. Only lines of known forms are written, without texts of prompts or answers: see
 * server.c.
 */
void server_logged(uint32_t level, const char * format, const char * text);
