#include "recorder/vulkan-work.h"

#include "common/clock.h"
#include "common/hold.h"
#include "common/table.h"
#include "recorder/calls.h"
#include "recorder/full.h"
#include "recorder/graphs.h"
#include "recorder/recording.h"
#include "recorder/registry.h"
#include "recorder/runs.h"
#include "recorder/vulkan-devices.h"
#include "recorder/vulkan-labels.h"

/* COMPLETE_MAX: so many complete submissions are written although others are not complete. */
enum { COMMANDS_MAX = 1 << 14, FENCES_MAX = 1 << 12, COMPLETE_MAX = 64, NO_QUERY = -1 };

/* A command buffer and its current recording. The program lets one thread at a time use it. */
struct commands {
    VkCommandBuffer handle;
    struct vulkan_device * device;
    uint32_t family;
    struct vulkan_chunk * first, * last; /* NULL: this recording is not timed */
    uint32_t depth; /* number of open labels */
    uint32_t mark_depth; /* at which the open mark began */
    struct vulkan_chunk * open; /* the chunk of the open mark; NULL: none */
    uint32_t index; /* of that mark */
    int latest_query; /* of chunk `last`, if no work was put into the command buffer since; else NO_QUERY */
};

struct vulkan_submission {
    struct vulkan_submission * next;
    struct vulkan_queue * queue;
    struct vulkan_chunk * first, * last;
    struct ggtrace_gpu_submission record;
    uint64_t seen; /* 0: it is not known to be complete */
};

static struct table known;
static struct commands * all;
static uint32_t count;
static struct vulkan_submission * spare;
static uint32_t submissions, lost;
static bool has_labels, has_no_labels; /* in command buffers of graphs */

static struct commands * commands_entry(VkCommandBuffer handle) {
    if (!all && !(all = reserve(COMMANDS_MAX * sizeof(*all)))) return NULL;
    struct entry * entry = table_at(&known, mix(11, (uint64_t) (uintptr_t) handle));
    if (entry && entry->id == 0 && count + 1 < COMMANDS_MAX) entry->id = ++count;
    return entry && entry->id ? &all[entry->id] : full_count(FULL_COMMANDS);
}

static __thread struct commands * latest __attribute__((tls_model("initial-exec")));

/* NULL: unknown, or without a device whose timestamps can be read. */
static struct commands * commands_of(VkCommandBuffer handle) {
    if (!latest || latest->handle != handle) {
        HOLD(&vulkan_lock);
        latest = commands_entry(handle);
    }
    return latest && latest->device ? latest : NULL;
}

static void give_back(struct vulkan_device * device, struct vulkan_chunk * chunk) {
    while (chunk) {
        struct vulkan_chunk * next = chunk->next;
        vulkan_chunk_give(device, chunk);
        chunk = next;
    }
}

void vulkan_work_allocated(VkDevice device, VkCommandBuffer handle, uint32_t family) {
    HOLD(&vulkan_lock);
    struct vulkan_device * owner = vulkan_device_of(device);
    struct commands * commands = commands_entry(handle);
    if (commands) {
        if (commands->first && commands->device == owner) give_back(owner, commands->first);
        *commands = (struct commands){.handle = handle, .device = owner, .family = family};
    }
}

/* ---- Marks ---- */

/* Room for another mark in this command buffer. */
static struct vulkan_chunk * chunk_for(struct commands * commands) {
    struct vulkan_chunk * chunk = commands->last;
    if (chunk && chunk->count < CHUNK_MARKS) return chunk;
    pthread_mutex_lock(&vulkan_lock);
    chunk = vulkan_chunk_take(commands->device, commands->handle);
    lost += !chunk;
    pthread_mutex_unlock(&vulkan_lock);
    if (!chunk) return NULL;
    if (commands->last) commands->last->next = chunk;
    else commands->first = chunk;
    commands->latest_query = NO_QUERY;
    return commands->last = chunk;
}

/* At the end of the commands before it: then marks do not overlap, and what runs at the same time as the one before counts from its end. */
static uint32_t write_time(const struct commands * commands, const struct vulkan_chunk * chunk, uint32_t query) {
    commands->device->call.vkCmdWriteTimestamp(commands->handle, commands->device->stage, chunk->pool, chunk->first + query);
    return query;
}

/* A mark that follows another one begins at its end: a second timestamp would have the same value, and drivers may wait for each. */
static struct vulkan_mark * mark_begin(struct commands * commands) {
    struct vulkan_chunk * chunk = chunk_for(commands);
    if (!chunk) return NULL;
    struct vulkan_mark * mark = &chunk->marks[chunk->count];
    *mark = (struct vulkan_mark){.call = calls_current()};
    mark->start = commands->latest_query >= 0 ? (uint32_t) commands->latest_query : write_time(commands, chunk, chunk->queries++);
    commands->open = chunk;
    commands->index = chunk->count++;
    commands->mark_depth = commands->depth;
    return mark;
}

static void mark_end(struct commands * commands) {
    struct vulkan_chunk * chunk = commands->open;
    chunk->marks[commands->index].end = write_time(commands, chunk, chunk->queries++);
    commands->latest_query = (int) chunk->marks[commands->index].end;
    commands->open = NULL;
}

void vulkan_work_other(VkCommandBuffer handle) {
    struct commands * commands = commands_of(handle);
    if (commands) commands->latest_query = NO_QUERY;
}

static bool is_timed(const struct commands * commands) {
    return commands->device->has_calibration && commands->family < FAMILIES_MAX &&
        commands->device->families[commands->family].timestampValidBits != 0 && (commands->device->resets_on_host ||
        (commands->device->families[commands->family].queueFlags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT)) != 0);
}

void vulkan_work_begin(VkCommandBuffer handle, bool is_for_once) {
    struct commands * commands = commands_of(handle);
    if (!commands) return;
    if (commands->first) {
        /* The program discarded what it had recorded. */
        HOLD(&vulkan_lock);
        give_back(commands->device, commands->first);
    }
    commands->first = commands->last = commands->open = NULL;
    commands->depth = 0;
    commands->latest_query = NO_QUERY;
    if (!is_for_once || recording_level() < LEVEL_GRAPH || !calls_take() || !is_timed(commands)) return;
    struct vulkan_mark * whole = mark_begin(commands);
    if (!whole) return;
    commands->latest_query = (int) whole->start;
    whole->end = commands->first->queries++; /* for vulkan_work_end */
    commands->first->begins = true;
    commands->open = NULL;
}

void vulkan_work_end(VkCommandBuffer handle) {
    struct commands * commands = commands_of(handle);
    if (!commands || !commands->first) return;
    if (commands->open) mark_end(commands);
    write_time(commands, commands->first, commands->first->marks[0].end);
}

void vulkan_work_label(VkCommandBuffer handle, const char * label) {
    struct commands * commands = commands_of(handle);
    if (!commands || !label) return;
    commands->depth++;
    if (!commands->first || recording_level() < LEVEL_OPERATOR) return;
    if (commands->open) {
        struct vulkan_mark * mark = &commands->open->marks[commands->index];
        if (mark->dispatches++ == 0) mark->kernel = vulkan_label_kernel(label);
        return;
    }
    struct labelled node = {0};
    if (!vulkan_label_find(label, &node)) return;
    has_labels = true;
    struct vulkan_mark * mark = mark_begin(commands);
    if (!mark) return;
    mark->what = GGTRACE_GPU_OPERATOR;
    mark->tensor = node.tensor;
    mark->last = node.last;
    mark->part = node.part;
    mark->graph = node.graph;
}

void vulkan_work_label_end(VkCommandBuffer handle) {
    struct commands * commands = commands_of(handle);
    if (!commands) return;
    if (commands->open && commands->depth == commands->mark_depth) mark_end(commands);
    if (commands->depth) commands->depth--;
}

bool vulkan_work_plain(VkCommandBuffer handle, enum ggtrace_gpu_work what, uint64_t bytes) {
    struct commands * commands = commands_of(handle);
    if (!commands || !commands->first || commands->open || recording_level() < LEVEL_OPERATOR) return false;
    struct vulkan_mark * mark = mark_begin(commands);
    if (!mark) return false;
    mark->what = what;
    mark->bytes = bytes;
    return true;
}

void vulkan_work_plain_end(VkCommandBuffer handle) {
    struct commands * commands = commands_of(handle);
    if (commands && commands->open) mark_end(commands);
}

/* ---- Submissions ---- */

struct vulkan_submission * vulkan_work_submission(VkQueue handle) {
    if (recording_level() < LEVEL_GRAPH || !calls_take()) return NULL;
    HOLD(&vulkan_lock);
    struct vulkan_queue * queue = vulkan_queue_of(handle);
    struct vulkan_submission * submission = queue ? spare : NULL;
    if (submission) spare = submission->next;
    else if (queue) submission = reserve(sizeof(*submission));
    if (submission) {
        const struct run * run = runs_current();
        *submission = (struct vulkan_submission){.queue = queue};
        submission->record.id = ++submissions;
        submission->record.call = calls_current();
        submission->record.graph = run && run->is_recorded && run->graph ? run->graph->id : 0;
    }
    return submission;
}

void vulkan_work_submit(struct vulkan_submission * submission, VkCommandBuffer handle) {
    struct commands * commands = commands_of(handle);
    submission->record.buffers++;
    if (!commands || !commands->first) return;
    if (submission->last) submission->last->next = commands->first;
    else submission->first = commands->first;
    submission->last = commands->last;
    submission->record.works--; /* the command buffer as a whole */
    for (const struct vulkan_chunk * chunk = commands->first; chunk; chunk = chunk->next) submission->record.works += chunk->count;
    commands->first = commands->last = NULL;
}

static void reuse(struct vulkan_submission * submission) {
    give_back(submission->queue->device, submission->first);
    submission->next = spare;
    spare = submission;
}

/* Once: the graph's operators are on this backend, which ggml does not label. */
static void note_labels(const struct ggtrace_gpu_submission * record) {
    if (has_labels || has_no_labels || !record->graph || recording_level() < LEVEL_OPERATOR) return;
    has_no_labels = true;
    ggtrace_fact(recording.log, "gpu.missing",
                 "operators: this ggml does not label what it submits to Vulkan (GGML_VK_DEBUG_MARKERS); only submissions are recorded");
}

void vulkan_work_submitted(struct vulkan_submission * submission, uint64_t start, uint64_t end, bool is_done) {
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    submission->record.start = start;
    submission->record.end = end;
    HOLD(&vulkan_lock);
    if (is_done && submission->record.buffers) {
        submission->record.queue = vulkan_queue_define(submission->queue);
        if (writer) ggtrace_gpu_submission(writer, &submission->record);
        note_labels(&submission->record);
        struct vulkan_submission ** at = &submission->queue->device->pending;
        while (*at) at = &(*at)->next;
        *at = submission;
    } else reuse(submission);
}

/* The submission that a fence is for, and its queue. */
struct fence { struct vulkan_queue * queue; uint32_t submission; };

static struct fence * fence_of(VkDevice device, VkFence handle) {
    static struct table table;
    static struct fence * fences;
    static uint32_t fence_count;
    if (!fences && !(fences = reserve(FENCES_MAX * sizeof(*fences)))) return NULL;
    struct entry * entry = table_at(&table, mix(mix(12, (uint64_t) (uintptr_t) device), handle));
    if (entry && entry->id == 0 && fence_count + 1 < FENCES_MAX) entry->id = ++fence_count;
    return entry && entry->id ? &fences[entry->id] : full_count(FULL_FENCES);
}

void vulkan_work_fence(VkQueue handle, VkFence handle_of_fence) {
    HOLD(&vulkan_lock);
    struct vulkan_queue * queue = vulkan_queue_of(handle);
    struct fence * fence = queue ? fence_of(queue->device->handle, handle_of_fence) : NULL;
    if (fence) *fence = (struct fence){.queue = queue, .submission = submissions};
}

/* ---- Results ---- */

static void write_mark(struct ggtrace_writer * writer, const struct vulkan_mark * mark, const struct ggtrace_gpu_submission * of,
                       uint64_t start, uint64_t end) {
    ggtrace_gpu_work(writer, &(struct ggtrace_gpu_work_record){
        .start = start,
        .end = end,
        .submission = of->id,
        .queue = of->queue,
        .what = mark->what,
        .tensor = mark->tensor,
        .last = mark->last,
        .call = mark->call,
        .graph = mark->graph,
        .kernel = mark->kernel,
        .dispatches = mark->dispatches,
        .part = mark->part,
        .bytes = mark->bytes,
    });
}

static void write_marks(struct ggtrace_writer * writer, const struct vulkan_submission * submission, struct ggtrace_gpu_complete * complete) {
    const struct vulkan_device * device = submission->queue->device;
    const uint32_t bits = device->families[submission->queue->family % FAMILIES_MAX].timestampValidBits;
    for (const struct vulkan_chunk * chunk = submission->first; chunk; chunk = chunk->next) {
        uint64_t ticks[CHUNK_QUERIES];
        const VkResult result = device->call.vkGetQueryPoolResults(device->handle, chunk->pool, chunk->first, chunk->queries,
            sizeof(ticks), ticks, sizeof(*ticks), VK_QUERY_RESULT_64_BIT);
        if (result != VK_SUCCESS) {
            lost += chunk->count;
            continue;
        }
        for (uint32_t i = 0; i < chunk->count; i++) {
            const uint64_t start = vulkan_clock_host(&device->clock, ticks[chunk->marks[i].start], bits);
            const uint64_t end = vulkan_clock_host(&device->clock, ticks[chunk->marks[i].end], bits);
            if (i == 0 && chunk->begins) {
                if (!complete->start || start < complete->start) complete->start = start;
                if (end > complete->end) complete->end = end;
            } else write_mark(writer, &chunk->marks[i], &submission->record, start, end);
        }
    }
}

static void write_results(struct ggtrace_writer * writer, const struct vulkan_submission * submission) {
    struct ggtrace_gpu_complete complete = {.seen = submission->seen, .submission = submission->record.id, .queue = submission->record.queue};
    if (submission->queue->device->calibrated) write_marks(writer, submission, &complete);
    ggtrace_gpu_complete(writer, &complete);
}

/*
 * Writes what is complete. Preferably when all is: drivers may wait for the whole device when they are asked for results (Mesa's
 * lavapipe does).
 */
static void write_complete(struct vulkan_device * device, uint64_t now) {
    uint32_t open = 0, complete = 0;
    for (const struct vulkan_submission * at = device->pending; at; at = at->next) at->seen ? complete++ : open++;
    if (complete == 0 || (open && complete < COMPLETE_MAX)) return;
    struct ggtrace_writer * writer = recording_level() >= LEVEL_GRAPH ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer && device->has_calibration) vulkan_device_calibrate(device, writer, now);
    for (struct vulkan_submission ** at = &device->pending; *at;) {
        struct vulkan_submission * submission = *at;
        if (!submission->seen) {
            at = &submission->next;
            continue;
        }
        *at = submission->next;
        if (writer) write_results(writer, submission);
        reuse(submission);
    }
    if (lost && writer) {
        ggtrace_loss(writer, now, lost, registry_name("work of a GPU: its times could not be read, or too much was submitted at once"));
        lost = 0;
    }
}

/* Submissions of a queue, or of all queues of the device, are complete, up to and with this one. */
static void complete_until(struct vulkan_device * device, const struct vulkan_queue * queue, uint32_t last, uint64_t now) {
    for (struct vulkan_submission * at = device->pending; at; at = at->next) {
        if (!at->seen && at->record.id <= last && (!queue || at->queue == queue)) at->seen = now;
    }
    write_complete(device, now);
}

void vulkan_work_complete(VkDevice handle, VkFence handle_of_fence, uint64_t now) {
    HOLD(&vulkan_lock);
    struct vulkan_device * device = vulkan_device_of(handle);
    const struct fence * fence = device ? fence_of(handle, handle_of_fence) : NULL;
    if (fence && fence->queue && fence->queue->device == device) complete_until(device, fence->queue, fence->submission, now);
}

uint32_t vulkan_work_latest(void) {
    HOLD(&vulkan_lock);
    return submissions;
}

void vulkan_work_idle(VkDevice handle, VkQueue handle_of_queue, uint32_t last, uint64_t now) {
    HOLD(&vulkan_lock);
    const struct vulkan_queue * queue = handle_of_queue ? vulkan_queue_of(handle_of_queue) : NULL;
    struct vulkan_device * device = vulkan_device_of(handle);
    if (device) complete_until(device, queue, last, now);
}
