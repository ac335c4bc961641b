#include "recorder/instruction.h"

/*
 * What follows an opcode, by opcode:
 *   .  nothing              m  ModRM             M  ModRM, and one byte of an immediate     Z  ModRM, and an immediate of 2 or 4 bytes
 *   b  one byte             w  two bytes         z  2 or 4 bytes                            q  2, 4 or 8 bytes
 *   e  three bytes          o  an address        g, G  ModRM, and for two of the eight an immediate of one byte, or of 2 or 4
 *   r  a distance of one byte                    R  a distance of four bytes
 *   x  not known, or no opcode in 64-bit programs
 */
static const char one_byte[] =
    "mmmmbzxxmmmmbzxx" /* 00 */
    "mmmmbzxxmmmmbzxx" /* 10 */
    "mmmmbzxxmmmmbzxx" /* 20 */
    "mmmmbzxxmmmmbzxx" /* 30 */
    "xxxxxxxxxxxxxxxx" /* 40 */
    "................" /* 50 */
    "xxxmxxxxzZbM...." /* 60 */
    "rrrrrrrrrrrrrrrr" /* 70 */
    "MZxMmmmmmmmmmmmm" /* 80 */
    "..........x....." /* 90 */
    "oooo....bz......" /* a0 */
    "bbbbbbbbqqqqqqqq" /* b0 */
    "MMw.xxMZe.w..bx." /* c0 */
    "mmmmxxx.mmmmmmmm" /* d0 */
    "rrrrbbbbRRxr...." /* e0 */
    "x.xx..gG......mm"; /* f0 */
static const char two_bytes[] = /* after 0f */
    "mmmmx.....x.xm.M" /* 00 */
    "mmmmmmmmmmmmmmmm" /* 10 */
    "mmmmxxxxmmmmmmmm" /* 20 */
    "......x.xxxxxxxx" /* 30 */
    "mmmmmmmmmmmmmmmm" /* 40 */
    "mmmmmmmmmmmmmmmm" /* 50 */
    "mmmmmmmmmmmmmmmm" /* 60 */
    "MMMMmmm.mmmmmmmm" /* 70 */
    "RRRRRRRRRRRRRRRR" /* 80 */
    "mmmmmmmmmmmmmmmm" /* 90 */
    "...mMmxx...mMmmm" /* a0 */
    "mmmmmmmmmmMmmmmm" /* b0 */
    "mmMmMMMm........" /* c0 */
    "mmmmmmmmmmmmmmmm" /* d0 */
    "mmmmmmmmmmmmmmmm" /* e0 */
    "mmmmmmmmmmmmmmmm"; /* f0 */

/* The opcode's map: 0 is that of one byte, 1 that after 0f, 2 after 0f 38, 3 after 0f 3a; of EVEX also 5 and 6. */
struct opcode {
    const uint8_t * code;
    size_t size, at; /* of the opcode, then of what follows it */
    uint8_t map, byte;
    bool is_vector;  /* VEX or EVEX */
    bool is_wide, is_narrow, has_short_addresses; /* REX.W; the prefixes 66 and 67 */
};

static bool is_prefix(uint8_t byte) {
    return byte == 0x26 || byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x64 || byte == 0x65 || byte == 0x66 || byte == 0x67 ||
           byte == 0xf0 || byte == 0xf2 || byte == 0xf3;
}

/* VEX and EVEX: their prefix contains the map. */
static bool read_vector(struct opcode * opcode, uint8_t first) {
    const size_t bytes = first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3;
    if (opcode->at + bytes >= opcode->size) return false;
    const uint8_t fields = opcode->code[opcode->at];
    opcode->map = first == 0xc5 ? 1 : first == 0xc4 ? fields & 0x1f : fields & 7;
    if (first == 0x62 && (fields & 8)) return false;
    opcode->is_vector = true;
    opcode->at += bytes;
    const uint8_t most = first == 0x62 ? 6 : 3;
    return opcode->map >= 1 && opcode->map <= most && opcode->map != 4;
}

static bool read_opcode(struct opcode * opcode) {
    const uint8_t * code = opcode->code;
    for (; opcode->at < opcode->size && is_prefix(code[opcode->at]); opcode->at++) {
        opcode->is_narrow |= code[opcode->at] == 0x66;
        opcode->has_short_addresses |= code[opcode->at] == 0x67;
    }
    if (opcode->at < opcode->size && (code[opcode->at] & 0xf0) == 0x40) opcode->is_wide = code[opcode->at++] & 8;
    if (opcode->at >= opcode->size) return false;
    const uint8_t first = code[opcode->at++];
    if (first == 0xc4 || first == 0xc5 || first == 0x62) {
        if (!read_vector(opcode, first)) return false;
    } else if (first == 0x0f) {
        if (opcode->at >= opcode->size) return false;
        const uint8_t second = code[opcode->at];
        opcode->map = second == 0x38 ? 2 : second == 0x3a ? 3 : 1;
        if (opcode->map != 1) opcode->at++;
    } else opcode->at--;
    if (opcode->at >= opcode->size) return false;
    opcode->byte = code[opcode->at++];
    return true;
}

static char shape_of(const struct opcode * opcode) {
    if (opcode->map == 0) return one_byte[opcode->byte];
    if (opcode->map == 3) return 'M';
    if (opcode->map != 1) return 'm';
    const char shape = two_bytes[opcode->byte];
    if (opcode->is_vector) return shape == 'm' || shape == 'M' || opcode->byte == 0x77 ? shape : 'x';
    return opcode->byte >= 0x78 && opcode->byte <= 0x7b ? 'x' : shape; /* SSE4a has immediates there */
}

/* The bytes of ModRM, SIB and displacement; 0: unknown. */
static size_t read_operand(const struct opcode * opcode, struct instruction * instruction) {
    const uint8_t * code = opcode->code + opcode->at;
    const uint8_t mode = code[0] >> 6, base = code[0] & 7;
    if (mode == 3) return 1;
    const bool has_index = base == 4;
    if (has_index && opcode->at + 1 >= opcode->size) return 0;
    const bool is_fixed = mode == 0 && (has_index ? (code[1] & 7) == 5 : base == 5);
    if (is_fixed && !has_index) {
        if (opcode->has_short_addresses) return 0;
        instruction->distance_at = (uint8_t) (opcode->at + 1);
        instruction->distance_bytes = 4;
        if (opcode->map == 0 && opcode->byte == 0x8d) instruction->may_use_table = true;
    }
    if (is_fixed && has_index) instruction->may_use_table = true;
    return 1u + has_index + (is_fixed || mode == 2 ? 4u : mode == 1 ? 1u : 0u);
}

static size_t immediate_of(const struct opcode * opcode, char shape, uint8_t extension) {
    const size_t word = opcode->is_narrow && !opcode->is_wide ? 2 : 4;
    switch (shape) {
        case 'b': case 'M': case 'r': return 1;
        case 'w': return 2;
        case 'e': return 3;
        case 'R': return 4;
        case 'z': case 'Z': return word;
        case 'q': return opcode->is_wide ? 8 : word;
        case 'o': return opcode->has_short_addresses ? 4 : 8;
        case 'g': return extension < 2 ? 1 : 0;
        case 'G': return extension < 2 ? word : 0;
        default: return 0;
    }
}

/* Of an opcode in the map of one byte. */
static enum instruction_kind kind_of(uint8_t byte, uint8_t operand) {
    const uint8_t extension = operand >> 3 & 7;
    switch (byte) {
        case 0xe8: return INSTRUCTION_CALL;
        case 0xe9: case 0xeb: return INSTRUCTION_JUMP;
        case 0xe0: case 0xe1: case 0xe2: case 0xe3: return INSTRUCTION_LOOP;
        case 0xc2: case 0xc3: case 0xca: case 0xcb: case 0xcf: return INSTRUCTION_RETURN;
        case 0xcc: case 0xcd: case 0xf1: case 0xf4: return INSTRUCTION_TRAP;
        case 0xc7: return operand == 0xf8 ? INSTRUCTION_OTHER : INSTRUCTION_PLAIN;
        case 0xff: return extension == 2 || extension == 3 ? INSTRUCTION_CALL_ANY : extension == 4 || extension == 5 ? INSTRUCTION_JUMP_ANY : INSTRUCTION_PLAIN;
        default: return (byte & 0xf0) == 0x70 ? INSTRUCTION_BRANCH : INSTRUCTION_PLAIN;
    }
}

static void classify(const struct opcode * opcode, struct instruction * instruction, uint8_t operand) {
    const uint8_t byte = opcode->byte;
    if (opcode->is_vector) return;
    if (opcode->map == 0) {
        instruction->kind = kind_of(byte, operand);
        instruction->is_by_memory = byte == 0xff && operand >> 6 != 3;
        /* push; sub of a constant from the stack pointer */
        instruction->is_push = (byte & 0xf8) == 0x50 || ((byte == 0x81 || byte == 0x83) && opcode->is_wide && operand == 0xec);
        if (instruction->kind == INSTRUCTION_JUMP_ANY && operand >> 6 != 3 && (operand & 7) == 4) instruction->may_use_table = true;
    } else if (opcode->map == 1) {
        if ((byte & 0xf0) == 0x80) instruction->kind = INSTRUCTION_BRANCH;
        else if (byte == 0x0b || byte == 0xb9 || byte == 0xff) instruction->kind = INSTRUCTION_TRAP;
    }
    instruction->condition = byte & 0xf;
}

bool instruction_read(struct instruction * instruction, const uint8_t * code, size_t size) {
    struct opcode opcode = {.code = code, .size = size < INSTRUCTION_BYTES_MAX ? size : INSTRUCTION_BYTES_MAX};
    *instruction = (struct instruction){.kind = INSTRUCTION_PLAIN};
    if (!read_opcode(&opcode)) return false;
    const char shape = shape_of(&opcode);
    if (shape == 'x') return false;
    const bool has_operand = strchr("mMZgG", shape) != NULL;
    if (has_operand && opcode.at >= opcode.size) return false;
    const uint8_t operand = has_operand ? code[opcode.at] : 0;
    if (opcode.map == 0 && opcode.byte == 0x8f && (operand & 0x38) != 0) return false; /* XOP */
    const size_t operand_bytes = has_operand ? read_operand(&opcode, instruction) : 0;
    if (has_operand && operand_bytes == 0) return false;
    opcode.at += operand_bytes;
    const size_t immediate = immediate_of(&opcode, shape, operand >> 3 & 7);
    if (shape == 'r' || shape == 'R') {
        instruction->distance_at = (uint8_t) opcode.at;
        instruction->distance_bytes = (uint8_t) immediate;
    }
    opcode.at += immediate;
    classify(&opcode, instruction, operand);
    instruction->length = (uint8_t) opcode.at;
    return opcode.at <= opcode.size;
}
