/*
 * Asks to monitor ports, prints of each whether it is monitored, and withdraws the request when it is asked to end:
 * `monitor PORT...`.
 */
#include <jack/jack.h>
#include <signal.h>
#include <stdio.h>

static int ask(jack_client_t *client, char **ports, int on) {
    for (; *ports; ports++)
        if (jack_port_request_monitor_by_name(client, *ports, on) != 0)
            return 1;
    return 0;
}

int main(int argc, char **argv) {
    sigset_t ends;
    int ended;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    /* Before the library has threads, which inherit it. */
    sigprocmask(SIG_BLOCK, &ends, NULL);
    jack_client_t *client = jack_client_open("monitor", JackNoStartServer, NULL);
    if (!client || argc < 2 || ask(client, argv + 1, 1))
        return 1;
    for (int i = 1; i < argc; i++)
        printf("%s %d\n", argv[i], jack_port_monitoring_input(jack_port_by_name(client, argv[i])));
    fflush(stdout);
    sigwait(&ends, &ended);
    int failed = ask(client, argv + 1, 0);
    jack_client_close(client);
    return failed;
}
