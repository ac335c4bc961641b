#include "recorder/entry.h"

#if defined(__x86_64__)

#include <cpuid.h>

#include "recorder/instruction.h"

enum { REAL_AT = 64, DISTANCE_MAX = 0x7fffffff };

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const uint8_t jump_to_address[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip): the address follows */

/* ---- What can be shown ---- */

/* The instructions that a jump would replace. */
static const char * find_moved(struct function_entry * entry, size_t size, bool * ends_with_push, bool * is_inside) {
    struct instruction instruction;
    while (entry->moved < ENTRY_JUMP_BYTES) {
        const uint8_t * code = entry->at + entry->moved;
        if (entry->moved >= size) return "it is shorter than a jump";
        if (!instruction_read(&instruction, code, size - entry->moved)) return "it begins with an instruction that is not known here";
        switch (instruction.kind) {
            case INSTRUCTION_CALL: case INSTRUCTION_CALL_ANY: return "it begins with a call";
            case INSTRUCTION_LOOP: case INSTRUCTION_OTHER: return "it begins with an instruction that cannot be moved";
            case INSTRUCTION_TRAP: return "it begins with a breakpoint";
            default: break;
        }
        *is_inside |= entry->moved > 0;
        *ends_with_push = instruction.is_push;
        entry->moved += instruction.length;
    }
    return NULL;
}

/* No jump of the code may reach what is replaced, from its first byte on: there, registers would not be those of a call. */
static const char * look_for_jumps(const struct function_entry * entry, const struct code * code, bool * may_use_table) {
    struct instruction instruction;
    bool has_table = false, has_jump = false;
    for (size_t at = 0; at < code->size; at += instruction.length) {
        const uint8_t * bytes = code->bytes + at;
        if (!instruction_read(&instruction, bytes, code->size - at)) return "it contains an instruction that is not known here";
        has_table |= instruction.may_use_table;
        has_jump |= instruction.kind == INSTRUCTION_JUMP_ANY;
        if (instruction.kind != INSTRUCTION_JUMP && instruction.kind != INSTRUCTION_BRANCH && instruction.kind != INSTRUCTION_LOOP) continue;
        if (instruction_target(&instruction, bytes) - entry->at + sizeof(endbr64) < ENTRY_JUMP_BYTES + sizeof(endbr64)) return "it jumps to its first instructions";
    }
    *may_use_table |= has_table && has_jump;
    return NULL;
}

const char * entry_find(struct function_entry * entry, const struct code * function, const struct code * part) {
    const size_t mark = function->size >= sizeof(endbr64) && memcmp(function->bytes, endbr64, sizeof(endbr64)) == 0 ? sizeof(endbr64) : 0;
    *entry = (struct function_entry){.at = function->bytes + mark};
    bool ends_with_push = false, is_inside = false, may_use_table = false;
    const char * problem = find_moved(entry, function->size - mark, &ends_with_push, &is_inside);
    if (!problem) problem = look_for_jumps(entry, function, &may_use_table);
    if (!problem && part->bytes) problem = look_for_jumps(entry, part, &may_use_table);
    if (problem) return problem;
    /* A jump to before a push would repeat it, and the function could not return. */
    if (may_use_table && is_inside && !ends_with_push) return "it jumps by a table, whose targets are not known";
    return NULL;
}

/* ---- Code ---- */

struct writer {
    uint8_t * at;
};

static void put(struct writer * writer, const void * bytes, size_t size) {
    memcpy(writer->at, bytes, size);
    writer->at += size;
}

static void put_address_jump(struct writer * writer, const void * target) {
    put(writer, jump_to_address, sizeof(jump_to_address));
    put(writer, &target, sizeof(target));
}

static bool put_distance(struct writer * writer, const uint8_t * target, const uint8_t * end) {
    const ptrdiff_t distance = target - end;
    const int32_t field = (int32_t) distance;
    put(writer, &field, sizeof(field));
    return distance >= -DISTANCE_MAX && distance <= DISTANCE_MAX;
}

static bool put_near_jump(struct writer * writer, const uint8_t * target) {
    const uint8_t jump[] = {0xe9};
    put(writer, jump, sizeof(jump));
    return put_distance(writer, target, writer->at + sizeof(int32_t));
}

/* Copies an instruction, whose distance changes; short jumps become long ones. */
static bool put_moved(struct writer * writer, const struct instruction * instruction, const uint8_t * code) {
    if (!instruction->distance_bytes) {
        put(writer, code, instruction->length);
        return true;
    }
    const uint8_t * target = instruction_target(instruction, code);
    if (instruction->kind == INSTRUCTION_JUMP) return put_near_jump(writer, target);
    if (instruction->kind == INSTRUCTION_BRANCH) {
        const uint8_t branch[] = {0x0f, 0x80 | instruction->condition};
        put(writer, branch, sizeof(branch));
        return put_distance(writer, target, writer->at + sizeof(int32_t));
    }
    const size_t behind = instruction->distance_at + sizeof(int32_t), rest = instruction->length - behind;
    put(writer, code, instruction->distance_at);
    const bool is_near = put_distance(writer, target, writer->at + sizeof(int32_t) + rest);
    put(writer, code + behind, rest);
    return is_near;
}

/* ---- Calls that keep all registers ---- */

/* What XSAVE saves of the registers, and the bytes for them. */
__attribute__((visibility("hidden"))) uint32_t entry_kept_parts, entry_kept_bytes;

/* The state of x87, SSE, AVX and AVX-512; those of AMX and of protection keys are not for calls to change. */
enum { XSAVE_PARTS = 0xe7, XSAVE_BYTES_MIN = 576, XSAVE_LEAF = 13, OSXSAVE = 1 << 27 };

static bool find_kept(void) {
    uint32_t a, b, c, d, parts, high;
    if (entry_kept_bytes) return true;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE)) return false;
    __asm__ volatile("xgetbv" : "=a"(parts), "=d"(high) : "c"(0));
    entry_kept_parts = parts & XSAVE_PARTS;
    uint32_t bytes = XSAVE_BYTES_MIN;
    for (uint32_t part = 2; part < 8; part++) {
        if (!(entry_kept_parts >> part & 1) || !__get_cpuid_count(XSAVE_LEAF, part, &a, &b, &c, &d)) continue;
        if (b + a > bytes) bytes = b + a;
    }
    entry_kept_bytes = bytes;
    return true;
}

/*
 * The stack has the replacement's address, above it that of the return. Changes no register before all are saved; aligns the stack, which
 * the caller need not have done.
 */
#define KEEPING(name, result)                                                                                       \
    __asm__(".text\n.balign 16\n.hidden " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"            \
            ".cfi_def_cfa_offset 16\n"                                                                              \
            "push %rbp\n.cfi_def_cfa_offset 24\n.cfi_offset %rbp, -24\n"                                            \
            "mov %rsp, %rbp\n.cfi_def_cfa %rbp, 24\n"                                                               \
            "push %rax\npush %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %r10\npush %r11\n"     \
            "mov entry_kept_bytes(%rip), %eax\n"                                                                    \
            "sub %rax, %rsp\nand $-64, %rsp\n"                                                                      \
            "xor %eax, %eax\n"                                                                                      \
            "mov %rax, 512(%rsp)\nmov %rax, 520(%rsp)\nmov %rax, 528(%rsp)\nmov %rax, 536(%rsp)\n"                  \
            "mov %rax, 544(%rsp)\nmov %rax, 552(%rsp)\nmov %rax, 560(%rsp)\nmov %rax, 568(%rsp)\n"                  \
            "mov entry_kept_parts(%rip), %eax\nxor %edx, %edx\n"                                                    \
            "xsave64 (%rsp)\n"                                                                                      \
            "mov -8(%rbp), %rax\nmov -24(%rbp), %rdx\n"                                                             \
            "call *8(%rbp)\n" result                                                                                \
            "mov entry_kept_parts(%rip), %eax\nxor %edx, %edx\n"                                                    \
            "xrstor64 (%rsp)\n"                                                                                     \
            "lea -72(%rbp), %rsp\n"                                                                                 \
            "pop %r11\npop %r10\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop %rcx\npop %rax\npop %rbp\n"    \
            ".cfi_def_cfa %rsp, 16\n.cfi_restore %rbp\n"                                                            \
            "lea 8(%rsp), %rsp\n.cfi_def_cfa_offset 8\n"                                                            \
            "ret\n.cfi_endproc\n.size " name ", .-" name "\n")
KEEPING("entry_keeping", "");
KEEPING("entry_keeping_result", "mov %rax, -8(%rbp)\n");
void entry_keeping(void);
void entry_keeping_result(void);

/* Pushes the replacement's address and jumps, without a register: both addresses follow the two instructions. */
static void put_keeping(struct writer * writer, const void * replacement, enum entry_call call) {
    static const uint8_t push_and_jump[] = {0xff, 0x35, 6, 0, 0, 0, 0xff, 0x25, 8, 0, 0, 0};
    void (* const how)(void) = call == ENTRY_KEEPING ? entry_keeping : entry_keeping_result;
    put(writer, push_and_jump, sizeof(push_and_jump));
    put(writer, &replacement, sizeof(replacement));
    put(writer, &how, sizeof(how));
}

/* ---- A function ---- */

const char * entry_prepare(const struct function_entry * entry, uint8_t room[ENTRY_ROOM_BYTES], const void * replacement, enum entry_call call, void ** real) {
    static const char too_far[] = "the recorder's code is too far from it";
    const ptrdiff_t distance = room - entry->at;
    if (distance < -DISTANCE_MAX || distance > DISTANCE_MAX) return too_far;
    struct writer writer = {room};
    if (call == ENTRY_PLAIN) put_address_jump(&writer, replacement);
    else if (find_kept()) put_keeping(&writer, replacement, call);
    else return "this processor does not save all registers (XSAVE)";
    writer.at = room + REAL_AT;
    *real = writer.at;
    put(&writer, endbr64, sizeof(endbr64));
    struct instruction instruction;
    for (size_t at = 0; at < entry->moved; at += instruction.length) {
        instruction_read(&instruction, entry->at + at, INSTRUCTION_BYTES_MAX);
        if (!put_moved(&writer, &instruction, entry->at + at)) return too_far;
    }
    return put_near_jump(&writer, entry->at + entry->moved) ? NULL : too_far;
}

void entry_redirect(const struct function_entry * entry, const uint8_t room[ENTRY_ROOM_BYTES]) {
    struct writer writer = {entry->at};
    put_near_jump(&writer, room);
}

#else

const char * entry_find(struct function_entry * entry, const struct code * function, const struct code * part) {
    (void) part;
    *entry = (struct function_entry){.at = function->bytes};
    return "on this processor, the recorder changes no code";
}

const char * entry_prepare(const struct function_entry * entry, uint8_t room[ENTRY_ROOM_BYTES], const void * replacement, enum entry_call call, void ** real) {
    (void) room, (void) replacement, (void) call;
    *real = entry->at;
    return "on this processor, the recorder changes no code";
}

void entry_redirect(const struct function_entry * entry, const uint8_t room[ENTRY_ROOM_BYTES]) {
    (void) entry, (void) room;
}

#endif
