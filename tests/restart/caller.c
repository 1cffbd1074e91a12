/* A client that calls libjack while it has no server. In plain JACK.
 *
 *   caller NAME LOOP        opens NAME with two ports. At SIGUSR1 it makes the calls below, one after the other, and
 *                           prints "call FUNCTION RESULT" when each has returned, then "all called".
 *                           With LOOP "activate" or "connect" it does that again and again instead, until SIGUSR2, and
 *                           then prints "loop N ok M failed": how often, and how often with an error.
 *
 * Prints "ready" once. Ends at SIGTERM. */
#include <jack/jack.h>
#include <jack/metadata.h>
#include <jack/transport.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static jack_client_t *client;
static jack_port_t *input, *output;
static atomic_int quit, asked, enough;

static int run(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    return 0;
}

static void on_signal(int signal) {
    atomic_store(signal == SIGUSR1 ? &asked : signal == SIGUSR2 ? &enough : &quit, 1);
}

static void called(const char *function, long result) {
    printf("call %s %ld\n", function, result);
    fflush(stdout);
}

static void call_all(void) {
    jack_position_t position;
    jack_latency_range_t range = {1, 2};
    const char **names;
    jack_status_t status;
    /* Those that need no server. */
    called("jack_get_sample_rate", (long)jack_get_sample_rate(client));
    called("jack_get_buffer_size", (long)jack_get_buffer_size(client));
    called("jack_frame_time", jack_frame_time(client) != 0);
    called("jack_last_frame_time", jack_last_frame_time(client) != 0);
    called("jack_cpu_load", jack_cpu_load(client) >= 0);
    called("jack_port_name", strcmp(jack_port_name(output), "caller:out"));
    called("jack_port_connected", jack_port_connected(output));
    names = jack_get_ports(client, "system:.*", NULL, JackPortIsInput);
    called("jack_get_ports", names != NULL);
    jack_free(names);
    called("jack_port_by_name", jack_port_by_name(client, "system:playback_1") != NULL);
    called("jack_transport_query", jack_transport_query(client, &position) <= JackTransportNetStarting);
    /* A client that is inactive needs none to become it. */
    called("jack_deactivate", jack_deactivate(client));
    /* Those that need one. */
    jack_port_set_latency_range(input, JackCaptureLatency, &range);
    called("jack_port_set_latency_range", 0);
    called("jack_port_register", jack_port_register(client, "more", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0) != NULL);
    called("jack_connect", jack_connect(client, "caller:out", "system:playback_2"));
    called("jack_disconnect", jack_disconnect(client, "caller:out", "system:playback_1"));
    called("jack_port_rename", jack_port_rename(client, output, "renamed"));
    called("jack_port_unregister", jack_port_unregister(client, input));
    called("jack_set_buffer_size", jack_set_buffer_size(client, 128));
    called("jack_recompute_total_latencies", jack_recompute_total_latencies(client));
    called("jack_activate", jack_activate(client));
    called("jack_client_open", jack_client_open("another", JackNoStartServer, &status) != NULL);
    called("jack_client_close", jack_client_close(client));
    client = NULL;
    printf("all called\n");
    fflush(stdout);
}

static void loop(const char *what) {
    unsigned long count = 0, failed = 0;
    while (!atomic_load(&enough)) {
        if (strcmp(what, "activate") == 0) {
            failed += jack_deactivate(client) != 0;
            failed += jack_activate(client) != 0;
        } else {
            failed += jack_connect(client, "caller:out", "system:playback_2") != 0;
            failed += jack_disconnect(client, "caller:out", "system:playback_2") != 0;
        }
        count++;
    }
    printf("loop %lu ok %lu failed\n", count, failed);
    fflush(stdout);
}

int main(int argc, char **argv) {
    jack_status_t status;
    if (argc < 3)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    signal(SIGTERM, on_signal);
    client = jack_client_open(argv[1], JackNoStartServer, &status);
    if (!client)
        return 1;
    input = jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    output = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    jack_set_process_callback(client, run, NULL);
    if (jack_activate(client) != 0 || jack_connect(client, "caller:out", "system:playback_1") != 0)
        return 1;
    printf("ready\n");
    fflush(stdout);
    while (!atomic_load(&quit)) {
        struct timespec pause = {0, 2000000};
        if (atomic_exchange(&asked, 0)) {
            if (strcmp(argv[2], "once") == 0)
                call_all();
            else
                loop(argv[2]);
        }
        nanosleep(&pause, NULL);
    }
    if (client)
        jack_client_close(client);
    return 0;
}
