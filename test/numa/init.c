/* The first process of a guest: runs the lines of /runs (the file for the output, then words), sends all files of /out to the second serial port, and ends the guest. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { WORDS_MAX = 32 };

static void run(char * line) {
    char * words[WORDS_MAX] = {NULL}, * kept, * output = strtok_r(line, " \n", &kept);
    int count = 0;
    for (char * word; count < WORDS_MAX - 1 && (word = strtok_r(NULL, " \n", &kept));) words[count++] = word;
    if (!count) return;
    const pid_t child = fork();
    if (child == 0) {
        int i = 0;
        for (; words[i] && strchr(words[i], '='); i++) putenv(words[i]);
        const int file = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dup2(file, 1);
        execv(words[i], words + i);
        perror(words[i]);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("RUN %s: %d\n", output, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void put_all(int port, const char * bytes, size_t size) {
    for (ssize_t put; size && (put = write(port, bytes, size)) > 0; bytes += put) size -= (size_t) put;
}

/* `name size\n`, and its bytes. */
static void send(int port, const char * name) {
    static char bytes[1 << 16];
    char path[512], head[512];
    struct stat state;
    snprintf(path, sizeof(path), "/out/%s", name);
    const int file = open(path, O_RDONLY);
    if (fstat(file, &state) != 0) return;
    snprintf(head, sizeof(head), "%s %lld\n", name, (long long) state.st_size);
    put_all(port, head, strlen(head));
    for (ssize_t got; (got = read(file, bytes, sizeof(bytes))) > 0;) put_all(port, bytes, (size_t) got);
    close(file);
}

static void send_all(void) {
    const int port = open("/dev/ttyS1", O_RDWR | O_NOCTTY);
    struct termios raw;
    if (tcgetattr(port, &raw) == 0) cfmakeraw(&raw), tcsetattr(port, TCSANOW, &raw);
    DIR * folder = opendir("/out");
    for (struct dirent * entry; folder && (entry = readdir(folder));) if (entry->d_name[0] != '.') send(port, entry->d_name);
    tcdrain(port);
}

int main(void) {
    static const char * const folders[] = {"/proc", "/sys", "/dev", "/tmp", "/out"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) mkdir(folders[i], 0755);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sysfs", "/sys", "sysfs", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    const int console = open("/dev/ttyS0", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(console, i);
    FILE * runs = fopen("/runs", "r");
    char line[1024];
    while (runs && fgets(line, sizeof(line), runs)) run(line);
    send_all();
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    return 0;
}
