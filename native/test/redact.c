/* Prints its arguments as the recorder writes a command line, and the number of secrets removed from it. */
#include <stdio.h>
#include <string.h>

#include "common/redact.h"

int main(int count, char ** arguments) {
    char words[4096], text[4096];
    size_t length = 0;
    for (int i = 1; i < count; i++) {
        const size_t bytes = strlen(arguments[i]) + 1;
        if (length + bytes >= sizeof(words)) return 2;
        memcpy(words + length, arguments[i], bytes);
        length += bytes;
    }
    words[length] = 0;
    const unsigned redacted = redact_command(words, length, text, sizeof(text));
    printf("%u %s\n", redacted, text);
    return 0;
}
