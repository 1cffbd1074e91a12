/*
 * `tie NAME`: a client that ties `in` to `out` and `events in` to `events out` and, once standard input has a line,
 * unties them. Its process callback writes nothing. Prints what the functions answer to what cannot be tied.
 */
#include <jack/jack.h>
#include <stdio.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int process(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    return 0;
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    jack_client_t *client = jack_client_open(arguments[1], JackNoStartServer, NULL);
    if (!client)
        return 1;
    jack_port_t *in = jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    jack_port_t *out = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    jack_port_t *events_in = jack_port_register(client, "events in", JACK_DEFAULT_MIDI_TYPE, JackPortIsInput, 0);
    jack_port_t *events_out = jack_port_register(client, "events out", JACK_DEFAULT_MIDI_TYPE, JackPortIsOutput, 0);
    jack_port_t *others = jack_port_by_name(client, "system:playback_1");
    printf("%d %d %d %d %d %d %d\n", jack_port_tie(in, events_out), jack_port_tie(out, in), jack_port_tie(in, in),
           jack_port_tie(in, others), jack_port_tie(NULL, out), jack_port_untie(others), jack_port_untie(NULL));
    jack_set_process_callback(client, process, NULL);
    int tied = jack_port_tie(in, out) | jack_port_tie(events_in, events_out);
    if (tied != 0 || jack_activate(client) != 0)
        return 1;
    printf("tied\n");
    fflush(stdout);
    /* Until this file is there. */
    while (access(arguments[2], F_OK) != 0)
        usleep(10000);
    printf("untied %d %d\n", jack_port_untie(out), jack_port_untie(events_in));
    fflush(stdout);
    for (;;)
        pause();
}
