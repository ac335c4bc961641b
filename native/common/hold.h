/* HOLD(&mutex) takes a mutex, and releases it at the end of the block that it is in. */
#pragma once

#include "common/system.h"

static inline pthread_mutex_t * hold_take(pthread_mutex_t * mutex) {
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void hold_release(pthread_mutex_t ** mutex) {
    pthread_mutex_unlock(*mutex);
}

#define HOLD(mutex) pthread_mutex_t * held_mutex __attribute__((cleanup(hold_release), unused)) = hold_take(mutex)
