/* Volumes, samples, wrong requests, and the events that programs are sent. */
#include "streams.h"

static void volumes(void) {
    static const uint32_t VALUES[][2] = {{0, 0}, {1, 1}, {32768, 32768}, {12345, 12345}, {65535, 65535},
                                         {65536, 65536}, {98304, 98304}, {196608, 196608}, {65536, 32768},
                                         {20000, 40000}, {PA_VOLUME_MAX, PA_VOLUME_MAX}};
    pa_stream *stream = new_stream("volumes", PA_SAMPLE_S16LE, 2, 48000);
    at("volume");
    if (!play_on(stream, TESTED, NULL, PA_STREAM_START_CORKED))
        return;
    only_volumes = 1;
    for (int i = 0; i < COUNT(VALUES); i++) {
        pa_cvolume asked = {2, {VALUES[i][0], VALUES[i][1]}};
        at("volume.stream.%u,%u", VALUES[i][0], VALUES[i][1]);
        uint32_t index = pa_stream_get_index(stream);
        OUTCOME("set", pa_context_set_sink_input_volume(context, index, &asked, on_success, NULL));
        finish(pa_context_get_sink_input_info(context, pa_stream_get_index(stream), on_sink_input, NULL));
        at("volume.sink.%u,%u", VALUES[i][0], VALUES[i][1]);
        OUTCOME("set", pa_context_set_sink_volume_by_name(context, TESTED, &asked, on_success, NULL));
        finish(pa_context_get_sink_info_by_name(context, TESTED, on_sink, NULL));
        at("volume.source.%u,%u", VALUES[i][0], VALUES[i][1]);
        OUTCOME("set", pa_context_set_source_volume_by_name(context, TESTED ".monitor", &asked, on_success, NULL));
        finish(pa_context_get_source_info_by_name(context, TESTED ".monitor", on_source, NULL));
    }
    pa_cvolume norm, one;
    pa_cvolume_set(&norm, 2, PA_VOLUME_NORM);
    pa_cvolume_set(&one, 1, 30000);
    at("volume.one-for-all");
    OUTCOME("stream", pa_context_set_sink_input_volume(context, pa_stream_get_index(stream), &one, on_success, NULL));
    OUTCOME("sink", pa_context_set_sink_volume_by_name(context, TESTED, &one, on_success, NULL));
    finish(pa_context_get_sink_info_by_name(context, TESTED, on_sink, NULL));
    at("volume.mute");
    OUTCOME("stream", pa_context_set_sink_input_mute(context, pa_stream_get_index(stream), 1, on_success, NULL));
    OUTCOME("sink", pa_context_set_sink_mute_by_name(context, TESTED, 1, on_success, NULL));
    OUTCOME("source", pa_context_set_source_mute_by_name(context, TESTED ".monitor", 1, on_success, NULL));
    finish(pa_context_get_sink_info_by_name(context, TESTED, on_sink, NULL));
    at("volume.mute.stream");
    finish(pa_context_get_sink_input_info(context, pa_stream_get_index(stream), on_sink_input, NULL));
    finish(pa_context_set_sink_volume_by_name(context, TESTED, &norm, on_success, NULL));
    finish(pa_context_set_sink_mute_by_name(context, TESTED, 0, on_success, NULL));
    finish(pa_context_set_source_volume_by_name(context, TESTED ".monitor", &norm, on_success, NULL));
    finish(pa_context_set_source_mute_by_name(context, TESTED ".monitor", 0, on_success, NULL));
    finish(pa_context_set_sink_input_mute(context, pa_stream_get_index(stream), 0, on_success, NULL));
    only_volumes = 0;
    /* PulseAudio remembers what was changed a little later, and nothing of a stream that has ended by then. */
    settle();
    close_stream(stream);
}

static int upload(const char *name, size_t said, size_t bytes) {
    pa_stream *stream = new_stream(name, PA_SAMPLE_S16LE, 2, 48000);
    if (pa_stream_connect_upload(stream, said) != 0 || !await_stream(stream)) {
        field("upload", "%s", error_text());
        pa_stream_unref(stream);
        return 0;
    }
    if (bytes)
        pa_stream_write(stream, silence, bytes, NULL, 0, PA_SEEK_RELATIVE);
    int result = pa_stream_finish_upload(stream);
    while (PA_STREAM_IS_GOOD(pa_stream_get_state(stream)))
        iterate();
    field("finish", "%s", result != 0 || pa_stream_get_state(stream) == PA_STREAM_FAILED ? error_text() : "OK");
    pa_stream_unref(stream);
    return 1;
}

static void samples(void) {
    at("sample.whole");
    upload("bell", 100 * MS, 100 * MS);
    finish(pa_context_get_sample_info_by_name(context, "bell", on_sample, NULL));
    at("sample.shorter");
    upload("half", 100 * MS, 50 * MS);
    finish(pa_context_get_sample_info_by_name(context, "half", on_sample, NULL));
    at("sample.empty");
    upload("empty", 100 * MS, 0);
    OUTCOME("info", pa_context_get_sample_info_by_name(context, "empty", on_sample, NULL));
    at("sample.too-long");
    upload("long", 17 << 20, 0);
    at("sample.replaced");
    upload("bell", 10 * MS, 10 * MS);
    finish(pa_context_get_sample_info_list(context, on_sample, NULL));
    at("sample");
    OUTCOME("play", pa_context_play_sample(context, "bell", TESTED, PA_VOLUME_NORM, on_success, NULL));
    OUTCOME("play-with-index", pa_context_play_sample_with_proplist(context, "bell", TESTED, PA_VOLUME_NORM, NULL,
                                                                    on_index, NULL));
    OUTCOME("play-nowhere", pa_context_play_sample(context, "bell", "nowhere", PA_VOLUME_NORM, on_success, NULL));
    OUTCOME("play-nothing", pa_context_play_sample(context, "nothing", TESTED, PA_VOLUME_NORM, on_success, NULL));
    OUTCOME("remove", pa_context_remove_sample(context, "bell", on_success, NULL));
    OUTCOME("remove-again", pa_context_remove_sample(context, "bell", on_success, NULL));
    OUTCOME("remove-other", pa_context_remove_sample(context, "half", on_success, NULL));
    settle();
    at("stat.after-samples");
    finish(pa_context_stat(context, on_stat, NULL));
}

/* Requests that cannot be done, and how they are refused. */
static void refused(void) {
    pa_cvolume norm, many;
    pa_cvolume_set(&norm, 2, PA_VOLUME_NORM);
    pa_cvolume_set(&many, 5, PA_VOLUME_NORM);
    at("refused");
    OUTCOME("sink-index", pa_context_get_sink_info_by_index(context, 999, on_sink, NULL));
    OUTCOME("sink-name", pa_context_get_sink_info_by_name(context, "nowhere", on_sink, NULL));
    OUTCOME("sink-odd-name", pa_context_get_sink_info_by_name(context, "no where!", on_sink, NULL));
    OUTCOME("source-index", pa_context_get_source_info_by_index(context, 999, on_source, NULL));
    OUTCOME("source-name", pa_context_get_source_info_by_name(context, "nowhere", on_source, NULL));
    OUTCOME("client", pa_context_get_client_info(context, 999, on_client, NULL));
    OUTCOME("module", pa_context_get_module_info(context, 999, on_module, NULL));
    OUTCOME("card", pa_context_get_card_info_by_index(context, 999, on_card, NULL));
    OUTCOME("card-name", pa_context_get_card_info_by_name(context, "none", on_card, NULL));
    OUTCOME("sink-input", pa_context_get_sink_input_info(context, 999, on_sink_input, NULL));
    OUTCOME("source-output", pa_context_get_source_output_info(context, 999, on_source_output, NULL));
    OUTCOME("sample", pa_context_get_sample_info_by_name(context, "none", on_sample, NULL));
    OUTCOME("sample-index", pa_context_get_sample_info_by_index(context, 999, on_sample, NULL));
    OUTCOME("kill-client", pa_context_kill_client(context, 999, on_success, NULL));
    OUTCOME("kill-sink-input", pa_context_kill_sink_input(context, 999, on_success, NULL));
    OUTCOME("kill-source-output", pa_context_kill_source_output(context, 999, on_success, NULL));
    OUTCOME("move-sink-input", pa_context_move_sink_input_by_name(context, 999, TESTED, on_success, NULL));
    OUTCOME("move-source-output", pa_context_move_source_output_by_name(context, 999, TESTED, on_success, NULL));
    OUTCOME("volume-sink", pa_context_set_sink_volume_by_index(context, 999, &norm, on_success, NULL));
    OUTCOME("volume-sink-input", pa_context_set_sink_input_volume(context, 999, &norm, on_success, NULL));
    OUTCOME("volume-source", pa_context_set_source_volume_by_name(context, "nowhere", &norm, on_success, NULL));
    OUTCOME("volume-of-5-channels", pa_context_set_sink_volume_by_name(context, TESTED, &many, on_success, NULL));
    OUTCOME("volume-of-source-of-5-channels",
            pa_context_set_source_volume_by_name(context, TESTED ".monitor", &many, on_success, NULL));
    OUTCOME("mute-sink", pa_context_set_sink_mute_by_index(context, 999, 1, on_success, NULL));
    OUTCOME("mute-sink-input", pa_context_set_sink_input_mute(context, 999, 1, on_success, NULL));
    OUTCOME("suspend-sink", pa_context_suspend_sink_by_index(context, 999, 1, on_success, NULL));
    OUTCOME("suspend-source", pa_context_suspend_source_by_name(context, "nowhere", 1, on_success, NULL));
    OUTCOME("suspend-tested", pa_context_suspend_sink_by_name(context, TESTED, 1, on_success, NULL));
    OUTCOME("resume-tested", pa_context_suspend_sink_by_name(context, TESTED, 0, on_success, NULL));
    OUTCOME("port", pa_context_set_sink_port_by_name(context, TESTED, "port", on_success, NULL));
    OUTCOME("port-nowhere", pa_context_set_sink_port_by_name(context, "nowhere", "port", on_success, NULL));
    OUTCOME("source-port", pa_context_set_source_port_by_name(context, TESTED ".monitor", "port", on_success, NULL));
    OUTCOME("profile", pa_context_set_card_profile_by_index(context, 999, "off", on_success, NULL));
    OUTCOME("port-offset", pa_context_set_port_latency_offset(context, "none", "port", 0, on_success, NULL));
    OUTCOME("default-sink", pa_context_set_default_sink(context, "nowhere", on_success, NULL));
    OUTCOME("default-source", pa_context_set_default_source(context, "nowhere", on_success, NULL));
    OUTCOME("load", pa_context_load_module(context, "module-nothing", "", on_index, NULL));
    OUTCOME("load-argument", pa_context_load_module(context, "module-null-sink", "rate=0", on_index, NULL));
    OUTCOME("load-unknown-argument", pa_context_load_module(context, "module-null-sink", "wrong=1", on_index, NULL));
    OUTCOME("load-same-name", pa_context_load_module(context, "module-null-sink", "sink_name=" TESTED, on_index, NULL));
    uint32_t renamed = succeeded ? answered_index : PA_INVALID_INDEX;
    if (renamed != PA_INVALID_INDEX)
        finish(pa_context_unload_module(context, renamed, on_success, NULL));
    OUTCOME("unload", pa_context_unload_module(context, 999, on_success, NULL));
    OUTCOME("stream-restore", pa_ext_stream_restore_test(context, on_version, NULL));
    OUTCOME("device-restore", pa_ext_device_restore_test(context, on_version, NULL));
    OUTCOME("device-manager", pa_ext_device_manager_test(context, on_version, NULL));
    OUTCOME("message", pa_context_send_message_to_object(context, "/nothing", "say", NULL, on_response, NULL));
    at("refused.stream");
    pa_stream *stream = new_stream("refused", PA_SAMPLE_S16LE, 2, 48000);
    play_on(stream, "nowhere", NULL, 0);
    close_stream(stream);
    at("refused.record");
    stream = new_stream("refused", PA_SAMPLE_S16LE, 2, 48000);
    record_from(stream, "nowhere", NULL, 0);
    close_stream(stream);
    at("refused.record-sink-name");
    stream = new_stream("refused", PA_SAMPLE_S16LE, 2, 48000);
    record_from(stream, TESTED, NULL, 0);
    close_stream(stream);
    at("refused.volume-of-stream");
    stream = new_stream("refused", PA_SAMPLE_S16LE, 2, 48000);
    if (play_on(stream, TESTED, NULL, PA_STREAM_START_CORKED)) {
        uint32_t index = pa_stream_get_index(stream);
        OUTCOME("5-channels", pa_context_set_sink_input_volume(context, index, &many, on_success, NULL));
        OUTCOME("move-nowhere", pa_context_move_sink_input_by_name(context, index, "nowhere", on_success, NULL));
        OUTCOME("move-index", pa_context_move_sink_input_by_index(context, index, 999, on_success, NULL));
    }
    close_stream(stream);
}

/* The events of one step, in order. */
static char events[2048];

static void on_subscribed(pa_context *c, pa_subscription_event_type_t type, uint32_t index, void *argument) {
    (void)c, (void)index, (void)argument;
    static const char *const FACILITIES[] = {"sink", "source", "sink-input", "source-output", "module",
                                             "client", "sample-cache", "server", "autoload", "card"};
    static const char *const KINDS[] = {"new", "change", "remove"};
    unsigned facility = type & PA_SUBSCRIPTION_EVENT_FACILITY_MASK;
    unsigned kind = (type & PA_SUBSCRIPTION_EVENT_TYPE_MASK) >> 4;
    if (strlen(events) + 40 < sizeof events)
        sprintf(events + strlen(events), "%s%s:%s", events[0] ? " " : "", facility < 10 ? FACILITIES[facility] : "?",
                kind < 3 ? KINDS[kind] : "?");
}

static void step(const char *name) {
    settle();
    text(name, events[0] ? events : "(none)");
    events[0] = 0;
}

static int inputs_left;

static void on_input_left(pa_context *c, const pa_sink_input_info *info, int end, void *argument) {
    (void)c, (void)info, (void)argument;
    inputs_left += end == 0;
}

/* Waits for the ends of samples that were played and of streams that were closed: of these, too, there are events. */
static void await_ends(void) {
    for (int i = 0; i < 200; i++) {
        inputs_left = 0;
        finish(pa_context_get_sink_input_info_list(context, on_input_left, NULL));
        if (inputs_left == 0)
            break;
        wait_ms(50);
    }
    settle();
}

/* Returns the module that is loaded in the place of this one. */
static uint32_t events_of_steps(uint32_t module) {
    await_ends();
    at("events");
    pa_context_set_subscribe_callback(context, on_subscribed, NULL);
    OUTCOME("subscribe", pa_context_subscribe(context, PA_SUBSCRIPTION_MASK_ALL, on_success, NULL));
    step("nothing");
    pa_stream *stream = new_stream("events", PA_SAMPLE_S16LE, 2, 48000);
    play_on(stream, TESTED, NULL, PA_STREAM_START_CORKED);
    uint32_t index = pa_stream_get_index(stream);
    step("new-corked");
    pa_cvolume half;
    pa_cvolume_set(&half, 2, PA_VOLUME_NORM / 2);
    finish(pa_context_set_sink_input_volume(context, index, &half, on_success, NULL));
    step("volume");
    finish(pa_context_set_sink_input_volume(context, index, &half, on_success, NULL));
    step("same-volume");
    finish(pa_context_set_sink_input_mute(context, index, 1, on_success, NULL));
    step("mute");
    finish(pa_context_set_sink_input_mute(context, index, 1, on_success, NULL));
    step("same-mute");
    finish(pa_context_set_sink_volume_by_name(context, TESTED, &half, on_success, NULL));
    step("sink-volume");
    finish(pa_context_set_sink_volume_by_name(context, TESTED, &half, on_success, NULL));
    step("same-sink-volume");
    finish(pa_context_set_sink_mute_by_name(context, TESTED, 1, on_success, NULL));
    step("sink-mute");
    finish(pa_context_set_source_volume_by_name(context, TESTED ".monitor", &half, on_success, NULL));
    step("source-volume");
    finish(pa_stream_set_name(stream, "other", on_stream_success, NULL));
    step("name");
    finish(pa_stream_set_name(stream, "other", on_stream_success, NULL));
    step("same-name");
    write_ms(stream, 1900, 0, PA_SEEK_RELATIVE);
    finish(pa_stream_cork(stream, 0, on_stream_success, NULL));
    step("uncork");
    finish(pa_stream_cork(stream, 1, on_stream_success, NULL));
    step("cork");
    finish(pa_stream_cork(stream, 1, on_stream_success, NULL));
    step("same-cork");
    finish(pa_context_move_sink_input_by_name(context, index, "consort", on_success, NULL));
    step("move");
    finish(pa_context_move_sink_input_by_name(context, index, "consort", on_success, NULL));
    step("same-move");
    finish(pa_context_kill_sink_input(context, index, on_success, NULL));
    step("kill");
    close_stream(stream);
    stream = new_stream("events", PA_SAMPLE_S16LE, 2, 48000);
    record_from(stream, TESTED ".monitor", NULL, 0);
    step("record");
    close_stream(stream);
    step("record-end");
    finish(pa_context_set_default_sink(context, TESTED, on_success, NULL));
    step("default-sink");
    finish(pa_context_set_default_sink(context, "consort", on_success, NULL));
    step("default-sink-back");
    finish(pa_context_set_name(context, "renamed", on_success, NULL));
    step("client-name");
    upload("event", 10 * MS, 10 * MS);
    step("sample");
    finish(pa_context_remove_sample(context, "event", on_success, NULL));
    step("sample-end");
    finish(pa_context_unload_module(context, module, on_success, NULL));
    step("unload");
    module = load_tested();
    at("events");
    step("load");
    return module;
}
