/*
 * `midi send` writes the same events in every cycle, by each function there is for it, and prints what the functions
 * answered in the first. `midi receive` prints the events of the first cycle that has any.
 */
#include <jack/jack.h>
#include <jack/midiport.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static jack_port_t *port;
static atomic_int is_known;
/* Written in one cycle, printed once it is known. */
static char text[1000];

static void know(void) { atomic_store(&is_known, 1); }

static int send_events(jack_nframes_t frames, void *unused) {
    static const jack_midi_data_t note[3] = {0x90, 60, 100}, exclusive[4] = {0xf0, 1, 2, 0xf7};
    void *out = jack_port_get_buffer(port, frames);
    (void)unused;
    jack_midi_clear_buffer(out);
    /* The same under its old name. */
    jack_midi_reset_buffer(out);
    size_t empty = jack_midi_max_event_size(out);
    int written = jack_midi_event_write(out, 1, note, sizeof note);
    size_t left = jack_midi_max_event_size(out);
    jack_midi_data_t *reserved = jack_midi_event_reserve(out, 2, sizeof exclusive);
    if (reserved)
        memcpy(reserved, exclusive, sizeof exclusive);
    int too_long = jack_midi_event_write(out, 3, note, empty + 1);
    unsigned lost = jack_midi_get_lost_event_count(out);
    /* As programs do that divide their cycles: a shorter buffer is the same. */
    void *part = jack_port_get_buffer(port, 16);
    int last = jack_midi_event_write(part, frames - 1, note, sizeof note);
    int later = jack_midi_event_write(part, frames, note, sizeof note);
    if (!atomic_load(&is_known)) {
        snprintf(text, sizeof text, "%d, room for less: %d, reserved: %d, too long: %d, lost: %u, last frame: %d, later: %d",
                 written, left < empty, reserved != NULL, too_long, lost, last, later);
        know();
    }
    return 0;
}

static int receive_events(jack_nframes_t frames, void *unused) {
    void *in = jack_port_get_buffer(port, frames);
    uint32_t count = jack_midi_get_event_count(in);
    (void)unused;
    if (count == 0 || atomic_load(&is_known))
        return 0;
    size_t end = 0;
    for (uint32_t i = 0; i < count && end < sizeof text - 20; i++) {
        jack_midi_event_t event;
        if (jack_midi_event_get(&event, in, i) != 0)
            continue;
        end += (size_t)snprintf(text + end, sizeof text - end, "at %u:", event.time);
        for (size_t byte = 0; byte < event.size && end < sizeof text - 20; byte++)
            end += (size_t)snprintf(text + end, sizeof text - end, " %02x", event.buffer[byte]);
        end += (size_t)snprintf(text + end, sizeof text - end, "; ");
    }
    jack_midi_event_t beyond;
    snprintf(text + end, sizeof text - end, "beyond: %d", jack_midi_event_get(&beyond, in, count));
    know();
    return 0;
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    int sends = strcmp(arguments[1], "send") == 0;
    jack_client_t *client = jack_client_open(arguments[1], JackNoStartServer, NULL);
    if (!client)
        return 1;
    port = jack_port_register(client, "events", JACK_DEFAULT_MIDI_TYPE, sends ? JackPortIsOutput : JackPortIsInput, 0);
    jack_set_process_callback(client, sends ? send_events : receive_events, NULL);
    if (!port || jack_activate(client) != 0)
        return 1;
    if (!sends && jack_connect(client, "send:events", "receive:events") != 0)
        return 1;
    while (!atomic_load(&is_known))
        usleep(10000);
    printf("%s\n", text);
    fflush(stdout);
    /* The sender is heard until it is ended. */
    while (sends)
        pause();
    jack_client_close(client);
    return 0;
}
