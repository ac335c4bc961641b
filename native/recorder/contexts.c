#include "recorder/contexts.h"

#include "common/hold.h"
#include "log/ggtrace.h"
#include "recorder/full.h"

/* Of further contexts nothing is known. */
enum { CONTEXTS_MAX = 64 };

static struct {
    _Atomic(const void *) context, memory;
    _Atomic uint32_t last_output;
    _Atomic bool is_without_embeddings, is_unread;
} known[CONTEXTS_MAX];
static _Atomic int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int find(const void * context) {
    const int last = atomic_load_explicit(&count, memory_order_acquire);
    for (int i = 0; i < last; i++) if (atomic_load_explicit(&known[i].context, memory_order_relaxed) == context) return i;
    return -1;
}

/* Its place, taken now if necessary; -1: there is none. */
static int place_of(const void * context) {
    const int there = find(context);
    if (there >= 0) return there;
    pthread_mutex_lock(&lock);
    int place = find(context);
    if (place < 0) place = find(NULL);
    if (place < 0 && count < CONTEXTS_MAX) place = count;
    if (place >= 0) {
        atomic_store(&known[place].memory, NULL);
        atomic_store(&known[place].last_output, GGTRACE_NO_NUMBER);
        atomic_store(&known[place].is_without_embeddings, false);
        atomic_store(&known[place].is_unread, false);
        atomic_store(&known[place].context, context);
        if (place == count) atomic_store(&count, place + 1);
    }
    pthread_mutex_unlock(&lock);
    if (place < 0) full_count(FULL_CONTEXTS);
    return place;
}

void contexts_set_last_output(const void * context, uint32_t output) {
    const int place = place_of(context);
    if (place < 0) return;
    atomic_store_explicit(&known[place].last_output, output, memory_order_relaxed);
    atomic_store_explicit(&known[place].is_unread, true, memory_order_relaxed);
}

uint32_t contexts_last_output(const void * context) {
    const int place = find(context);
    return place < 0 ? GGTRACE_NO_NUMBER : atomic_load_explicit(&known[place].last_output, memory_order_relaxed);
}

void contexts_note_read(const void * context) {
    const int place = find(context);
    if (place >= 0) atomic_store_explicit(&known[place].is_unread, false, memory_order_relaxed);
}

bool contexts_is_unread(const void * context) {
    const int place = find(context);
    return place >= 0 && atomic_load_explicit(&known[place].is_unread, memory_order_relaxed);
}

void contexts_set_embeddings(const void * context, bool are_computed) {
    const int place = place_of(context);
    if (place >= 0) atomic_store_explicit(&known[place].is_without_embeddings, !are_computed, memory_order_relaxed);
}

bool contexts_is_without_embeddings(const void * context) {
    const int place = find(context);
    return place >= 0 && atomic_load_explicit(&known[place].is_without_embeddings, memory_order_relaxed);
}

void contexts_set_memory(const void * context, const void * memory) {
    const int place = place_of(context);
    if (place >= 0) atomic_store_explicit(&known[place].memory, memory, memory_order_relaxed);
}

const void * contexts_of_memory(const void * memory) {
    const int last = atomic_load_explicit(&count, memory_order_acquire);
    for (int i = 0; i < last; i++) {
        if (atomic_load_explicit(&known[i].memory, memory_order_relaxed) == memory) return atomic_load(&known[i].context);
    }
    return memory;
}

void contexts_forget(const void * context) {
    HOLD(&lock);
    const int place = find(context);
    if (place >= 0) {
        atomic_store(&known[place].memory, NULL);
        atomic_store(&known[place].context, NULL);
    }
}
