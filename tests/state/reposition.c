/* Moves the transport to a place that has a bar, a beat and a tempo, and leaves once it stands there. */
#include <jack/jack.h>
#include <unistd.h>

int main(void) {
    jack_client_t *client = jack_client_open("mover", JackNoStartServer, NULL);
    if (!client)
        return 1;
    jack_position_t position = {
        .frame = 72000,
        .valid = JackPositionBBT,
        .bar = 2,
        .beat = 1,
        .tick = 96,
        .bar_start_tick = 7680.0,
        .beats_per_bar = 4.0f,
        .beat_type = 4.0f,
        .ticks_per_beat = 1920.0,
        .beats_per_minute = 160.5,
    };
    if (jack_transport_reposition(client, &position) != 0)
        return 2;
    jack_position_t now;
    for (int tries = 0; tries < 3000; tries++) {
        jack_transport_query(client, &now);
        if (now.frame == 72000)
            return jack_client_close(client);
        usleep(10000);
    }
    return 3;
}
