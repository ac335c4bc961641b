#include "common/system.h"
#include "common/bus.h"

#include "log/ggtrace-file.h"

static struct ggtrace * watched;
static struct sigaction before;

/* As if this handler were not there. */
static void pass_on(int number, siginfo_t * info, void * context) {
    if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL) before.sa_handler(number);
    const bool is_default = !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL;
    if (!is_default && !(before.sa_flags & (int) SA_RESETHAND)) return;
    signal(number, SIG_DFL);
    /* A fault happens again when this returns, with the same address; a signal that was sent does not. */
    if (is_default && info->si_code <= 0) raise(number);
}

static void on_bus(int number, siginfo_t * info, void * context) {
    const int kept = errno;
    const bool is_ours = info->si_code == BUS_ADRERR && ggtrace_survive(watched, info->si_addr);
    errno = kept;
    if (!is_ours) pass_on(number, info, context);
}

void bus_watch(struct ggtrace * log) {
    if (watched || sigaction(SIGBUS, NULL, &before) != 0) return;
    /* exec keeps an ignored signal ignored, but not one that has a handler: the next program would see the difference. */
    if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_IGN) return;
    watched = log;
    struct sigaction own = before;
    own.sa_sigaction = on_bus;
    own.sa_flags = (before.sa_flags & ~(int) SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGBUS, &own, NULL);
}
