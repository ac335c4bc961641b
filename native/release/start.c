/*
 * The beginning of a program (crt1.o) asks for the __libc_start_main of the glibc that it comes with, 2.34 or newer: it is linked
 * with --wrap to get here. Older ones take `init` and `fini`, too, and do without where they are NULL.
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
