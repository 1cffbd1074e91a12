/* Streams: what they are granted, where they are, and what notices come in which order. */
#include "objects.h"

/* What has happened to the stream of the moment, in order. */
static char notices[512];

static void note(const char *what) {
    if (strlen(notices) + strlen(what) + 2 < sizeof notices) {
        strcat(notices, notices[0] ? " " : "");
        strcat(notices, what);
    }
}

static void on_started(pa_stream *s, void *argument) { (void)s, (void)argument, note("started"); }
static void on_underflow(pa_stream *s, void *argument) { (void)s, (void)argument, note("underflow"); }
static void on_overflow(pa_stream *s, void *argument) { (void)s, (void)argument, note("overflow"); }
static void on_moved(pa_stream *s, void *argument) { (void)s, (void)argument, note("moved"); }
static void on_suspended(pa_stream *s, void *argument) { (void)s, (void)argument, note("suspended"); }
static void on_buffer(pa_stream *s, void *argument) { (void)s, (void)argument, note("buffer"); }
static void on_state(pa_stream *s, void *argument) {
    (void)argument;
    if (pa_stream_get_state(s) == PA_STREAM_FAILED)
        note("failed");
    if (pa_stream_get_state(s) == PA_STREAM_TERMINATED)
        note("terminated");
}
static void on_event(pa_stream *s, const char *name, pa_proplist *list, void *argument) {
    (void)s, (void)list, (void)argument;
    note(name);
}

/* Waits until this has happened, for some seconds at most: a sink may render that far ahead. */
static void await_notices(const char *last) {
    for (int i = 0; i < 100 && !strstr(notices, last); i++)
        wait_ms(50);
}

static void print_notices(const char *name) {
    text(name, notices[0] ? notices : "(none)");
    notices[0] = 0;
}

static pa_stream *new_stream(const char *name, pa_sample_format_t format, int channels, int rate) {
    pa_sample_spec spec = {format, (uint32_t)rate, (uint8_t)channels};
    pa_stream *stream = pa_stream_new(context, name, &spec, NULL);
    if (!stream)
        return NULL;
    notices[0] = 0;
    pa_stream_set_started_callback(stream, on_started, NULL);
    pa_stream_set_underflow_callback(stream, on_underflow, NULL);
    pa_stream_set_overflow_callback(stream, on_overflow, NULL);
    pa_stream_set_moved_callback(stream, on_moved, NULL);
    pa_stream_set_suspended_callback(stream, on_suspended, NULL);
    pa_stream_set_buffer_attr_callback(stream, on_buffer, NULL);
    pa_stream_set_state_callback(stream, on_state, NULL);
    pa_stream_set_event_callback(stream, on_event, NULL);
    return stream;
}

/* Waits until it is ready; prints the error if it will never be. */
static int await_stream(pa_stream *stream) {
    pa_time_event *event = after_ms(20000, on_timeout, NULL);
    while (pa_stream_get_state(stream) == PA_STREAM_CREATING)
        iterate();
    pa_mainloop_get_api(loop)->time_free(event);
    if (pa_stream_get_state(stream) == PA_STREAM_READY)
        return 1;
    field("connect", "%s", error_text());
    return 0;
}

static int play_on(pa_stream *stream, const char *sink, const pa_buffer_attr *attributes, int flags) {
    if (pa_stream_connect_playback(stream, sink, attributes, flags, NULL, NULL) != 0) {
        field("connect", "libpulse: %s", error_text());
        return 0;
    }
    return await_stream(stream);
}

static int record_from(pa_stream *stream, const char *source, const pa_buffer_attr *attributes, int flags) {
    if (pa_stream_connect_record(stream, source, attributes, flags) != 0) {
        field("connect", "libpulse: %s", error_text());
        return 0;
    }
    return await_stream(stream);
}

static void close_stream(pa_stream *stream) {
    if (pa_stream_get_state(stream) == PA_STREAM_READY)
        pa_stream_disconnect(stream);
    while (PA_STREAM_IS_GOOD(pa_stream_get_state(stream)))
        iterate();
    pa_stream_unref(stream);
}

static void granted(pa_stream *stream, int is_playback) {
    const pa_buffer_attr *attributes = pa_stream_get_buffer_attr(stream);
    number("maxlength", attributes->maxlength);
    if (is_playback) {
        number("tlength", attributes->tlength);
        number("prebuf", attributes->prebuf);
        number("minreq", attributes->minreq);
    } else
        number("fragsize", attributes->fragsize);
    pa_stream_get_state(stream);
}

static void described(pa_stream *stream) {
    spec_and_map(pa_stream_get_sample_spec(stream), pa_stream_get_channel_map(stream));
    format_info("format", pa_stream_get_format_info(stream));
    text("device", pa_stream_get_device_name(stream));
    yes("suspended", pa_stream_is_suspended(stream) == 1);
    yes("corked", pa_stream_is_corked(stream) == 1);
    yes("monitor-stream", pa_stream_get_monitor_stream(stream) != PA_INVALID_INDEX);
}

static const pa_timing_info *timing(pa_stream *stream) {
    finish(pa_stream_update_timing_info(stream, on_stream_success, NULL));
    return pa_stream_get_timing_info(stream);
}

/* Milliseconds of bytes, asked for in the format of the stream. */
static uint32_t bytes_of(const pa_sample_spec *spec, int ms) {
    return ms < 0 ? (uint32_t)-1 : (uint32_t)pa_usec_to_bytes((pa_usec_t)ms * 1000, spec);
}

static const struct {
    const char *name;
    pa_sample_format_t format;
    int channels, rate;
} FORMATS[] = {
    {"cd", PA_SAMPLE_S16LE, 2, 44100},        {"phone", PA_SAMPLE_ULAW, 1, 8000},
    {"native", PA_SAMPLE_FLOAT32LE, 2, 48000}, {"surround", PA_SAMPLE_S24LE, 6, 96000},
    {"packed", PA_SAMPLE_S24_32BE, 1, 22050},
};

static const struct {
    const char *name;
    int flags;
} MODES[] = {{"plain", 0}, {"adjust", PA_STREAM_ADJUST_LATENCY}, {"early", PA_STREAM_EARLY_REQUESTS}};

/* What programs ask for, ms; -1 leaves it to the server. */
static const struct {
    const char *name;
    int max, target, prebuffer, least;
} WISHES[] = {
    {"default", -1, -1, -1, -1}, {"20ms", -1, 20, -1, -1},      {"100ms", -1, 100, -1, -1},
    {"500ms", -1, 500, -1, -1},  {"5s", -1, 5000, -1, -1},      {"1ms", -1, 1, -1, -1},
    {"now", -1, 200, 0, -1},     {"large-steps", -1, 200, -1, 50}, {"small", 80, 200, -1, -1},
    {"wrong", 100, 50, 300, 90}, {"all-zero", 0, 0, 0, 0},
};

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

static void playback_granted(void) {
    for (int f = 0; f < COUNT(FORMATS); f++)
        for (int m = 0; m < COUNT(MODES); m++)
            for (int w = 0; w < COUNT(WISHES); w++) {
                at("playback.%s.%s.%s", FORMATS[f].name, MODES[m].name, WISHES[w].name);
                pa_stream *stream = new_stream("granted", FORMATS[f].format, FORMATS[f].channels, FORMATS[f].rate);
                const pa_sample_spec *spec = pa_stream_get_sample_spec(stream);
                pa_buffer_attr asked = {bytes_of(spec, WISHES[w].max), bytes_of(spec, WISHES[w].target),
                                        bytes_of(spec, WISHES[w].prebuffer), bytes_of(spec, WISHES[w].least),
                                        (uint32_t)-1};
                if (play_on(stream, TESTED, &asked, MODES[m].flags | PA_STREAM_START_CORKED)) {
                    granted(stream, 1);
                    number("requested", (long long)pa_stream_writable_size(stream));
                    number("sink-latency", (long long)timing(stream)->configured_sink_usec);
                    if (w == 0 && m == 0)
                        described(stream);
                }
                close_stream(stream);
            }
}

static void record_granted(void) {
    for (int f = 0; f < COUNT(FORMATS); f++)
        for (int m = 0; m < COUNT(MODES); m++)
            for (int w = 0; w < COUNT(WISHES); w++) {
                at("record.%s.%s.%s", FORMATS[f].name, MODES[m].name, WISHES[w].name);
                pa_stream *stream = new_stream("granted", FORMATS[f].format, FORMATS[f].channels, FORMATS[f].rate);
                const pa_sample_spec *spec = pa_stream_get_sample_spec(stream);
                pa_buffer_attr asked = {bytes_of(spec, WISHES[w].max), (uint32_t)-1, (uint32_t)-1, (uint32_t)-1,
                                        bytes_of(spec, WISHES[w].target)};
                if (record_from(stream, TESTED ".monitor", &asked, MODES[m].flags | PA_STREAM_START_CORKED)) {
                    granted(stream, 0);
                    number("source-latency", (long long)timing(stream)->configured_source_usec);
                    if (w == 0 && m == 0)
                        described(stream);
                }
                close_stream(stream);
            }
}

/* 16-bit stereo at 48 kHz: 192 bytes are a millisecond. */
#define MS 192
static const char silence[2000 * MS];

static void write_ms(pa_stream *stream, int ms, int64_t offset, pa_seek_mode_t seek) {
    if (pa_stream_write(stream, silence, (size_t)ms * MS, NULL, offset, seek) != 0)
        field("write", "libpulse: %s", error_text());
}

/* PulseAudio may send the request that follows a writing after the answer to what was asked next. It is taken to have
 * come when three answers in a row have changed nothing. */
static void await_requests(pa_stream *stream) {
    size_t before = pa_stream_writable_size(stream);
    for (int tries = 0, same = 0; same < 3 && tries < 100; tries++) {
        wait_ms(10);
        timing(stream);
        size_t now = pa_stream_writable_size(stream);
        same = now == before ? same + 1 : 0;
        before = now;
    }
}

static void where(const char *name, pa_stream *stream, int with_read_index) {
    char before[sizeof path];
    strcpy(before, path);
    at("%s.%s", before, name);
    await_requests(stream);
    const pa_timing_info *info = timing(stream);
    number("write-index", info->write_index);
    yes("write-index-corrupt", info->write_index_corrupt);
    yes("read-index-corrupt", info->read_index_corrupt);
    yes("playing", info->playing);
    yes("read-behind-write", info->read_index <= info->write_index);
    if (with_read_index)
        number("read-index", info->read_index);
    number("writable", (long long)pa_stream_writable_size(stream));
    strcpy(path, before);
}

/* The life of a stream: what is written, where it is, what is heard. */
static void playback_life(void) {
    at("life");
    pa_stream *stream = new_stream("life", PA_SAMPLE_S16LE, 2, 48000);
    pa_buffer_attr asked = {(uint32_t)-1, 400 * MS, 100 * MS, 20 * MS, (uint32_t)-1};
    if (!play_on(stream, TESTED, &asked, PA_STREAM_START_CORKED))
        return;
    where("corked", stream, 1);
    write_ms(stream, 200, 0, PA_SEEK_RELATIVE);
    where("written", stream, 1);
    write_ms(stream, 10, -20 * MS, PA_SEEK_RELATIVE);
    where("written-over", stream, 1);
    write_ms(stream, 10, 300 * MS, PA_SEEK_ABSOLUTE);
    where("absolute", stream, 1);
    write_ms(stream, 10, 10 * MS, PA_SEEK_RELATIVE_ON_READ);
    where("relative-on-read", stream, 1);
    write_ms(stream, 10, 30 * MS, PA_SEEK_RELATIVE_END);
    where("relative-end", stream, 1);
    OUTCOME("flush", pa_stream_flush(stream, on_stream_success, NULL));
    where("flushed", stream, 0);
    print_notices("notices-corked");
    write_ms(stream, 50, 0, PA_SEEK_RELATIVE);
    OUTCOME("uncork", pa_stream_cork(stream, 0, on_stream_success, NULL));
    wait_ms(100);
    where("below-prebuffer", stream, 0);
    print_notices("notices-below-prebuffer");
    OUTCOME("trigger", pa_stream_trigger(stream, on_stream_success, NULL));
    await_notices("underflow");
    print_notices("notices-triggered");
    yes("playing-after-it-ran-out", timing(stream)->playing);
    write_ms(stream, 300, 0, PA_SEEK_RELATIVE);
    await_notices("started");
    print_notices("notices-again");
    OUTCOME("cork", pa_stream_cork(stream, 1, on_stream_success, NULL));
    yes("playing-corked", timing(stream)->playing);
    yes("is-corked", pa_stream_is_corked(stream) == 1);
    OUTCOME("uncork-again", pa_stream_cork(stream, 0, on_stream_success, NULL));
    OUTCOME("prebuf", pa_stream_prebuf(stream, on_stream_success, NULL));
    OUTCOME("drain", pa_stream_drain(stream, on_stream_success, NULL));
    settle();
    print_notices("notices-drained");
    const pa_timing_info *info = timing(stream);
    yes("all-read-when-drained", info->read_index >= info->write_index);
    OUTCOME("drain-empty", pa_stream_drain(stream, on_stream_success, NULL));
    OUTCOME("cork-before-drain", pa_stream_cork(stream, 1, on_stream_success, NULL));
    OUTCOME("rename", pa_stream_set_name(stream, "renamed", on_stream_success, NULL));
    pa_proplist *list = pa_proplist_new();
    pa_proplist_sets(list, "test.key", "value");
    OUTCOME("set-property", pa_stream_proplist_update(stream, PA_UPDATE_REPLACE, list, on_stream_success, NULL));
    pa_proplist_free(list);
    at("life.info");
    finish(pa_context_get_sink_input_info(context, pa_stream_get_index(stream), on_sink_input, NULL));
    at("life");
    const char *const gone[] = {"test.key", NULL};
    OUTCOME("remove-property", pa_stream_proplist_remove(stream, gone, on_stream_success, NULL));
    const char *const never[] = {"test.never", NULL};
    OUTCOME("remove-no-property", pa_stream_proplist_remove(stream, never, on_stream_success, NULL));
    OUTCOME("rate-of-fixed", pa_stream_update_sample_rate(stream, 44100, on_stream_success, NULL));
    pa_buffer_attr other = {(uint32_t)-1, 100 * MS, (uint32_t)-1, (uint32_t)-1, (uint32_t)-1};
    OUTCOME("set-buffer", pa_stream_set_buffer_attr(stream, &other, on_stream_success, NULL));
    at("life.other-buffer");
    granted(stream, 1);
    at("life");
    OUTCOME("move", pa_context_move_sink_input_by_name(context, pa_stream_get_index(stream), "consort", on_success,
                                                       NULL));
    settle();
    print_notices("notices-moved");
    text("device-moved", pa_stream_get_device_name(stream));
    OUTCOME("kill", pa_context_kill_sink_input(context, pa_stream_get_index(stream), on_success, NULL));
    settle();
    print_notices("notices-killed");
    close_stream(stream);

    at("variable-rate");
    stream = new_stream("variable", PA_SAMPLE_S16LE, 2, 48000);
    if (play_on(stream, TESTED, NULL, PA_STREAM_START_CORKED | PA_STREAM_VARIABLE_RATE)) {
        OUTCOME("rate", pa_stream_update_sample_rate(stream, 44100, on_stream_success, NULL));
        at("variable-rate.info");
        finish(pa_context_get_sink_input_info(context, pa_stream_get_index(stream), on_sink_input, NULL));
    }
    close_stream(stream);
}

enum { REQUESTS = 11 };
/* What a stream that plays was asked for, sorted. */
static size_t requests[REQUESTS];
static int request_count;

static void on_request(pa_stream *stream, size_t bytes, void *argument) {
    (void)argument;
    write_ms(stream, (int)(bytes / MS), 0, PA_SEEK_RELATIVE);
    if (request_count == REQUESTS || !strstr(notices, "started"))
        return;
    int at = request_count++;
    for (; at > 0 && requests[at - 1] > bytes; at--)
        requests[at] = requests[at - 1];
    requests[at] = bytes;
}

/* With early requests, each is made as soon as it is missing: the median of them, so that one that a busy machine has
 * delayed does not count. */
static void early_requests(void) {
    at("early-requests");
    pa_stream *stream = new_stream("early", PA_SAMPLE_S16LE, 2, 48000);
    pa_buffer_attr asked = {(uint32_t)-1, 300 * MS, 225 * MS, 75 * MS, (uint32_t)-1};
    pa_stream_set_write_callback(stream, on_request, NULL);
    if (play_on(stream, TESTED, &asked, PA_STREAM_EARLY_REQUESTS)) {
        for (int i = 0; i < 100 && request_count < REQUESTS; i++)
            wait_ms(50);
        number("requests", request_count);
        size_t minimum = pa_stream_get_buffer_attr(stream)->minreq;
        number("median-in-minimal-requests", (long long)((requests[REQUESTS / 2] + minimum / 2) / minimum));
    }
    close_stream(stream);
}

/* Flags that let the server choose, start muted or not move. */
static void playback_flags(void) {
    static const struct {
        const char *name;
        int flags;
    } FLAGS[] = {
        {"fix-format", PA_STREAM_FIX_FORMAT},     {"fix-rate", PA_STREAM_FIX_RATE},
        {"fix-channels", PA_STREAM_FIX_CHANNELS}, {"start-muted", PA_STREAM_START_MUTED},
        {"start-unmuted", PA_STREAM_START_UNMUTED}, {"no-remap", PA_STREAM_NO_REMAP_CHANNELS},
        {"no-remix", PA_STREAM_NO_REMIX_CHANNELS}, {"dont-move", PA_STREAM_DONT_MOVE},
        {"relative-volume", PA_STREAM_RELATIVE_VOLUME},
        {"fail-on-suspend", PA_STREAM_FAIL_ON_SUSPEND}, {"dont-inhibit", PA_STREAM_DONT_INHIBIT_AUTO_SUSPEND},
    };
    for (int i = 0; i < COUNT(FLAGS); i++) {
        at("flags.%s", FLAGS[i].name);
        pa_stream *stream = new_stream("flags", PA_SAMPLE_S16LE, 1, 22050);
        pa_cvolume half;
        pa_cvolume_set(&half, 1, PA_VOLUME_NORM / 2);
        if (pa_stream_connect_playback(stream, TESTED, NULL, FLAGS[i].flags | PA_STREAM_START_CORKED,
                                       &half, NULL) != 0)
            field("connect", "libpulse: %s", error_text());
        else if (await_stream(stream)) {
            described(stream);
            finish(pa_context_get_sink_input_info(context, pa_stream_get_index(stream), on_sink_input, NULL));
            OUTCOME("move", pa_context_move_sink_input_by_name(context, pa_stream_get_index(stream), "consort",
                                                               on_success, NULL));
            settle();
            print_notices("notices");
        }
        close_stream(stream);
    }
    static const char *const OFFERS[] = {
        "pcm", "pcm, format.sample_format = \"\\\"s16be\\\"\" format.rate = \"44100\" format.channels = \"2\"",
        "pcm, format.rate = \"[ 32000, 44100 ]\"", "pcm, format.rate = \"{ \\\"min\\\": 8000, \\\"max\\\": 96000 }\"",
        "ac3-iec61937, format.rate = \"48000\" format.channels = \"2\""};
    for (int i = 0; i < COUNT(OFFERS); i++) {
        at("offer.%d", i);
        pa_format_info *offers[] = {pa_format_info_from_string(OFFERS[i])};
        pa_stream *stream = pa_stream_new_extended(context, "offer", offers, 1, NULL);
        if (!stream)
            field("connect", "libpulse: %s", error_text());
        else {
            if (play_on(stream, TESTED, NULL, PA_STREAM_START_CORKED))
                described(stream);
            close_stream(stream);
        }
        pa_format_info_free(offers[0]);
    }
}

static size_t recorded_bytes;
static int wrong_fragments;
static void on_data(pa_stream *stream, size_t bytes, void *argument) {
    (void)bytes, (void)argument;
    const void *data;
    size_t size;
    while (pa_stream_readable_size(stream) > 0) {
        if (pa_stream_peek(stream, &data, &size) != 0 || size == 0)
            return;
        recorded_bytes += size;
        wrong_fragments += size % 4 != 0 || size > pa_stream_get_buffer_attr(stream)->fragsize;
        pa_stream_drop(stream);
    }
}

static void record_life(void) {
    at("recording");
    pa_stream *stream = new_stream("recording", PA_SAMPLE_S16LE, 2, 48000);
    pa_buffer_attr asked = {(uint32_t)-1, (uint32_t)-1, (uint32_t)-1, (uint32_t)-1, 20 * MS};
    pa_stream_set_read_callback(stream, on_data, NULL);
    if (!record_from(stream, TESTED ".monitor", &asked, PA_STREAM_ADJUST_LATENCY | PA_STREAM_START_CORKED))
        return;
    wait_ms(100);
    number("bytes-corked", (long long)recorded_bytes);
    OUTCOME("uncork", pa_stream_cork(stream, 0, on_stream_success, NULL));
    for (int i = 0; i < 100 && recorded_bytes == 0; i++)
        wait_ms(50);
    yes("bytes", recorded_bytes > 0);
    yes("whole-fragments", wrong_fragments == 0);
    const pa_timing_info *info = timing(stream);
    yes("playing", info->playing);
    yes("write-index", info->write_index > 0);
    at("recording.info");
    finish(pa_context_get_source_output_info(context, pa_stream_get_index(stream), on_source_output, NULL));
    at("recording");
    pa_cvolume half;
    pa_cvolume_set(&half, 2, 12345);
    uint32_t index = pa_stream_get_index(stream);
    OUTCOME("volume", pa_context_set_source_output_volume(context, index, &half, on_success, NULL));
    OUTCOME("mute", pa_context_set_source_output_mute(context, index, 1, on_success, NULL));
    at("recording.changed");
    finish(pa_context_get_source_output_info(context, pa_stream_get_index(stream), on_source_output, NULL));
    at("recording");
    OUTCOME("rename", pa_stream_set_name(stream, "renamed", on_stream_success, NULL));
    OUTCOME("flush", pa_stream_flush(stream, on_stream_success, NULL));
    OUTCOME("cork", pa_stream_cork(stream, 1, on_stream_success, NULL));
    OUTCOME("drain", pa_stream_drain(stream, on_stream_success, NULL));
    OUTCOME("move", pa_context_move_source_output_by_name(context, pa_stream_get_index(stream), "consort.monitor",
                                                          on_success, NULL));
    settle();
    print_notices("notices-moved");
    OUTCOME("kill", pa_context_kill_source_output(context, pa_stream_get_index(stream), on_success, NULL));
    settle();
    print_notices("notices-killed");
    close_stream(stream);
}
