/*
 * Messages of ggml-rpc, the backend whose devices are in another process: a command with its data, and the answer to those that have one.
 * Each of the two processes records its side of a message, from the bytes that ggml-rpc's library sends and receives. Thread-safe.
 */
#pragma once

#include "common/system.h"

/* Is ggml-rpc in the library that contains this address? See REAL_OF_CALLER. */
bool rpc_is_in(const void * caller);

/* Before a send: when it begins. */
uint64_t rpc_begin(void);

/* Before a receive: when it begins. What a server received and has not answered until then, it does not answer. */
uint64_t rpc_begin_receive(int connection);

/* After them: `size` is what they returned; errno is kept. */
void rpc_sent(int connection, const void * data, ssize_t size, uint64_t begin);
void rpc_received(int connection, const void * data, ssize_t size, uint64_t begin);

/* The program ends: writes messages that may still be answered. */
void rpc_finish(void);
