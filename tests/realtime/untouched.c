/* A client with 16 outputs that it never touches: its process callback does nothing.
 *
 *   untouched NAME */
#include <jack/jack.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static int do_nothing(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    return 0;
}

int main(int argc, char **argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    jack_client_t *client = argc == 2 ? jack_client_open(argv[1], JackNoStartServer, NULL) : NULL;
    if (!client || jack_set_process_callback(client, do_nothing, NULL) != 0)
        return 1;
    for (int port = 1; port <= 16; port++) {
        char name[16];
        snprintf(name, sizeof name, "out_%d", port);
        if (!jack_port_register(client, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0))
            return 1;
    }
    if (jack_activate(client) != 0)
        return 1;
    printf("ready\n");
    fflush(stdout);
    for (;;)
        pause();
}
