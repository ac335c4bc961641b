/*
 * Reads instructions of x86-64: how long they are, and what they reach. Those that are not known here, such as XOP and APX, are not read.
 * test/native/entries.test.ts compares the lengths with those of objdump.
 */
#pragma once

#include "common/system.h"

enum { INSTRUCTION_BYTES_MAX = 15 };

enum instruction_kind {
    INSTRUCTION_PLAIN,
    INSTRUCTION_JUMP,     /* to a fixed place */
    INSTRUCTION_BRANCH,   /* to a fixed place or to the next instruction */
    INSTRUCTION_LOOP,     /* a branch whose distance has one byte at most: loop, jrcxz */
    INSTRUCTION_CALL,     /* of a fixed place */
    INSTRUCTION_CALL_ANY, /* of an address in a register or in memory */
    INSTRUCTION_JUMP_ANY, /* to such an address */
    INSTRUCTION_RETURN,
    INSTRUCTION_TRAP,     /* int3, ud2 and others that end or interrupt a program */
    INSTRUCTION_OTHER,    /* its effect depends on its own address in another way: xbegin */
};

struct instruction {
    uint8_t length;
    uint8_t kind;
    /* Where the distance from its end to what it jumps to or accesses begins, and its bytes; 0: it has none. */
    uint8_t distance_at, distance_bytes;
    uint8_t condition; /* of a branch: the last four bits of its opcode */
    bool is_by_memory; /* of a call or jump to any address: it is in memory, not in a register */
    bool is_push;      /* it moves the end of the stack down */
    bool may_use_table; /* it reads from an indexed table at a fixed address, or computes the address of something */
};

/* False: the instruction is unknown, or longer than `size`. */
bool instruction_read(struct instruction * instruction, const uint8_t * code, size_t size);

/* The address that it reaches by its distance. */
static inline const uint8_t * instruction_target(const struct instruction * instruction, const uint8_t * code) {
    int32_t distance;
    if (instruction->distance_bytes == 1) distance = (int8_t) code[instruction->distance_at];
    else memcpy(&distance, code + instruction->distance_at, sizeof(distance));
    return code + instruction->length + distance;
}
