/* An ordinary C program that copies its input to its output. */
#include <jack/jack.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static jack_port_t *input, *output;

static int process(jack_nframes_t frames, void *unused) {
    (void)unused;
    memcpy(jack_port_get_buffer(output, frames), jack_port_get_buffer(input, frames), frames * sizeof(float));
    return 0;
}

int main(void) {
    jack_client_t *client = jack_client_open("through", JackNoStartServer, NULL);
    if (!client) {
        fprintf(stderr, "there is no server\n");
        return 1;
    }
    input = jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    output = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    jack_set_process_callback(client, process, NULL);
    if (!input || !output || jack_activate(client) != 0)
        return 1;
    for (;;)
        pause();
}
