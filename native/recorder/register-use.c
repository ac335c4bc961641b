#include "recorder/register-use.h"

#include "recorder/instruction.h"

enum { CALLEES_MAX = 64 };

struct callees {
    const uint8_t * at[CALLEES_MAX];
    size_t count;
};

static void note_callee(struct callees * callees, const uint8_t * target) {
    for (size_t i = 0; i < callees->count; i++) if (callees->at[i] == target) return;
    if (callees->count < CALLEES_MAX) callees->at[callees->count++] = target;
}

/* Does the code call by an address in memory? If not, `callees` has the functions that it calls. */
static bool calls_unknown(const struct code * code, struct callees * callees) {
    struct instruction instruction;
    for (size_t at = 0; at < code->size; at += instruction.length) {
        const uint8_t * bytes = code->bytes + at;
        if (!instruction_read(&instruction, bytes, code->size - at)) return false;
        /* Tables of a function's own places are read by an index. */
        const bool is_tail = instruction.kind == INSTRUCTION_JUMP_ANY && instruction.is_by_memory && !instruction.may_use_table;
        if (instruction.kind == INSTRUCTION_CALL_ANY || is_tail) return true;
        if (instruction.kind != INSTRUCTION_CALL && instruction.kind != INSTRUCTION_JUMP) continue;
        const uint8_t * target = instruction_target(&instruction, bytes);
        if ((size_t) (target - code->bytes) >= code->size) note_callee(callees, target);
    }
    return false;
}

/* Code of a file that can be read as an instruction at least. */
static bool is_code(const struct symbols * symbols, ElfW(Addr) address) {
    for (size_t i = 0; i < symbols->section_count; i++) {
        const ElfW(Shdr) * section = &symbols->sections[i];
        const ElfW(Addr) at = address - section->sh_addr;
        if (section->sh_flags & SHF_EXECINSTR && at < section->sh_size) return section->sh_size - at >= 2 * INSTRUCTION_BYTES_MAX;
    }
    return false;
}

/* Code of a PLT jumps to an address in memory, at once or behind an endbr64. */
static bool is_plt(const uint8_t * code) {
    struct instruction instruction;
    for (int tries = 0; tries < 2 && instruction_read(&instruction, code, INSTRUCTION_BYTES_MAX); tries++) {
        if (instruction.kind == INSTRUCTION_JUMP_ANY) return instruction.distance_bytes;
        if (instruction.length != 4 || instruction.kind != INSTRUCTION_PLAIN) return false;
        code += instruction.length;
    }
    return false;
}

bool register_use_is_full(const struct symbols * symbols, uintptr_t base, const struct code * function, const struct code * part) {
    struct callees callees = {.count = 0};
    if (calls_unknown(function, &callees) || (part->bytes && calls_unknown(part, &callees))) return true;
    for (size_t i = 0; i < callees.count; i++) {
        const ElfW(Addr) address = (uintptr_t) callees.at[i] - base;
        const ElfW(Sym) * symbol = symbols_at(symbols, address);
        const struct code code = register_use_code(base, symbol);
        if (symbol ? calls_unknown(&code, &callees) : is_code(symbols, address) && is_plt(callees.at[i])) return true;
    }
    return false;
}
