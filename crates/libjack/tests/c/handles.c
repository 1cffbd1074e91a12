/* Calls every function that takes a handle with handles that are none, and checks that it answers its documented
 * error. With the name of a running server as argument, also with handles of a client that has been closed.
 * Prints what is wrong and ends with 1, or ends with 0. */
#include <errno.h>
#include <jack/intclient.h>
#include <jack/jack.h>
#include <jack/metadata.h>
#include <jack/midiport.h>
#include <jack/session.h>
#include <jack/statistics.h>
#include <jack/thread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *handles;

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "line %d, %s: not true: %s\n", __LINE__, handles, #condition);   \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

static int calls;

static int count_frames(jack_nframes_t frames, void *context)
{
    (void)frames;
    (void)context;
    calls++;
    return 0;
}

static int count(void *context)
{
    return count_frames(0, context);
}

static void count_plain(void *context)
{
    count_frames(0, context);
}

static void *count_thread(void *context)
{
    count_frames(0, context);
    return context;
}

static void on_client(const char *name, int registered, void *context)
{
    count_frames(*name + registered, context);
}

static void on_port(jack_port_id_t port, int registered, void *context)
{
    count_frames(port + registered, context);
}

static void on_connection(jack_port_id_t a, jack_port_id_t b, int connected, void *context)
{
    count_frames(a + b + connected, context);
}

static void on_rename(jack_port_id_t port, const char *old_name, const char *new_name, void *context)
{
    count_frames(port + *old_name + *new_name, context);
}

static void on_freewheel(int starting, void *context)
{
    count_frames(starting, context);
}

static void on_latency(jack_latency_callback_mode_t mode, void *context)
{
    count_frames(mode, context);
}

static void on_shutdown_with_reason(jack_status_t code, const char *reason, void *context)
{
    count_frames(code + *reason, context);
}

static int on_sync(jack_transport_state_t state, jack_position_t *position, void *context)
{
    return count_frames(state + position->frame, context);
}

static void on_timebase(jack_transport_state_t state, jack_nframes_t frames, jack_position_t *position, int is_new,
                        void *context)
{
    count_frames(state + frames + position->frame + is_new, context);
}

static void on_property(jack_uuid_t subject, const char *key, jack_property_change_t change, void *context)
{
    count_frames(subject + *key + change, context);
}

static void on_session(jack_session_event_t *event, void *context)
{
    count_frames(event->type, context);
}

static void life(jack_client_t *client)
{
    CHECK(jack_activate(client) == -1);
    CHECK(jack_deactivate(client) == -1);
    CHECK(jack_client_close(client) == -1);
    CHECK(jack_get_client_name(client) == NULL);
    CHECK(jack_get_uuid_for_client_name(client, "system") == NULL);
    CHECK(jack_get_uuid_for_client_name(client, NULL) == NULL);
    CHECK(jack_get_client_name_by_uuid(client, "8589934593") == NULL);
    CHECK(jack_get_client_name_by_uuid(client, NULL) == NULL);
    CHECK(jack_client_get_uuid(client) == NULL);
    CHECK(jack_get_client_pid("nobody") == 0);
    CHECK(jack_get_client_pid(NULL) == 0);
    CHECK(jack_client_thread_id(client) == 0);
    CHECK(jack_is_realtime(client) == 0);
    CHECK(jack_set_freewheel(client, 1) == -1);
    CHECK(jack_set_buffer_size(client, 64) == -1);
    CHECK(jack_get_sample_rate(client) == 0);
    CHECK(jack_get_buffer_size(client) == 0);
    CHECK(jack_cpu_load(client) == 0);
    CHECK(jack_engine_takeover_timebase(client) == -1);
    CHECK(jack_cycle_wait(client) == 0);
    jack_cycle_signal(client, 0);
    CHECK(jack_thread_wait(client, 0) == 0);
    CHECK(jack_get_max_delayed_usecs(client) == 0);
    CHECK(jack_get_xrun_delayed_usecs(client) == 0);
    jack_reset_max_delayed_usecs(client);
}

static void callbacks(jack_client_t *client)
{
    CHECK(jack_set_process_callback(client, count_frames, NULL) == -1);
    CHECK(jack_set_process_thread(client, count_thread, NULL) == -1);
    CHECK(jack_set_thread_init_callback(client, count_plain, NULL) == -1);
    jack_on_shutdown(client, count_plain, NULL);
    jack_on_info_shutdown(client, on_shutdown_with_reason, NULL);
    CHECK(jack_set_freewheel_callback(client, on_freewheel, NULL) == -1);
    CHECK(jack_set_buffer_size_callback(client, count_frames, NULL) == -1);
    CHECK(jack_set_sample_rate_callback(client, count_frames, NULL) == -1);
    CHECK(jack_set_client_registration_callback(client, on_client, NULL) == -1);
    CHECK(jack_set_port_registration_callback(client, on_port, NULL) == -1);
    CHECK(jack_set_port_connect_callback(client, on_connection, NULL) == -1);
    CHECK(jack_set_port_rename_callback(client, on_rename, NULL) == -1);
    CHECK(jack_set_graph_order_callback(client, count, NULL) == -1);
    CHECK(jack_set_xrun_callback(client, count, NULL) == -1);
    CHECK(jack_set_latency_callback(client, on_latency, NULL) == -1);
    CHECK(jack_set_property_change_callback(client, on_property, NULL) == -1);
    CHECK(jack_set_session_callback(client, on_session, NULL) == -1);
    CHECK(jack_set_sync_callback(client, on_sync, NULL) == -1);
    CHECK(jack_set_timebase_callback(client, 0, on_timebase, NULL) == EINVAL);
    CHECK(calls == 0);
}

static void ports(jack_client_t *client, jack_port_t *port)
{
    jack_latency_range_t range = {7, 7};
    char first[321], second[321];
    char *aliases[2] = {first, second};
    CHECK(jack_port_register(client, "a", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0) == NULL);
    CHECK(jack_port_register(client, NULL, NULL, 0, 0) == NULL);
    CHECK(jack_port_unregister(client, port) == -1);
    CHECK(jack_port_rename(client, port, "b") == -1);
    CHECK(jack_port_rename(client, port, NULL) == -1);
    CHECK(jack_port_set_name(port, "b") == -1);
    CHECK(jack_port_set_alias(port, "b:c") == -1);
    CHECK(jack_port_set_alias(port, NULL) == -1);
    CHECK(jack_port_unset_alias(port, "b:c") == -1);
    CHECK(jack_port_tie(port, port) == -1);
    CHECK(jack_port_untie(port) == -1);
    CHECK(jack_port_name(port) == NULL);
    CHECK(jack_port_short_name(port) == NULL);
    CHECK(jack_port_flags(port) == -1);
    CHECK(jack_port_type(port) == NULL);
    CHECK(jack_port_type_id(port) == 0);
    CHECK(jack_port_uuid(port) == 0);
    CHECK(jack_port_is_mine(client, port) == 0);
    CHECK(jack_port_get_aliases(port, aliases) == -1);
    CHECK(jack_port_get_aliases(port, NULL) == -1);
    CHECK(jack_port_by_name(client, "system:playback_1") == NULL);
    CHECK(jack_port_by_name(client, NULL) == NULL);
    CHECK(jack_port_by_id(client, 1) == NULL);
    CHECK(jack_get_ports(client, NULL, NULL, 0) == NULL);
    CHECK(jack_port_type_get_buffer_size(client, JACK_DEFAULT_MIDI_TYPE) == 0);
    CHECK(jack_port_type_get_buffer_size(client, NULL) == 0);
    CHECK(jack_connect(client, "a:b", "c:d") == -1);
    CHECK(jack_connect(client, NULL, NULL) == -1);
    CHECK(jack_disconnect(client, "a:b", "c:d") == -1);
    CHECK(jack_disconnect(client, NULL, NULL) == -1);
    CHECK(jack_port_disconnect(client, port) == -1);
    CHECK(jack_port_connected(port) == -1);
    CHECK(jack_port_connected_to(port, "a:b") == -1);
    CHECK(jack_port_connected_to(port, NULL) == -1);
    CHECK(jack_port_get_connections(port) == NULL);
    CHECK(jack_port_get_all_connections(client, port) == NULL);
    CHECK(jack_port_request_monitor(port, 1) == -1);
    CHECK(jack_port_request_monitor_by_name(client, "a:b", 1) == -1);
    CHECK(jack_port_request_monitor_by_name(client, NULL, 1) == -1);
    CHECK(jack_port_ensure_monitor(port, 1) == -1);
    CHECK(jack_port_monitoring_input(port) == 0);
    jack_port_set_latency_range(port, JackCaptureLatency, &range);
    jack_port_set_latency_range(port, JackCaptureLatency, NULL);
    jack_port_get_latency_range(port, JackPlaybackLatency, NULL);
    jack_port_get_latency_range(port, JackPlaybackLatency, &range);
    CHECK(range.min == 0 && range.max == 0);
    jack_port_set_latency(port, 5);
    CHECK(jack_port_get_latency(port) == 0);
    CHECK(jack_port_get_total_latency(client, port) == 0);
    CHECK(jack_recompute_total_latencies(client) == -1);
    CHECK(jack_recompute_total_latency(client, port) == -1);
}

static void times(jack_client_t *client)
{
    jack_position_t position;
    jack_transport_info_t info, zeroed;
    CHECK(jack_frame_time(client) == 0);
    CHECK(jack_last_frame_time(client) == 0);
    CHECK(jack_frames_since_cycle_start(client) == 0);
    CHECK(jack_get_cycle_times(client, NULL, NULL, NULL, NULL) == -1);
    CHECK(jack_frames_to_time(client, 1) == 0);
    CHECK(jack_time_to_frames(client, 1) == 0);
    jack_transport_start(client);
    jack_transport_stop(client);
    CHECK(jack_transport_locate(client, 1) == -1);
    CHECK(jack_transport_reposition(client, NULL) == EINVAL);
    memset(&position, 1, sizeof position);
    CHECK(jack_transport_query(client, NULL) == JackTransportStopped);
    CHECK(jack_transport_query(client, &position) == JackTransportStopped);
    CHECK(position.unique_1 == position.unique_2 && position.valid == 0 && position.frame_rate == 0);
    CHECK(jack_get_current_transport_frame(client) == 0);
    CHECK(jack_set_sync_timeout(client, 1) == -1);
    CHECK(jack_release_timebase(client) == EINVAL);
    memset(&info, 1, sizeof info);
    memset(&zeroed, 0, sizeof zeroed);
    jack_get_transport_info(client, NULL);
    jack_get_transport_info(client, &info);
    CHECK(memcmp(&info, &zeroed, sizeof info) == 0);
    jack_set_transport_info(client, NULL);
}

static void threads(jack_client_t *client)
{
    jack_native_thread_t thread;
    CHECK(jack_client_real_time_priority(client) == -1);
    CHECK(jack_client_max_real_time_priority(client) == -1);
    CHECK(jack_client_create_thread(client, &thread, 0, 0, NULL, NULL) == EINVAL);
    CHECK(jack_client_create_thread(client, NULL, 0, 0, count_thread, NULL) == EINVAL);
    CHECK(jack_client_stop_thread(client, 0) == EINVAL);
    CHECK(jack_client_kill_thread(client, 0) == EINVAL);
    CHECK(jack_acquire_real_time_scheduling(0, 5) == EINVAL);
    CHECK(jack_drop_real_time_scheduling(0) == EINVAL);
}

static void others(jack_client_t *client)
{
    jack_status_t status = 0;
    CHECK(jack_get_internal_client_name(client, 1) == NULL);
    CHECK(jack_internal_client_handle(client, "a", &status) == 0);
    CHECK(status == (JackFailure | JackNoSuchClient));
    CHECK(jack_internal_client_load(client, "a", JackLoadInit, &status, "b") == 0);
    CHECK(status == (JackFailure | JackLoadFailure));
    CHECK(jack_internal_client_load(client, "a", JackServerName, NULL, "b") == 0);
    CHECK(jack_internal_client_unload(client, 1) == (JackFailure | JackNoSuchClient));
    CHECK(jack_set_property(client, 1, "a", "b", NULL) == -1);
    CHECK(jack_remove_property(client, 1, "a") == -1);
    CHECK(jack_remove_properties(client, 1) == -1);
    CHECK(jack_remove_all_properties(client) == -1);
    CHECK(jack_session_reply(client, NULL) == -1);
    CHECK(jack_session_notify(client, NULL, JackSessionSave, "/") == NULL);
    CHECK(jack_reserve_client_name(client, "a", "b") == -1);
    CHECK(jack_client_has_session_callback(client, "a") == -1);
}

static void all(const char *which, void *client, void *port)
{
    handles = which;
    life(client);
    callbacks(client);
    ports(client, port);
    times(client);
    threads(client);
    others(client);
}

/* A private copy of a text, as the releasing functions expect it. */
static char *text(void)
{
    char *copy = malloc(2);
    strcpy(copy, "a");
    return copy;
}

static void without_handles(void)
{
    jack_midi_event_t event;
    jack_status_t status = 0;
    char *value = NULL, *type = NULL;
    jack_description_t description, *descriptions = NULL;
    float memory[8192] = {0};
    handles = "no handles";
    CHECK(jack_client_open(NULL, JackNoStartServer, &status) == NULL && status == JackFailure);
    CHECK(jack_client_open("a", JackLoadInit, &status) == NULL && status == (JackFailure | JackInvalidOption));
    CHECK(jack_client_open("a", JackNoStartServer | JackServerName, &status, "nobody's server") == NULL);
    CHECK(status == (JackFailure | JackServerFailed));
    CHECK(jack_client_new(NULL) == NULL);
    CHECK(jack_client_name_size() == 65 && jack_port_name_size() == 321 && jack_port_type_size() == 32);
    CHECK(jack_internal_client_new("a", "b", "c") == -1);
    jack_internal_client_close("a");
    CHECK(jack_get_property(1, "a", &value, &type) == -1 && value == NULL && type == NULL);
    CHECK(jack_get_properties(1, &description) == -1);
    CHECK(jack_get_all_properties(&descriptions) == -1 && descriptions == NULL);
    CHECK(jack_midi_get_event_count(memory) == 0);
    CHECK(jack_midi_event_get(&event, NULL, 0) == -EINVAL);
    CHECK(jack_midi_event_get(&event, memory, 0) == -EINVAL);
    jack_midi_clear_buffer(memory);
    jack_midi_reset_buffer(memory);
    CHECK(jack_midi_max_event_size(NULL) == 0);
    CHECK(jack_midi_event_reserve(NULL, 0, 3) == NULL);
    CHECK(jack_midi_event_write(NULL, 0, (const jack_midi_data_t *)"abc", 3) == -EINVAL);
    CHECK(jack_midi_get_lost_event_count(memory) == 0);
    jack_set_thread_creator(NULL);
}

static void releasing(void)
{
    jack_description_t *description = calloc(1, sizeof *description);
    jack_session_event_t *event = calloc(1, sizeof *event);
    jack_session_command_t *commands = calloc(2, sizeof *commands);
    handles = "releasing";
    jack_free_description(NULL, 1);
    description->property_cnt = 1;
    description->properties = calloc(1, sizeof *description->properties);
    description->properties->key = text();
    description->properties->data = text();
    jack_free_description(description, 0);
    CHECK(description->property_cnt == 0 && description->properties == NULL);
    jack_free_description(description, 1);
    jack_session_event_free(NULL);
    event->session_dir = text();
    event->command_line = text();
    jack_session_event_free(event);
    jack_session_commands_free(NULL);
    commands[0].uuid = text();
    commands[0].command = text();
    jack_session_commands_free(commands);
}

static int created;

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    created++;
    return pthread_create(thread, attributes, body, argument);
}

static void *sleep_for_ever(void *context)
{
    for (;;) {
        sleep(1000);
    }
    return context;
}

/* Threads need no client. */
static void real_threads(void)
{
    jack_native_thread_t thread;
    handles = "threads";
    CHECK(jack_client_create_thread(NULL, &thread, 0, 0, count_thread, NULL) == 0);
    CHECK(jack_client_stop_thread(NULL, thread) == 0 && calls == 1);
    jack_set_thread_creator(create);
    CHECK(jack_client_create_thread(NULL, &thread, 0, 0, sleep_for_ever, NULL) == 0 && created == 1);
    jack_set_thread_creator(NULL);
    CHECK(jack_drop_real_time_scheduling(thread) == 0);
    CHECK(jack_client_kill_thread(NULL, thread) == 0);
    calls = 0;
}

static void of_a_closed_client(const char *server)
{
    jack_client_t *client = jack_client_open("closed", JackNoStartServer | JackServerName, NULL, server);
    jack_port_t *port;
    handles = "open";
    CHECK(client != NULL);
    port = jack_port_register(client, "a", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    CHECK(port != NULL && jack_port_is_mine(client, port));
    CHECK(jack_activate(client) == 0 && jack_client_close(client) == 0);
    all("closed", client, port);
    /* The process thread may be late to hear of it. */
    CHECK(jack_port_get_buffer(port, 64) != NULL);
}

int main(int count, char **arguments)
{
    int local = 0;
    jack_set_error_function(NULL);
    without_handles();
    releasing();
    real_threads();
    all("null", NULL, NULL);
    all("the address of something else", &local, &local);
    all("a small number", (void *)1, (void *)1);
    all("a large number", (void *)~0ul, (void *)~0ul);
    CHECK(jack_port_get_buffer(NULL, 64) == NULL && jack_port_get_buffer((void *)~0ul, 64) == NULL);
    if (count > 1) {
        of_a_closed_client(arguments[1]);
    }
    return 0;
}
