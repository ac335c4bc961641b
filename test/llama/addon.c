/*
 * Makes an add-on of Node.js of a test's program that is compiled with -Dmain=program_main: run([file, argument, …]) does what the program does,
 * and returns its exit code. Node-API is declared here, as far as it is used.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct napi_env_opaque * napi_env;
typedef struct napi_value_opaque * napi_value;
typedef struct napi_info_opaque * napi_info;

extern int napi_create_function(napi_env, const char * name, size_t, napi_value (*)(napi_env, napi_info), void *, napi_value *);
extern int napi_set_named_property(napi_env, napi_value object, const char * name, napi_value);
extern int napi_get_cb_info(napi_env, napi_info, size_t * count, napi_value *, napi_value * self, void **);
extern int napi_get_array_length(napi_env, napi_value, uint32_t *);
extern int napi_get_element(napi_env, napi_value, uint32_t, napi_value *);
extern int napi_get_value_string_utf8(napi_env, napi_value, char *, size_t size, size_t * length);
extern int napi_create_int32(napi_env, int32_t, napi_value *);
extern int program_main(int count, char ** arguments);

enum { ARGUMENTS_MAX = 64, TEXT_BYTES = 4096 };

static napi_value run(napi_env env, napi_info info) {
    static char texts[ARGUMENTS_MAX][TEXT_BYTES];
    char * arguments[ARGUMENTS_MAX + 1] = {NULL};
    napi_value list, result;
    size_t one = 1;
    uint32_t count = 0;
    napi_get_cb_info(env, info, &one, &list, NULL, NULL);
    napi_get_array_length(env, list, &count);
    if (count > ARGUMENTS_MAX) abort();
    for (uint32_t i = 0; i < count; i++) {
        napi_value text;
        napi_get_element(env, list, i, &text);
        napi_get_value_string_utf8(env, text, arguments[i] = texts[i], TEXT_BYTES, NULL);
    }
    const int code = program_main((int) count, arguments);
    fflush(stdout);
    napi_create_int32(env, code, &result);
    return result;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports);

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
    napi_value function;
    napi_create_function(env, "run", SIZE_MAX, run, NULL, &function);
    napi_set_named_property(env, exports, "run", function);
    return exports;
}
