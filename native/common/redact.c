#include "common/redact.h"

#include <strings.h>

#define REDACTED "[redacted]"
#define BLANKS " \t\n\r"

enum { NAME_BYTES = 128, BEARER_BYTES_MIN = 8 };

struct scan {
    const char * text;
    size_t length, at;
    char * out;
    size_t size, used;
    uint32_t count;
};

static char byte_at(const struct scan * scan, size_t at) {
    return at < scan->length ? scan->text[at] : 0;
}

static bool is_one_of(char byte, const char * bytes) {
    return byte != 0 && strchr(bytes, byte);
}

static bool is_alnum(char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_name(char byte) {
    return is_alnum(byte) || byte == '_' || byte == '-';
}

static void put(struct scan * scan, const char * bytes, size_t count) {
    for (size_t i = 0; i < count && scan->used + 1 < scan->size; i++) {
        scan->out[scan->used++] = bytes[i] ? bytes[i] : ' ';
    }
}

/* Copies the next bytes. */
static void copy(struct scan * scan, size_t count) {
    put(scan, scan->text + scan->at, count);
    scan->at += count;
}

static void redact(struct scan * scan, size_t count) {
    if (count == 0) return;
    const bool is_done = strncmp(scan->text + scan->at, REDACTED, strlen(REDACTED)) == 0;
    put(scan, REDACTED, strlen(REDACTED));
    scan->at += count;
    if (!is_done) scan->count++;
}

/* Does a name, in lower case and with - for _, end in this word? */
static bool ends_with(const char * name, const char * word) {
    const size_t length = strlen(name), count = strlen(word);
    if (length < count || strcmp(name + length - count, word) != 0) return false;
    return length == count || name[length - count - 1] == '-';
}

/* Options about tokens of a vocabulary or numbers of tokens. */
static bool is_token_of_text(const char * name) {
    static const char * const kinds[] = {"bos", "eos", "eot", "eog", "pad", "unk", "sep", "cls", "mask", "stop",
                                         "start", "end", "max", "min", "num", "n", "per", "special", "image"};
    char word[32];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (ends_with(name, strcat(strcpy(word, kinds[i]), "-token"))) return true;
    }
    return false;
}

/* Is the value of the option or variable with this name a secret? `text` is the name as written. */
static bool is_secret_name(const char * text, size_t count) {
    static const char * const parts[] = {"password", "passwd", "passphrase", "secret", "api-key", "apikey",
                                         "access-key", "private-key", "credential"};
    static const char * const words[] = {"authorization", "auth", "bearer", "cookie", "pass", "pwd", "signature"};
    const bool is_option = *text == '-';
    while (count && *text == '-') text++, count--;
    char name[NAME_BYTES];
    if (count == 0 || count >= sizeof(name)) return false;
    bool is_upper = true;
    for (size_t i = 0; i < count; i++) {
        is_upper &= !(text[i] >= 'a' && text[i] <= 'z');
        name[i] = (char) (text[i] == '_' ? '-' : text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
    }
    name[count] = 0;
    if (ends_with(name, "file") || ends_with(name, "path") || ends_with(name, "dir")) return false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) if (strstr(name, parts[i])) return true;
    if (ends_with(name, "token")) return !is_token_of_text(name);
    if (is_upper && count >= 3 && strcmp(name + count - 3, "key") == 0) return true;
    if (is_option && (strcmp(name, "key") == 0 || strcmp(name, "k") == 0)) return true;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) if (ends_with(name, words[i])) return true;
    return strcmp(name, "hft") == 0;
}

/* Length of the value: up to the end of its word if it fills the word, or up to the end of its part of a word. */
static size_t value_bytes(const struct scan * scan, bool is_whole) {
    size_t end = scan->at;
    while (end < scan->length && scan->text[end] && (is_whole || !is_one_of(scan->text[end], BLANKS "\"'&;"))) end++;
    return end - scan->at;
}

/* Is it a cookie's value? The end of `text`, a name, says so. */
static bool is_cookie(const char * text, size_t count) {
    const size_t length = strlen("cookie");
    return count >= length && strncasecmp(text + count - length, "cookie", length) == 0;
}

/* Length of the value of a cookie and of all `; name=value` that follow. */
static size_t cookie_bytes(struct scan scan) {
    const size_t begin = scan.at;
    scan.at += value_bytes(&scan, false);
    while (byte_at(&scan, scan.at) == ';') {
        struct scan next = scan;
        do next.at++; while (is_one_of(byte_at(&next, next.at), BLANKS));
        const size_t count = value_bytes(&next, false);
        if (count == 0 || !memchr(scan.text + next.at, '=', count)) break;
        scan.at = next.at + count;
    }
    return scan.at - begin;
}

/* `Bearer <value>` and the like. */
static size_t scheme_bytes(const struct scan * scan, size_t at) {
    static const char * const schemes[] = {"bearer", "basic", "token", "digest"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
        const size_t count = strlen(schemes[i]);
        if (strncasecmp(scan->text + at, schemes[i], count) != 0) continue;
        size_t blanks = 0;
        while (is_one_of(byte_at(scan, at + count + blanks), BLANKS)) blanks++;
        if (blanks) return count + blanks;
    }
    return 0;
}

/* An option or variable whose name marks its value as a secret. */
static bool redact_named(struct scan * scan, size_t name_bytes) {
    const size_t begin = scan->at;
    const char * name = scan->text + begin;
    size_t end = begin + name_bytes;
    const char separator = byte_at(scan, end);
    const bool is_word = begin == 0 || scan->text[begin - 1] == 0;
    const bool is_query_key = begin > 0 && is_one_of(scan->text[begin - 1], "?&") &&
                              (strncasecmp(name, "key=", 4) == 0 || strncasecmp(name, "sig=", 4) == 0);
    if (!is_query_key && !is_secret_name(name, name_bytes)) return false;
    if (is_one_of(separator, "=:\"'")) {
        const bool is_whole = separator == '=' && is_word;
        bool is_assigned = false;
        for (; is_one_of(byte_at(scan, end), is_whole ? "=" : "=:\"' "); end++) is_assigned |= is_one_of(scan->text[end], "=:");
        if (!is_assigned) return false; /* a word in quotes */
        if (!is_whole) end += scheme_bytes(scan, end);
        copy(scan, end - begin);
        redact(scan, !is_whole && is_cookie(name, name_bytes) ? cookie_bytes(*scan) : value_bytes(scan, is_whole));
        return true;
    }
    if (*name != '-' || (separator != 0 && !is_one_of(separator, BLANKS))) return false;
    const bool is_whole = is_word && separator == 0;
    end++;
    while (!is_whole && is_one_of(byte_at(scan, end), BLANKS)) end++;
    copy(scan, end < scan->length ? end - begin : name_bytes);
    const char * other = name_bytes == 2 ? "-" : "--"; /* another option: `curl -k -v` */
    if (strncmp(scan->text + scan->at, other, strlen(other)) != 0) redact(scan, value_bytes(scan, is_whole));
    return true;
}

/* The shapes of known secrets: their prefix, the bytes after it, and the minimum number of those. */
static const struct shape {
    const char * prefix, * more;
    size_t least;
} shapes[] = {
    {"sk-", "_-", 12},   {"hf_", "", 12},    {"ghp_", "", 12},   {"gho_", "", 12},   {"ghu_", "", 12},
    {"ghs_", "", 12},    {"ghr_", "", 12},   {"xoxa-", "-", 8},  {"xoxb-", "-", 8},  {"xoxe-", "-", 8},
    {"xoxo-", "-", 8},   {"xoxp-", "-", 8},  {"xoxr-", "-", 8},  {"xoxs-", "-", 8},  {"AKIA", "", 12},
    {"ASIA", "", 12},    {"AIza", "_-", 20}, {"nvapi-", "_-", 12}, {"glpat-", "_-", 12}, {"github_pat_", "_", 12},
    {"eyJ", "_-.", 20},
};

static size_t secret_bytes(const struct scan * scan) {
    const char * text = scan->text + scan->at;
    if (scan->at > 0 && is_one_of(text[-1], "/.")) return 0; /* part of a path */
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        const size_t begin = strlen(shapes[i].prefix);
        if (strncmp(text, shapes[i].prefix, begin) != 0) continue;
        size_t end = begin;
        while (is_alnum(byte_at(scan, scan->at + end)) || is_one_of(byte_at(scan, scan->at + end), shapes[i].more)) end++;
        if (end - begin < shapes[i].least) return 0;
        if (strcmp(shapes[i].prefix, "eyJ") == 0) return memchr(text, '.', end) ? end : 0;
        const char next = text[end], behind = byte_at(scan, scan->at + end + 1);
        const bool is_path = next == '/' || is_name(next) || (next == '.' && (is_name(behind) || behind == '/'));
        return is_path ? 0 : end;
    }
    return 0;
}

/* At `://`: redacts the user information before the @, except a user name followed by a password. */
static bool redact_user(struct scan * scan) {
    if (strncmp(scan->text + scan->at, "://", 3) != 0) return false;
    const char * before = scan->text + scan->at;
    const bool is_http = (scan->at >= 4 && strncasecmp(before - 4, "http", 4) == 0) ||
                         (scan->at >= 5 && strncasecmp(before - 5, "https", 5) == 0);
    size_t end = scan->at + 3, at_sign = 0, colon = 0;
    for (; end < scan->length && scan->text[end] && !is_one_of(scan->text[end], BLANKS "/?#\"'"); end++) {
        if (scan->text[end] == '@') at_sign = end;
        if (scan->text[end] == ':' && !colon) colon = end;
    }
    if (!at_sign) return false;
    const bool has_password = colon && colon < at_sign;
    if (!has_password && !is_http) return false;
    copy(scan, (has_password ? colon + 1 : scan->at + 3) - scan->at);
    redact(scan, at_sign - scan->at);
    return true;
}

static bool redact_here(struct scan * scan) {
    if (redact_user(scan)) return true;
    const bool is_start = scan->at == 0 || !is_name(scan->text[scan->at - 1]);
    if (!is_start || !is_name(scan->text[scan->at])) return false;
    const size_t secret = secret_bytes(scan);
    if (secret) return redact(scan, secret), true;
    size_t name = 0;
    while (is_name(byte_at(scan, scan->at + name))) name++;
    if (redact_named(scan, name)) return true;
    if (name != strlen("bearer") || strncasecmp(scan->text + scan->at, "bearer", name) != 0) return false;
    size_t begin = scan->at + name;
    while (begin < scan->length && (scan->text[begin] == 0 || is_one_of(scan->text[begin], BLANKS))) begin++;
    size_t end = begin;
    while (is_alnum(byte_at(scan, end)) || is_one_of(byte_at(scan, end), "._~+/=-")) end++;
    if (begin == scan->at + name || end - begin < BEARER_BYTES_MIN) return false;
    copy(scan, begin - scan->at);
    redact(scan, end - begin);
    return true;
}

uint32_t redact_command(const char * words, size_t length, char * out, size_t size) {
    struct scan scan = {.text = words, .length = length, .out = out, .size = size};
    while (length && words[length - 1] == 0) length--;
    scan.length = length;
    while (scan.at < scan.length) if (!redact_here(&scan)) copy(&scan, 1);
    out[scan.used] = 0;
    return scan.count;
}
