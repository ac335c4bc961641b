#include "recorder/lines.h"

char * lines_next(struct lines * of) {
    char * end = memchr(of->text + of->used, '\n', of->length - of->used);
    if (!end) {
        memmove(of->text, of->text + of->used, of->length -= of->used);
        of->used = 0;
        const ssize_t more = read(of->file, of->text + of->length, sizeof(of->text) - 1 - of->length);
        if (more > 0) of->length += (size_t) more;
        end = memchr(of->text, '\n', of->length);
        if (!end) end = of->text + of->length;
        if (!of->length) return NULL;
    }
    char * line = of->text + of->used;
    of->used = (size_t) (end - of->text) + (end < of->text + of->length);
    *end = 0;
    return line;
}

bool lines_open(struct lines * of, const char * path) {
    of->used = of->length = 0;
    of->file = open(path, O_RDONLY | O_CLOEXEC);
    return of->file >= 0;
}
