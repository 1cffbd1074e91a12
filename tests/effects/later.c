/*
 * What no server of this release can do yet: each function answers its documented error to a client that is open,
 * active and in order, and never a made-up success. Prints what is wrong and ends with 1, or ends with 0.
 *
 * When one of them gets its effect, its lines here go and its line in functions.txt names another test.
 */
#include <errno.h>
#include <jack/intclient.h>
#include <jack/jack.h>
#include <jack/metadata.h>
#include <jack/midiport.h>
#include <jack/session.h>
#include <jack/transport.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static jack_client_t *client;
static jack_port_t *audio_in, *audio_out, *midi_in, *midi_out;
static atomic_int failures, calls, in_cycle_is_done;

static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    atomic_fetch_add(&failures, 1);
}
#define CHECK(condition) check(condition, __LINE__, #condition)

static void midi(jack_nframes_t frames) {
    jack_midi_event_t event;
    jack_midi_data_t note_on[3] = {0x90, 60, 100};
    void *in = jack_port_get_buffer(midi_in, frames), *out = jack_port_get_buffer(midi_out, frames);
    jack_midi_clear_buffer(out);
    jack_midi_reset_buffer(out);
    CHECK(jack_midi_event_write(out, 0, note_on, sizeof note_on) == -ENOBUFS);
    CHECK(jack_midi_event_reserve(out, 0, 3) == NULL);
    CHECK(jack_midi_max_event_size(out) == 0);
    CHECK(jack_midi_get_lost_event_count(out) == 0);
    CHECK(jack_midi_get_event_count(in) == 0);
    CHECK(jack_midi_event_get(&event, in, 0) == -ENOBUFS);
}

static int process(jack_nframes_t frames, void *unused) {
    (void)unused;
    if (!atomic_load(&in_cycle_is_done))
        midi(frames);
    atomic_store(&in_cycle_is_done, 1);
    return 0;
}

static int on_sync(jack_transport_state_t state, jack_position_t *position, void *unused) {
    (void)state, (void)position, (void)unused;
    atomic_fetch_add(&calls, 1);
    return 1;
}
static void on_timebase(jack_transport_state_t state, jack_nframes_t frames, jack_position_t *position, int is_new,
                        void *unused) {
    (void)frames, (void)is_new;
    on_sync(state, position, unused);
}
static void on_freewheel(int starts, void *unused) {
    (void)starts, (void)unused;
    atomic_fetch_add(&calls, 1);
}
static void on_property(jack_uuid_t subject, const char *key, jack_property_change_t change, void *unused) {
    (void)subject, (void)key, (void)change, (void)unused;
    atomic_fetch_add(&calls, 1);
}
static void on_session(jack_session_event_t *event, void *unused) {
    (void)unused;
    jack_session_event_free(event);
    atomic_fetch_add(&calls, 1);
}

/* Accepted where the interface knows no refusal: the occasion does not come. */
static void callbacks_before_activation(void) {
    CHECK(jack_set_freewheel_callback(client, on_freewheel, NULL) == 0);
    CHECK(jack_set_property_change_callback(client, on_property, NULL) == 0);
    CHECK(jack_set_session_callback(client, on_session, NULL) == 0);
}

static void transport(void) {
    jack_position_t position = {0};
    jack_transport_info_t info;
    CHECK(jack_set_sync_callback(client, on_sync, NULL) == -1);
    CHECK(jack_set_sync_timeout(client, 1000000) == -1);
    CHECK(jack_set_timebase_callback(client, 0, on_timebase, NULL) == EINVAL);
    CHECK(jack_release_timebase(client) == EINVAL);
    jack_transport_start(client);
    CHECK(jack_transport_locate(client, 48000) == -1);
    position.frame = 48000;
    CHECK(jack_transport_reposition(client, &position) == EINVAL);
    CHECK(jack_transport_query(client, &position) == JackTransportStopped && position.frame == 0);
    CHECK(position.frame_rate == jack_get_sample_rate(client));
    CHECK(jack_get_current_transport_frame(client) == 0);
    jack_transport_stop(client);
    /* JACK2's own answers: it has given these up. */
    memset(&info, 1, sizeof info);
    jack_set_transport_info(client, &info);
    jack_get_transport_info(client, &info);
    CHECK(info.frame == 0 && info.valid == 0);
    CHECK(jack_engine_takeover_timebase(client) == -1);
    CHECK(jack_thread_wait(client, 0) == 0);
}

static void properties(void) {
    jack_uuid_t subject = jack_port_uuid(audio_out);
    jack_description_t description = {0}, *descriptions = NULL;
    char *value = NULL, *type = NULL;
    CHECK(jack_set_property(client, subject, JACK_METADATA_PRETTY_NAME, "Left", NULL) == -1);
    CHECK(jack_get_property(subject, JACK_METADATA_PRETTY_NAME, &value, &type) == -1 && !value && !type);
    CHECK(jack_get_properties(subject, &description) == -1 && description.property_cnt == 0);
    CHECK(jack_get_all_properties(&descriptions) == -1 && descriptions == NULL);
    CHECK(jack_remove_property(client, subject, JACK_METADATA_PRETTY_NAME) == -1);
    CHECK(jack_remove_properties(client, subject) == -1);
    CHECK(jack_remove_all_properties(client) == -1);
}

static void sessions(void) {
    CHECK(jack_session_notify(client, NULL, JackSessionSave, "/tmp/") == NULL);
    CHECK(jack_session_reply(client, NULL) == -1);
    CHECK(jack_reserve_client_name(client, "later", "8589934700") == -1);
    CHECK(jack_client_has_session_callback(client, jack_get_client_name(client)) == -1);
}

static void internal_clients(void) {
    jack_status_t status = 0;
    CHECK(jack_internal_client_load(client, "a", JackLoadName, &status, "inprocess") == 0);
    CHECK(status == (JackFailure | JackLoadFailure));
    CHECK(jack_internal_client_handle(client, "a", &status) == 0);
    CHECK(status == (JackFailure | JackNoSuchClient));
    CHECK(jack_get_internal_client_name(client, 1) == NULL);
    CHECK(jack_internal_client_unload(client, 1) == (JackFailure | JackNoSuchClient));
    CHECK(jack_internal_client_new("a", "inprocess", "") == -1);
    jack_internal_client_close("a");
}

static void ports(void) {
    CHECK(jack_port_tie(audio_in, audio_out) == -1);
    CHECK(jack_port_untie(audio_out) == -1);
    CHECK(jack_port_request_monitor(audio_in, 1) == -1);
    CHECK(jack_port_request_monitor_by_name(client, jack_port_name(audio_in), 1) == -1);
    CHECK(jack_port_ensure_monitor(audio_in, 1) == -1);
    CHECK(jack_port_monitoring_input(audio_in) == 0);
}

static jack_port_t *port(const char *name, const char *type, unsigned long flags) {
    jack_port_t *made = jack_port_register(client, name, type, flags, 0);
    CHECK(made != NULL);
    return made;
}

int main(void) {
    client = jack_client_open("later", JackNoStartServer, NULL);
    if (!client)
        return 2;
    audio_in = port("in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput);
    audio_out = port("out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput);
    midi_in = port("events-in", JACK_DEFAULT_MIDI_TYPE, JackPortIsInput);
    midi_out = port("events-out", JACK_DEFAULT_MIDI_TYPE, JackPortIsOutput);
    jack_set_process_callback(client, process, NULL);
    callbacks_before_activation();
    CHECK(jack_activate(client) == 0);
    CHECK(jack_connect(client, jack_port_name(midi_out), jack_port_name(midi_in)) == 0);
    for (int waits = 0; waits < 30000 && !atomic_load(&in_cycle_is_done); waits++)
        usleep(1000);
    CHECK(atomic_load(&in_cycle_is_done));
    CHECK(jack_set_freewheel(client, 1) == -1);
    transport();
    properties();
    sessions();
    internal_clients();
    ports();
    CHECK(jack_client_close(client) == 0);
    CHECK(atomic_load(&calls) == 0);
    return atomic_load(&failures) != 0;
}
