/* Why a call of an exported function passed no hook of the recorder. */
#pragma once

enum bypass {
    BYPASS_UNKNOWN,    /* the caller cannot be found out */
    BYPASS_BY_ADDRESS, /* the caller's library imports no such function: it has its address by dlsym */
    BYPASS_INSIDE,     /* the caller is in the library that contains the function */
    BYPASS_BOUND,      /* the caller's library imports it, and was bound to another definition than the recorder's */
};

/* `inside`: an address in the function, from the stack of the calling thread, which was called from elsewhere. May allocate memory. */
enum bypass bypass_of(const void * inside);
