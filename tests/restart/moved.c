/* A client that changes its environment once it is open, as programs do at any time.
 *
 *   moved NAME */
#include <jack/jack.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    jack_client_t *client = argc == 2 ? jack_client_open(argv[1], JackNoStartServer, NULL) : NULL;
    if (!client || jack_activate(client) != 0)
        return 1;
    setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
    setenv("JACK_PROMISCUOUS_SERVER", "no such group", 1);
    printf("ready\n");
    fflush(stdout);
    for (;;)
        pause();
}
