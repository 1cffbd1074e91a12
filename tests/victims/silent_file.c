/* Opens a file of which nothing is answered, prints the number of its descriptor, or "none" where nobody may mount a file
 * system of FUSE, and ends when that file system does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "silent_fuse.h"

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int file = silent_fuse_file();
    if (file < 0) {
        printf("none\n");
        return 1;
    }
    printf("%d\n", file);
    fflush(stdout);
    wait(NULL);
    return 0;
}
