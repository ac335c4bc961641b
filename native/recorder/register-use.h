/*
 * Which registers the callers of a function may expect to keep. All of them, except for those that calls may change, unless a compiler saw
 * the function and its caller: then it may have used what it knew (gcc's -fipa-ra).
 */
#pragma once

#include "common/system.h"
#include "recorder/entry.h"
#include "recorder/symbols.h"

/* A function's code in memory; `base`: the difference between addresses there and in the file. NULL has none. */
static inline struct code register_use_code(uintptr_t base, const ElfW(Sym) * symbol) {
    return symbol ? (struct code){(uint8_t *) base + symbol->st_value, symbol->st_size} : (struct code){NULL, 0};
}

/*
 * Must each caller of the function expect that a call changes every register that calls may change? It must where the function, or one that
 * it calls, calls code that no compiler saw: of another library, or by an address in memory. Only on x86-64.
 */
bool register_use_is_full(const struct symbols * symbols, uintptr_t base, const struct code * function, const struct code * part);
