/* Files of the kernel, line by line. */
#pragma once

#include "common/system.h"

enum { LINE_BYTES = 4096 };

struct lines {
    int file; /* the caller closes it */
    size_t used, length;
    char text[LINE_BYTES];
};

bool lines_open(struct lines * of, const char * path);

/* The next line, without its end; NULL after the last one. Of longer ones the rest is a line of its own. */
char * lines_next(struct lines * of);
