/* A program of PulseAudio that plays, as a music player does: it writes when it is asked for more, and polls nothing.
 *
 *   player SINK SOUND RATE LATENCY_MS STREAMS
 *
 * SINK: its name, or "-" for the default one. LATENCY_MS: 0 leaves it to the server, which is 2 s everywhere.
 * SOUND: music  chords that swell
 *        ramp   every frame's two samples say its number
 *        level  0.25 all the time
 *
 * Connects to $PULSE_SERVER. Prints "ready STREAMS", the number that the server took, when all play or are refused.
 * Then does what lines of its input say, each about the first stream unless it says otherwise:
 *   latencies N         after each of the next N writings, until that is heard:   latency MICROSECONDS
 *   clock               which frame is heard when, as the server states it:       clock FRAME TIME_NS
 *   nothing, pause, resume, mute, unmute, quiet, loud, seek
 *   another, one        a second stream plays 0.25, or ends                       asked TIME_NS, for these and those above
 *   record SOURCE FILE  writes what SOURCE gives to FILE, two channels of s16le   recording
 *   stats               since the line before: how often streams ran empty,
 *                       and how many were asked for more                          stats UNDERFLOWS STREAMS
 */
#include "timestamps.h"
#include "pulse.h"
#include <math.h>

#define STREAMS_MAX 64
#define CHANNELS 2
#define FRAME_BYTES (CHANNELS * sizeof(int16_t))
#define TABLE_FRAMES 48000
/* Leaves a field of pa_buffer_attr to the server. */
#define UNSET ((uint32_t)-1)
/* Far beyond what is queued. */
#define SEEK_FRAMES 10000000

enum sound { MUSIC, RAMP, LEVEL };
static const char *const SOUNDS[] = {"music", "ramp", "level"};

struct voice {
    pa_stream *stream;
    enum sound sound;
    uint64_t frame; /* the next one to be written */
    int was_asked;  /* for more, since the last "stats" */
};

static pa_threaded_mainloop *loop;
static pa_context *context;
static struct voice voices[STREAMS_MAX + 1];
static int voice_count;
static uint32_t rate_hz;
static const char *sink;
/* The loop's own, under its lock. */
static int underflows, latencies_wanted;
static FILE *recording;
static int16_t music[TABLE_FRAMES][CHANNELS];

/* Every partial has a whole number of periods in the table. */
static void compose(void) {
    const double partials_hz[] = {110, 165, 220, 277, 330, 440, 659, 880};
    for (int n = 0; n < TABLE_FRAMES; n++) {
        double left = 0, right = 0, turn = 2 * M_PI * n / TABLE_FRAMES;
        for (int i = 0; i < 8; i++) {
            double wave = sin(turn * partials_hz[i]) * (0.6 + 0.4 * sin(turn * (i + 1)));
            left += wave / (i + 2);
            right += wave / (9 - i);
        }
        music[n][0] = (int16_t)(left * 6000);
        music[n][1] = (int16_t)(right * 6000);
    }
}

static void make(struct voice *voice, int16_t (*frames)[CHANNELS], size_t count) {
    for (size_t i = 0; i < count; i++, voice->frame++)
        switch (voice->sound) {
        case MUSIC:
            memcpy(frames[i], music[voice->frame % TABLE_FRAMES], FRAME_BYTES);
            break;
        case RAMP: /* The benchmark reads this back: measure/desktop/change.rs. */
            frames[i][0] = (int16_t)(1 + voice->frame % 15013);
            frames[i][1] = (int16_t)(-1 - (int)(voice->frame % 14983));
            break;
        case LEVEL:
            frames[i][0] = frames[i][1] = 8192;
        }
}

static void on_latency(pa_stream *stream, int success, void *argument) {
    (void)argument;
    uint64_t latency_us = 0;
    int is_negative = 0;
    if (success && pa_stream_get_latency(stream, &latency_us, &is_negative) == 0) {
        printf("latency %llu\n", is_negative ? 0ull : (unsigned long long)latency_us);
        fflush(stdout);
    }
}

static void on_request(pa_stream *stream, size_t bytes, void *argument) {
    struct voice *voice = argument;
    voice->was_asked = 1;
    static int16_t frames[8192][CHANNELS];
    size_t left = bytes / FRAME_BYTES;
    while (left > 0) {
        size_t count = left < 8192 ? left : 8192;
        make(voice, frames, count);
        if (pa_stream_write(stream, frames, count * FRAME_BYTES, NULL, 0, 0) != 0)
            return;
        left -= count;
    }
    if (latencies_wanted > 0 && voice == voices) {
        latencies_wanted--;
        pa_stream_update_timing_info(stream, on_latency, NULL);
    }
}

static void on_underflow(pa_stream *stream, void *argument) {
    (void)stream, (void)argument;
    underflows++;
}

static void on_clock(pa_stream *stream, int success, void *argument) {
    (void)argument;
    uint64_t time_ns = now_ns(), heard_us = 0;
    if (success && pa_stream_get_time(stream, &heard_us) == 0) {
        printf("clock %llu %llu\n", (unsigned long long)(heard_us * rate_hz / 1000000), (unsigned long long)time_ns);
        fflush(stdout);
    }
}

/* Called with the lock, or from the loop. */
static void begin(enum sound sound, int latency_ms) {
    struct voice *voice = &voices[voice_count++];
    voice->sound = sound;
    /* Streams that begin together do not play the same frames. */
    voice->frame = sound == MUSIC ? (uint64_t)voice_count * 7919 : 0;
    pa_sample_spec spec = {PA_SAMPLE_S16LE, rate_hz, CHANNELS};
    uint32_t latency_bytes = (uint32_t)(rate_hz * FRAME_BYTES * (size_t)latency_ms / 1000);
    pa_buffer_attr wanted = {UNSET, latency_ms > 0 ? latency_bytes : UNSET, UNSET, UNSET, UNSET};
    voice->stream = pa_stream_new(context, "a song", &spec, NULL);
    if (!voice->stream)
        say_and_fail("no stream");
    pa_stream_set_write_callback(voice->stream, on_request, voice);
    pa_stream_set_underflow_callback(voice->stream, on_underflow, NULL);
    int flags = latency_ms > 0 ? PA_STREAM_ADJUST_LATENCY : 0;
    if (pa_stream_connect_playback(voice->stream, sink, &wanted, flags, NULL, NULL) != 0)
        say_and_fail("a stream was refused");
}

static void on_fragment(pa_stream *stream, size_t bytes, void *argument) {
    (void)bytes, (void)argument;
    const void *data;
    size_t length;
    while (pa_stream_peek(stream, &data, &length) == 0 && length > 0) {
        static const char silence[65536];
        for (size_t left = data ? 0 : length; left > 0;)
            left -= fwrite(silence, 1, left < sizeof silence ? left : sizeof silence, recording);
        if (data)
            fwrite(data, 1, length, recording);
        pa_stream_drop(stream);
    }
    fflush(recording);
}

static void record(const char *source, const char *path) {
    recording = fopen(path, "wb");
    if (!recording)
        say_and_fail("cannot write the recording");
    pa_sample_spec spec = {PA_SAMPLE_S16LE, rate_hz, CHANNELS};
    pa_stream *stream = pa_stream_new(context, "the monitor", &spec, NULL);
    if (!stream)
        say_and_fail("no stream");
    pa_stream_set_read_callback(stream, on_fragment, NULL);
    /* The server's own long fragments: it wakes no earlier for them than for the player. */
    pa_buffer_attr wanted = {UNSET, UNSET, UNSET, UNSET, UNSET};
    if (pa_stream_connect_record(stream, source, &wanted, 0) != 0)
        say_and_fail("the recording was refused");
    puts("recording");
}

static void set_volume(uint32_t volume) {
    pa_cvolume both = {CHANNELS, {volume, volume}};
    pa_context_set_sink_input_volume(context, pa_stream_get_index(voices[0].stream), &both, NULL, NULL);
}

static void set_mute(int mute) {
    pa_context_set_sink_input_mute(context, pa_stream_get_index(voices[0].stream), mute, NULL, NULL);
}

/* As players do it: what is queued is dropped, and as much of the new place is written at once. */
static void seek(void) {
    pa_stream_flush(voices[0].stream, NULL, NULL);
    voices[0].frame += SEEK_FRAMES;
    size_t bytes = pa_stream_writable_size(voices[0].stream);
    if (bytes != (size_t)-1)
        on_request(voices[0].stream, bytes, &voices[0]);
}

/* Returns whether the line was known. */
static int change(const char *line) {
    if (strcmp(line, "pause\n") == 0)
        pa_stream_cork(voices[0].stream, 1, NULL, NULL);
    else if (strcmp(line, "resume\n") == 0)
        pa_stream_cork(voices[0].stream, 0, NULL, NULL);
    else if (strcmp(line, "mute\n") == 0)
        set_mute(1);
    else if (strcmp(line, "unmute\n") == 0)
        set_mute(0);
    else if (strcmp(line, "quiet\n") == 0)
        set_volume(PA_VOLUME_NORM / 2);
    else if (strcmp(line, "loud\n") == 0)
        set_volume(PA_VOLUME_NORM);
    else if (strcmp(line, "seek\n") == 0)
        seek();
    else if (strcmp(line, "another\n") == 0)
        begin(LEVEL, 0);
    else if (strcmp(line, "one\n") == 0)
        pa_stream_disconnect(voices[--voice_count].stream);
    else if (strcmp(line, "nothing\n") != 0)
        return 0;
    return 1;
}

static void print_stats(void) {
    int asked = 0;
    for (int i = 0; i < voice_count; i++) {
        asked += voices[i].was_asked;
        voices[i].was_asked = 0;
    }
    printf("stats %d %d\n", underflows, asked);
    underflows = 0;
}

static void obey(const char *line) {
    char source[256], path[1024];
    uint64_t asked_ns = now_ns();
    if (sscanf(line, "latencies %d", &latencies_wanted) == 1)
        return;
    if (change(line))
        printf("asked %llu\n", (unsigned long long)asked_ns);
    else if (strcmp(line, "clock\n") == 0)
        pa_stream_update_timing_info(voices[0].stream, on_clock, NULL);
    else if (sscanf(line, "record %255s %1023s", source, path) == 2)
        record(source, path);
    else if (strcmp(line, "stats\n") == 0)
        print_stats();
    fflush(stdout);
}

/* Polls while nothing is measured yet. */
static void await_context(void) {
    for (;;) {
        pa_threaded_mainloop_lock(loop);
        int state = pa_context_get_state(context);
        pa_threaded_mainloop_unlock(loop);
        if (state == PA_CONTEXT_READY)
            return;
        if (state >= PA_CONTEXT_FAILED)
            say_and_fail("no server");
        usleep(2000);
    }
}

static int streams_taken(void) {
    for (;;) {
        int taken = 0, refused = 0;
        pa_threaded_mainloop_lock(loop);
        for (int i = 0; i < voice_count; i++) {
            int state = pa_stream_get_state(voices[i].stream);
            taken += state == PA_STREAM_READY;
            refused += state == PA_STREAM_FAILED || state == PA_STREAM_TERMINATED;
        }
        pa_threaded_mainloop_unlock(loop);
        if (taken + refused == voice_count)
            return taken;
        usleep(2000);
    }
}

int main(int argc, char **argv) {
    end_with_parent();
    if (argc != 6)
        say_and_fail("usage: player SINK SOUND RATE LATENCY_MS STREAMS");
    sink = strcmp(argv[1], "-") == 0 ? NULL : argv[1];
    enum sound sound = MUSIC;
    for (size_t i = 0; i < sizeof SOUNDS / sizeof *SOUNDS; i++)
        if (strcmp(argv[2], SOUNDS[i]) == 0)
            sound = (enum sound)i;
    rate_hz = (uint32_t)atoi(argv[3]);
    int latency_ms = atoi(argv[4]), streams = atoi(argv[5]);
    if (streams < 1 || streams > STREAMS_MAX)
        say_and_fail("too many streams");
    compose();

    loop = pa_threaded_mainloop_new();
    context = loop ? pa_context_new(pa_threaded_mainloop_get_api(loop), "bench player") : NULL;
    if (!context || pa_context_connect(context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL) != 0 ||
        pa_threaded_mainloop_start(loop) != 0)
        say_and_fail("no server");
    await_context();
    pa_threaded_mainloop_lock(loop);
    for (int i = 0; i < streams; i++)
        begin(sound, latency_ms);
    pa_threaded_mainloop_unlock(loop);
    printf("ready %d\n", streams_taken());
    fflush(stdout);

    char line[1536];
    while (fgets(line, sizeof line, stdin)) {
        pa_threaded_mainloop_lock(loop);
        obey(line);
        pa_threaded_mainloop_unlock(loop);
    }
    pa_threaded_mainloop_lock(loop);
    pa_context_disconnect(context);
    pa_threaded_mainloop_unlock(loop);
    return 0;
}
