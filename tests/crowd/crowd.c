/*
 * Many clients in one process: `crowd NAME CLIENTS PORTS`.
 *
 * Clients NAME-1, NAME-2, ... each have PORTS ports, outputs and inputs by turns, and a process callback that touches
 * all of them. It prints "open" for each that is active. At each SIGUSR1 it waits until every client has run three more
 * cycles, and prints "ran"; SIGTERM ends it.
 */
#include <jack/jack.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_PORTS = 64 };

struct client {
    jack_client_t *handle;
    jack_port_t *ports[MOST_PORTS];
    int port_count;
    atomic_uint cycles;
    /* Cycles that had run when the last signal came. */
    unsigned before;
};

static int process(jack_nframes_t frames, void *context) {
    struct client *client = context;
    for (int i = 0; i < client->port_count; i += 2) {
        float *out = jack_port_get_buffer(client->ports[i], frames);
        const float *in = jack_port_get_buffer(client->ports[i + 1], frames);
        out[0] = in[0];
    }
    atomic_fetch_add(&client->cycles, 1);
    return 0;
}

static int open_client(struct client *client, const char *crowd, int number) {
    char name[64];
    snprintf(name, sizeof name, "%s-%d", crowd, number);
    client->handle = jack_client_open(name, JackNoStartServer | JackUseExactName, NULL);
    if (!client->handle)
        return 0;
    for (int i = 0; i < client->port_count; i++) {
        snprintf(name, sizeof name, "%s-%d", i % 2 ? "in" : "out", i / 2 + 1);
        client->ports[i] = jack_port_register(client->handle, name, JACK_DEFAULT_AUDIO_TYPE,
                                              i % 2 ? JackPortIsInput : JackPortIsOutput, 0);
        if (!client->ports[i])
            return 0;
    }
    jack_set_process_callback(client->handle, process, client);
    return jack_activate(client->handle) == 0;
}

int main(int count, char **arguments) {
    int clients = count == 4 ? atoi(arguments[2]) : 0, ports = count == 4 ? atoi(arguments[3]) : 0;
    if (clients <= 0 || ports <= 0 || ports > MOST_PORTS || ports % 2)
        return 2;
    /* Also for the library's threads: the loop below receives the signals. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    struct client *all = calloc((size_t)clients, sizeof *all);
    for (int i = 0; i < clients; i++) {
        all[i].port_count = ports;
        if (!open_client(&all[i], arguments[1], i + 1))
            return 1;
        printf("open\n");
        fflush(stdout);
    }
    for (int taken = 0; sigwait(&signals, &taken) == 0 && taken == SIGUSR1;) {
        for (int i = 0; i < clients; i++)
            all[i].before = atomic_load(&all[i].cycles);
        for (int i = 0; i < clients; i++)
            while (atomic_load(&all[i].cycles) - all[i].before < 3)
                usleep(10000);
        printf("ran\n");
        fflush(stdout);
    }
    return 0;
}
