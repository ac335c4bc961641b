/*
 * Functions of llama-server that the recorder interposes, as hooks.c does: C++ names, exported by libllama-server-impl.so and
 * libllama-common.so. What is read of their arguments is the same from v0.5.0 to 0.7.0: a server_task and a server_slot begin with
 * their number, a server_task_result has it behind its table of functions.
 */
#include "common/system.h"
#include <stdarg.h>
#include <stdio.h>

#include "log/ggtrace-records.h"
#include "recorder/hook.h"
#include "recorder/server.h"

static int32_t number_of(const void * task_or_slot) {
    return *(const int32_t *) task_or_slot;
}

/*
 * The tasks of a request are registered by a set, ahead of their post. NEXT_RESPONSE, which the server posts to itself for each step, is
 * not, and metrics and the like are registered one by one. The time until the queue is free belongs to the request.
 */
HOOK_BEFORE_VOID(_ZN15server_response20add_waiting_task_idsERKSt13unordered_setIiSt4hashIiESt8equal_toIiESaIiEE, server_posted(ids),
    LIST(void * results, const void * ids), results, ids)

HOOK_BEFORE_VOID(_ZN12server_queue5deferEO11server_task, server_step(GGTRACE_DEFER, number_of(task), -1),
    LIST(void * queue, void * task), queue, task)

/* A slot was released: the first deferred task, or the first that wants this slot, goes back into the queue. */
HOOK_BEFORE_VOID(_ZN12server_queue17pop_deferred_taskEi, server_step(GGTRACE_RESUME, -1, slot), LIST(void * queue, int slot), queue, slot)

/* Called by `post` for each cancelled task. */
HOOK_BEFORE_VOID(_ZN12server_queue20cleanup_pending_taskEi, server_step(GGTRACE_CANCEL, task, -1),
    LIST(void * queue, int task), queue, task)

/* If the slot cannot begin with the task, it sends an error. */
HOOK_BEFORE(bool, _ZN19server_context_impl21launch_slot_with_taskER11server_slotO11server_task,
    server_step(GGTRACE_LAUNCH, number_of(task), number_of(slot)),
    LIST(void * server, void * slot, void * task), server, slot, task)

HOOK_BEFORE_VOID(_ZN11server_slot7releaseEv, server_step(GGTRACE_RELEASE, -1, number_of(slot)), void * slot, slot)

/* The argument is a std::unique_ptr &&. */
HOOK_BEFORE_VOID(_ZN15server_response4sendEOSt10unique_ptrI18server_task_resultSt14default_deleteIS1_EE, server_sent(*result),
    LIST(void * results, void ** result), results, result)

/* A line of the log. Its arguments cannot be passed on, so the real function gets its text. */
HOOK(void, _Z14common_log_addP10common_log14ggml_log_levelPKcz, void * log, int level, const char * format, ...) {
    REAL(_Z14common_log_addP10common_log14ggml_log_levelPKcz);
    char small[2048];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(small, sizeof(small), format, arguments);
    char * large = length >= (int) sizeof(small) ? malloc((size_t) length + 1) : NULL;
    if (large) vsnprintf(large, (size_t) length + 1, format, again);
    const char * text = length < 0 ? "" : large ? large : small;
    va_end(again);
    va_end(arguments);
    server_logged((uint32_t) level, format, text);
    real(log, level, "%s", text);
    free(large);
}
