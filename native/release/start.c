/*
 * crt1.o refers to the __libc_start_main of its own glibc, 2.34 or newer. The linker's --wrap redirects that call to this function,
 * which calls the first version. That version also takes `init` and `fini`, which may be NULL.
 */
typedef int any_main(int argc, char ** argv, char ** environment);

int old_start_main(any_main * main, int argc, char ** argv, void (*init)(void), void (*fini)(void), void (*at_exit)(void),
                   void * stack);
GLIBC_AS("old_start_main", "__libc_start_main", GLIBC_OLDEST);

int __wrap___libc_start_main(any_main * main, int argc, char ** argv, void (*init)(void), void (*fini)(void),
                             void (*at_exit)(void), void * stack);
int __wrap___libc_start_main(any_main * main, int argc, char ** argv, void (*init)(void), void (*fini)(void),
                             void (*at_exit)(void), void * stack) {
    return old_start_main(main, argc, argv, init, fini, at_exit, stack);
}
