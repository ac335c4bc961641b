/* What the recorder knows of each llama_context: its memory (KV cache), what it computes, where the last output of its last call is. */
#pragma once

#include "common/system.h"

/* Place in its batch of the last output of the context's last call; GGTRACE_NO_NUMBER: not known. */
void contexts_set_last_output(const void * context, uint32_t output);
uint32_t contexts_last_output(const void * context);

/* The program reads outputs of the context's last call. Has it read none? */
void contexts_note_read(const void * context);
bool contexts_is_unread(const void * context);

/* llama_set_embeddings: a server turns them on and off, from call to call. */
void contexts_set_embeddings(const void * context, bool are_computed);
bool contexts_is_without_embeddings(const void * context);

/* llama_get_memory returned this memory. */
void contexts_set_memory(const void * context, const void * memory);

/* The context of a memory; the memory itself if it is not known. */
const void * contexts_of_memory(const void * memory);

/* The context is freed. */
void contexts_forget(const void * context);
