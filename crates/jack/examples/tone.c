/*
 * Plays a sine tone: `tone HZ SECONDS`.
 *
 *   gcc tone.c $(pkg-config --cflags --libs jack) -lm -o tone
 *   consort exec -- ./tone 440 3
 */
#include <jack/jack.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct tone {
    jack_port_t *port;
    double phase, step;
    /* What the process thread tells the main thread. */
    atomic_ulong frames;
    atomic_int server_is_gone;
};

/* In each cycle, on the process thread: no memory is allocated here, nothing locked, nothing printed. */
static int process(jack_nframes_t frames, void *context) {
    struct tone *tone = context;
    float *samples = jack_port_get_buffer(tone->port, frames);
    for (jack_nframes_t i = 0; i < frames; i++) {
        samples[i] = 0.5f * (float)sin(tone->phase);
        tone->phase = fmod(tone->phase + tone->step, 2 * M_PI);
    }
    atomic_fetch_add(&tone->frames, frames);
    return 0;
}

static void on_shutdown(jack_status_t code, const char *reason, void *context) {
    struct tone *tone = context;
    (void)code;
    fprintf(stderr, "the server is gone: %s\n", reason);
    atomic_store(&tone->server_is_gone, 1);
}

/* Connects the port with each input of the device. */
static int connect_to_device(jack_client_t *client, const char *port) {
    const char **inputs = jack_get_ports(client, NULL, JACK_DEFAULT_AUDIO_TYPE, JackPortIsPhysical | JackPortIsInput);
    int connected = 0;
    for (const char **input = inputs; input && *input; input++)
        connected += jack_connect(client, port, *input) == 0;
    jack_free(inputs);
    return connected;
}

int main(int count, char **arguments) {
    static struct tone tone;
    jack_status_t status;
    if (count != 3) {
        fprintf(stderr, "usage: tone HZ SECONDS\n");
        return 2;
    }
    jack_client_t *client = jack_client_open("tone", JackNullOption, &status);
    if (!client) {
        fprintf(stderr, "there is no server (status 0x%x)\n", (unsigned)status);
        return 1;
    }
    double rate_hz = jack_get_sample_rate(client);
    tone.step = 2 * M_PI * atof(arguments[1]) / rate_hz;
    tone.port = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    jack_set_process_callback(client, process, &tone);
    jack_on_info_shutdown(client, on_shutdown, &tone);
    if (!tone.port || jack_activate(client) != 0) {
        fprintf(stderr, "the server does not take a port\n");
        return 1;
    }
    printf("%s plays to %d inputs at %.0f Hz\n", jack_get_client_name(client),
           connect_to_device(client, jack_port_name(tone.port)), rate_hz);
    fflush(stdout);
    double wanted = atof(arguments[2]) * rate_hz;
    while ((double)atomic_load(&tone.frames) < wanted && !atomic_load(&tone.server_is_gone))
        usleep(10000);
    jack_client_close(client);
    return 0;
}
