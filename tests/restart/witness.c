/* A client that outlives its server and prints what it notices. In plain JACK: nothing here knows how the server works.
 *
 *   witness NAME [FROM]     in -> out, with aliases and latencies; connects FROM to its input once it is active.
 *                           NAME may be "+NAME": then it is never activated.
 *
 * Prints "ready" once; at SIGUSR1 its state, in one line that begins with "state "; "shutdown CODE REASON" when the
 * shutdown callback is called; at SIGUSR2 it closes its client and prints "closed CODE". Ends at SIGTERM with
 *   ran N backwards N estimates N threads N unknown N xruns N
 * cycles; backward steps of the frame time at a cycle's start, and of the estimate in between; process threads
 * seen; cycles of a length that it was not notified of; xruns that it was notified of. "quantum N" is what its
 * buffer-size callback was called with. */
#define _GNU_SOURCE
#include <jack/jack.h>
#include <jack/uuid.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static jack_client_t *client;
static jack_port_t *input, *output;
static atomic_ulong ran, backwards, estimates, threads, unknown, xruns;
static atomic_int quit, asked, closing, closed;
static pid_t thread_seen;
static jack_nframes_t expected;
static int expects;
static atomic_uint quantum;

static int is_back(jack_nframes_t now, jack_nframes_t before) { return (int32_t)(now - before) < 0; }

static int run(jack_nframes_t frames, void *unused) {
    jack_nframes_t now = jack_last_frame_time(client);
    (void)unused;
    if (frames != atomic_load(&quantum))
        atomic_fetch_add(&unknown, 1);
    memcpy(jack_port_get_buffer(output, frames), jack_port_get_buffer(input, frames), frames * sizeof(float));
    if (thread_seen != gettid()) {
        thread_seen = gettid();
        atomic_fetch_add(&threads, 1);
    }
    if (expects && is_back(now, expected))
        atomic_fetch_add(&backwards, 1);
    expected = now + frames;
    expects = 1;
    atomic_fetch_add(&ran, 1);
    return 0;
}

/* Reads the clock all the time, like a program with a display. */
static void *look(void *unused) {
    jack_nframes_t last = jack_frame_time(client), last_begin = jack_last_frame_time(client);
    (void)unused;
    while (!atomic_load(&quit) && !atomic_load(&closed)) {
        jack_nframes_t now = jack_frame_time(client), begin = jack_last_frame_time(client);
        struct timespec pause = {0, 200000};
        /* An estimate: the device's clock and the machine's are not the same. */
        if (is_back(now + 4 * jack_get_buffer_size(client), last))
            atomic_fetch_add(&estimates, 1);
        if (is_back(begin, last_begin))
            atomic_fetch_add(&backwards, 1);
        last = now;
        last_begin = begin;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static int on_xrun(void *unused) {
    (void)unused;
    atomic_fetch_add(&xruns, 1);
    return 0;
}

static int on_quantum(jack_nframes_t frames, void *unused) {
    (void)unused;
    atomic_store(&quantum, frames);
    printf("quantum %u\n", frames);
    fflush(stdout);
    return 0;
}

static void print_port(const char *label, jack_port_t *port) {
    char first[512] = "", second[512] = "";
    char *aliases[2] = {first, second};
    int count = jack_port_get_aliases(port, aliases);
    jack_latency_range_t capture, playback;
    jack_port_get_latency_range(port, JackCaptureLatency, &capture);
    jack_port_get_latency_range(port, JackPlaybackLatency, &playback);
    printf(" %s %s uuid %llu flags %d aliases %d '%s' '%s' latency %u-%u %u-%u connected %d", label,
           jack_port_name(port), (unsigned long long)jack_port_uuid(port), jack_port_flags(port), count, first, second,
           capture.min, capture.max, playback.min, playback.max, jack_port_connected(port));
}

static void print_state(void) {
    char *uuid = jack_get_uuid_for_client_name(client, jack_get_client_name(client));
    /* One line, whatever callbacks print meanwhile. */
    flockfile(stdout);
    printf("state name %s uuid %s rate %u quantum %u thread %d", jack_get_client_name(client), uuid ? uuid : "none",
           jack_get_sample_rate(client), jack_get_buffer_size(client), (int)thread_seen);
    print_port("in", input);
    print_port("out", output);
    printf("\n");
    fflush(stdout);
    funlockfile(stdout);
    jack_free(uuid);
}

static void on_signal(int signal) {
    atomic_store(signal == SIGUSR1 ? &asked : signal == SIGUSR2 ? &closing : &quit, 1);
}

static void on_shutdown(jack_status_t code, const char *reason, void *unused) {
    (void)unused;
    printf("shutdown %d %s\n", code, reason);
    fflush(stdout);
}

int main(int argc, char **argv) {
    jack_status_t status;
    pthread_t looker;
    if (argc < 2)
        return 2;
    int active = argv[1][0] != '+';
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    signal(SIGTERM, on_signal);
    client = jack_client_open(argv[1] + !active, JackNoStartServer, &status);
    if (!client)
        return 1;
    input = jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    output = jack_port_register(client, "made", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput | JackPortIsTerminal, 0);
    jack_port_rename(client, output, "out");
    jack_port_set_alias(output, "witness-alias-1");
    jack_port_set_alias(output, "witness-alias-2");
    jack_on_info_shutdown(client, on_shutdown, NULL);
    jack_set_process_callback(client, run, NULL);
    jack_set_buffer_size_callback(client, on_quantum, NULL);
    jack_set_xrun_callback(client, on_xrun, NULL);
    if (active && jack_activate(client) != 0)
        return 1;
    if (argc > 2 && jack_connect(client, argv[2], jack_port_name(input)) != 0)
        return 1;
    if (pthread_create(&looker, NULL, look, NULL) != 0)
        return 1;
    printf("ready\n");
    fflush(stdout);
    while (!atomic_load(&quit)) {
        struct timespec pause = {0, 2000000};
        if (atomic_exchange(&asked, 0))
            print_state();
        if (atomic_exchange(&closing, 0)) {
            atomic_store(&closed, 1);
            pthread_join(looker, NULL);
            printf("closed %d\n", jack_client_close(client));
            fflush(stdout);
        }
        nanosleep(&pause, NULL);
    }
    if (!atomic_load(&closed)) {
        pthread_join(looker, NULL);
        jack_client_close(client);
    }
    printf("ran %lu backwards %lu estimates %lu threads %lu unknown %lu xruns %lu\n", atomic_load(&ran),
           atomic_load(&backwards), atomic_load(&estimates), atomic_load(&threads), atomic_load(&unknown),
           atomic_load(&xruns));
    return 0;
}
