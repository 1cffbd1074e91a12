/*
 * Forks after opening and activating a client. Ends with 0 if the child's calls fail and the parent's client goes on;
 * prints what is wrong and ends with 1 otherwise.
 */
#include <jack/jack.h>
#include <jack/transport.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 60 };

static int failures;
static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    failures++;
}
#define CHECK(condition) check(condition, __LINE__, #condition)

static int process(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    return 0;
}

/* Waits until the client has begun another cycle. */
static int runs(jack_client_t *client) {
    jack_nframes_t before = jack_last_frame_time(client);
    for (int waited_ms = 0; waited_ms < PATIENCE_S * 1000; waited_ms++) {
        if (jack_last_frame_time(client) != before)
            return 1;
        usleep(1000);
    }
    return 0;
}

/* Calls that read shared memory, which the child does not have. */
static void read_memory(jack_client_t *client, jack_port_t *port) {
    jack_nframes_t frames;
    jack_time_t now, next;
    float period;
    CHECK(jack_last_frame_time(client) == 0);
    CHECK(jack_frames_since_cycle_start(client) == 0);
    CHECK(jack_frame_time(client) == 0);
    CHECK(jack_frames_to_time(client, 48000) == 0);
    CHECK(jack_time_to_frames(client, jack_get_time()) == 0);
    CHECK(jack_get_cycle_times(client, &frames, &now, &next, &period) != 0);
    CHECK(jack_cpu_load(client) == 0);
    CHECK(jack_get_sample_rate(client) == 0);
    CHECK(jack_get_buffer_size(client) == 0);
    /* Memory that no other client reads. */
    float *samples = jack_port_get_buffer(port, 256);
    CHECK(samples != NULL);
    if (samples)
        samples[0] = 1;
    CHECK(jack_transport_query(client, NULL) == JackTransportStopped);
}

/* Calls that ask the server, over a socket that belongs to the parent. */
static void request(jack_client_t *client, jack_port_t *port) {
    CHECK(jack_port_register(client, "more", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0) == NULL);
    CHECK(jack_port_unregister(client, port) != 0);
    CHECK(jack_connect(client, "forked:out", "system:playback_1") != 0);
    CHECK(jack_disconnect(client, "forked:out", "system:playback_2") != 0);
    CHECK(jack_get_ports(client, NULL, NULL, 0) == NULL);
    CHECK(jack_port_by_name(client, "system:playback_1") == NULL);
    CHECK(jack_set_buffer_size(client, 512) != 0);
    CHECK(jack_set_freewheel(client, 1) != 0);
    CHECK(jack_transport_locate(client, 48000) != 0);
    CHECK(jack_activate(client) != 0);
    CHECK(jack_deactivate(client) != 0);
}

int main(void) {
    jack_client_t *client = jack_client_open("forked", JackNoStartServer, NULL);
    if (!client)
        return 1;
    jack_port_t *port = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    CHECK(port != NULL);
    CHECK(jack_set_process_callback(client, process, NULL) == 0);
    CHECK(jack_activate(client) == 0);
    CHECK(jack_connect(client, "forked:out", "system:playback_2") == 0);
    CHECK(runs(client));
    pid_t child = fork();
    if (child == 0) {
        read_memory(client, port);
        request(client, port);
        jack_client_close(client);
        _exit(failures != 0);
    }
    int ended = -1;
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK(!WIFSIGNALED(ended));
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    CHECK(runs(client));
    CHECK(jack_port_connected_to(port, "system:playback_2"));
    CHECK(jack_client_close(client) == 0);
    return failures != 0;
}
