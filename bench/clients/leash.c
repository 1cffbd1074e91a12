/* Runs a server for as long as the writing end of this program's input is open.
 *
 *   leash LOG COMMAND [ARGUMENT…]
 *
 * Prints "pid PID", and "ended STATUS" when the command has ended. At the end of its own input (the benchmark
 * closed it, failed, or was killed) it sends SIGTERM, and SIGKILL five seconds later. Signals of the terminal do not
 * reach the command: it is in a process group of its own. */
#define _GNU_SOURCE
#include "timestamps.h"
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define GRACE_MS 5000

static pid_t start(const char *log, char **command) {
    pid_t leash = getpid();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != leash)
        _exit(126);
    int output = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(output, 1);
    dup2(output, 2);
    execvp(command[0], command);
    dprintf(2, "cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

int main(int argc, char **argv) {
    if (argc < 3)
        say_and_fail("usage: leash LOG COMMAND [ARGUMENT…]");
    setpgid(0, 0);
    signal(SIGPIPE, SIG_IGN);
    pid_t pid = start(argv[1], argv + 2);
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pid < 0 || process < 0)
        say_and_fail("cannot start the command");
    printf("pid %d\n", (int)pid);
    fflush(stdout);

    struct pollfd watched[2] = {{.fd = process, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    char ignored[256];
    do {
        if (poll(watched, 2, -1) < 0 && errno != EINTR)
            break;
    } while (!(watched[0].revents & POLLIN) && !(watched[1].revents && read(0, ignored, sizeof ignored) <= 0));
    if (!(watched[0].revents & POLLIN)) {
        kill(pid, SIGTERM);
        if (poll(watched, 1, GRACE_MS) <= 0)
            kill(pid, SIGKILL);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    printf("ended %d\n", status);
    return 0;
}
