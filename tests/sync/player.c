/* A machine that other machines follow: plays MIDI at its port `out`, and continues with the next step at each SIGUSR1.
 *
 *   player clock BPM   steps: start, stop, song position 8, continue; with the clock all the time
 *   player mtc HOURS   steps: quarter frames at 25 a second from that hour on, silence, a full frame of 10 s
 *
 * With mtc it compares the transport of each cycle with what it sends in that cycle, and says "locked" once they were
 * no more than a frame of video apart for 100 cycles in a row. */
#include <jack/jack.h>
#include <jack/midiport.h>
#include <jack/transport.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static jack_client_t *client;
static jack_port_t *out;
static atomic_int step, quit, locked;
static int done, near;
static int64_t began = -1;
static double number;

static void on_signal(int signal) {
    if (signal == SIGUSR1)
        atomic_fetch_add(&step, 1);
    else
        atomic_store(&quit, 1);
}

static void say(void *buffer, jack_nframes_t time, const unsigned char *message, size_t bytes) {
    jack_midi_event_write(buffer, time, message, bytes);
}

/* Whether to announce a step: at its start, and again every three seconds, for a client that was late in that cycle. */
static int is_due(int64_t now) {
    static int64_t said;
    int now_at = atomic_load(&step);
    if (done == now_at && now - said < 3 * (int64_t)jack_get_sample_rate(client))
        return 0;
    if (done < now_at)
        done++;
    said = now;
    return done;
}

static void clock_steps(void *buffer, int64_t now) {
    static const unsigned char start[] = {0xFA}, stop[] = {0xFC}, place[] = {0xF2, 8, 0}, on[] = {0xFB};
    switch (is_due(now)) {
    case 1:
        return say(buffer, 0, start, 1);
    case 2:
        return say(buffer, 0, stop, 1);
    case 3:
        return say(buffer, 0, place, 3);
    case 4:
        return say(buffer, 0, on, 1);
    }
}

/* A message every `interval` frames, at its time whether or not a cycle was missed. */
static void each(void *buffer, int64_t now, jack_nframes_t frames, double interval, void (*tell)(void *, jack_nframes_t)) {
    if (began < 0)
        began = now;
    for (;;) {
        int64_t at = began + (int64_t)(number * interval + 0.5);
        if (at >= now + frames)
            return;
        if (at >= now)
            tell(buffer, (jack_nframes_t)(at - now));
        number++;
    }
}

static void tell_clock(void *buffer, jack_nframes_t time) {
    static const unsigned char clock[] = {0xF8};
    say(buffer, time, clock, 1);
}

static int hours;
static void tell_quarter(void *buffer, jack_nframes_t time) {
    unsigned quarter = (unsigned)number, frame = quarter / 8 * 2;
    unsigned ff = frame % 25, ss = frame / 25 % 60, mm = frame / 1500 % 60, hh = hours + frame / 90000;
    unsigned parts[] = {ff & 15, ff >> 4, ss & 15, ss >> 4, mm & 15, mm >> 4, hh & 15, hh >> 4 | 1 << 1};
    unsigned char message[] = {0xF1, (unsigned char)(quarter % 8 << 4 | parts[quarter % 8])};
    say(buffer, time, message, 2);
}

static double interval;
static int is_clock;

static void compare(int64_t now) {
    jack_position_t position;
    int rolls = jack_transport_query(client, &position) == JackTransportRolling;
    double rate = jack_get_sample_rate(client), sent = hours * 3600.0 * rate + (double)(now - began);
    double apart = position.frame - sent;
    near = rolls && apart <= rate / 25 && -apart <= rate / 25 ? near + 1 : 0;
    if (near >= 100)
        atomic_store(&locked, 1);
}

static int process(jack_nframes_t frames, void *unused) {
    (void)unused;
    void *buffer = jack_port_get_buffer(out, frames);
    jack_midi_clear_buffer(buffer);
    int64_t now = jack_last_frame_time(client);
    if (is_clock) {
        clock_steps(buffer, now);
        each(buffer, now, frames, interval, tell_clock);
    } else if (atomic_load(&step) == 1) {
        each(buffer, now, frames, interval, tell_quarter);
        compare(now);
    } else if (is_due(now) == 3) {
        static const unsigned char full[] = {0xF0, 0x7F, 0x7F, 1, 1, 1 << 5, 0, 10, 0, 0xF7};
        say(buffer, 0, full, sizeof full);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    client = jack_client_open("player", JackNoStartServer, NULL);
    if (!client)
        return 1;
    is_clock = strcmp(argv[1], "clock") == 0;
    hours = atoi(argv[2]);
    interval = is_clock ? jack_get_sample_rate(client) * 60.0 / (24 * atof(argv[2])) : jack_get_sample_rate(client) / 100.0;
    out = jack_port_register(client, "out", JACK_DEFAULT_MIDI_TYPE, JackPortIsOutput, 0);
    jack_set_process_callback(client, process, NULL);
    if (!out || jack_activate(client) != 0)
        return 1;
    printf("ready\n");
    fflush(stdout);
    for (int said = 0; !atomic_load(&quit);) {
        if (!said && atomic_load(&locked)) {
            printf("locked\n");
            fflush(stdout);
            said = 1;
        }
        usleep(5000);
    }
    jack_client_close(client);
    return 0;
}
