#include "recorder/ops.h"

#include "recorder/recording.h"

static enum op op_of_name(const char * name) {
    static const struct { const char * name; enum op op; } known[] = {
        {"NONE", OP_NONE}, {"RESHAPE", OP_VIEW}, {"VIEW", OP_VIEW}, {"PERMUTE", OP_VIEW}, {"TRANSPOSE", OP_VIEW},
        {"RMS_NORM", OP_RMS_NORM}, {"MUL", OP_MUL}, {"MUL_MAT_ID", OP_MUL_MAT_ID},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) if (strcmp(name, known[i].name) == 0) return known[i].op;
    return OP_OTHER;
}

enum op op_of(const void * tensor) {
    static _Atomic uint8_t ops[256]; /* views are looked at without the lock */
    const int32_t number = layout_i32(tensor, recording.layout.op);
    const bool is_kept = number >= 0 && number < 256;
    enum op op = is_kept ? (enum op) atomic_load_explicit(&ops[number], memory_order_relaxed) : OP_UNKNOWN;
    if (op != OP_UNKNOWN) return op;
    op = op_of_name(recording.api.op_name(number));
    if (is_kept) atomic_store_explicit(&ops[number], (uint8_t) op, memory_order_relaxed);
    return op;
}

bool op_has_elements(const void * tensor) {
    for (int i = 0; i < TENSOR_DIMS; i++) if (layout_i64(tensor, recording.layout.ne + 8 * i) == 0) return false;
    return true;
}

bool op_is_computed(const void * node) {
    const struct tensor_layout * layout = &recording.layout;
    const enum op op = op_of(node);
    if (op == OP_NONE || op == OP_VIEW) return false;
    if (layout->compute_flag && (layout_i32(node, layout->flags) & layout->compute_flag) == 0) return false;
    return op_has_elements(node);
}
