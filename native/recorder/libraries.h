/* Which library an address lies in, and the real functions behind our hooks. */
#ifndef GGML2PERFETTO_LIBRARIES_H
#define GGML2PERFETTO_LIBRARIES_H

/* The handle of the library that an address lies in, and its path; a search in it includes the libraries it is linked to. */
void * library_of(const void * address, const char ** path);

/*
 * The function `name` that a program would have called without us, seen from `caller`. Backends are loaded with
 * RTLD_LOCAL, which RTLD_NEXT does not see: the caller's own library is asked.
 */
void * library_resolve(const char * name, const void * caller);

#endif
