/*
 * Redirects a function by its entry, where no linker binds its calls: a jump replaces its first instructions, which continue elsewhere.
 * Only on x86-64, and only where it can be shown from the function's code that no call behaves differently. No thread may be in the
 * function at that time.
 */
#pragma once

#include "common/system.h"

enum {
    ENTRY_JUMP_BYTES = 5,
    ENTRY_ROOM_BYTES = 128, /* for the code of one function */
};

/* A function's code where it is executed, or its part that the compiler placed elsewhere (`<name>.cold`). */
struct code {
    uint8_t * bytes;
    size_t size;
};

struct function_entry {
    uint8_t * at;  /* the function, or behind its endbr64 */
    size_t moved;  /* bytes of whole instructions there, at least those of a jump */
};

/* `part.bytes` may be NULL. Returns why the function is left alone, or NULL. */
const char * entry_find(struct function_entry * entry, const struct code * function, const struct code * part);

/*
 * What a call of `replacement` keeps: PLAIN, what calls keep. A compiler that sees both a function and its caller may rely on more, if the
 * function calls nothing else (gcc's -fipa-ra, -fipa-stack-alignment): KEEPING, all registers; KEEPING_RESULT, all but the one of an
 * integer result. Those two take no arguments on the stack.
 */
enum entry_call { ENTRY_PLAIN, ENTRY_KEEPING, ENTRY_KEEPING_RESULT };

/* Writes code into `room`, from where a jump must reach the function. `real` is then the function without the redirection. */
const char * entry_prepare(const struct function_entry * entry, uint8_t room[ENTRY_ROOM_BYTES], const void * replacement, enum entry_call call, void ** real);

/* Writes the jump. The room is executable by then, and the function writable. */
void entry_redirect(const struct function_entry * entry, const uint8_t room[ENTRY_ROOM_BYTES]);
