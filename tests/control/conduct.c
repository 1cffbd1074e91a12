/* Controls a server as JACK2's own example does, and is a client of it: all with libjackserver.so.0 alone. Prints what is
 * wrong and ends with 1, or ends with 0. */
#include <jack/control.h>
#include <jack/intclient.h>
#include <jack/jack.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures;

static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    failures++;
}
#define CHECK(condition) check(condition, __LINE__, #condition)

static jackctl_driver_t *driver_of(jackctl_server_t *server, const char *name) {
    for (const JSList *node = jackctl_server_get_drivers_list(server); node; node = jack_slist_next(node))
        if (strcmp(jackctl_driver_get_name(node->data), name) == 0)
            return node->data;
    return NULL;
}

static jackctl_internal_t *internal_of(jackctl_server_t *server, const char *name) {
    for (const JSList *node = jackctl_server_get_internals_list(server); node; node = jack_slist_next(node))
        if (strcmp(jackctl_internal_get_name(node->data), name) == 0)
            return node->data;
    return NULL;
}

static jackctl_parameter_t *parameter_of(const JSList *list, const char *name) {
    for (; list; list = jack_slist_next(list))
        if (strcmp(jackctl_parameter_get_name(list->data), name) == 0)
            return list->data;
    return NULL;
}

static void parameters_have_types_defaults_and_limits(jackctl_server_t *server) {
    jackctl_driver_t *dummy = driver_of(server, "dummy");
    CHECK(jackctl_driver_get_type(dummy) == JackMaster);
    jackctl_parameter_t *period = parameter_of(jackctl_driver_get_parameters(dummy), "period");
    CHECK(jackctl_parameter_get_type(period) == JackParamUInt && jackctl_parameter_get_id(period) == 'p');
    CHECK(jackctl_parameter_get_default_value(period).ui == 1024 && !jackctl_parameter_is_set(period));
    CHECK(jackctl_parameter_has_range_constraint(period) && !jackctl_parameter_has_enum_constraint(period));
    CHECK(jackctl_parameter_constraint_is_strict(period) && !jackctl_parameter_constraint_is_fake_value(period));
    union jackctl_parameter_value min, max, value = {.ui = 9000};
    jackctl_parameter_get_range_constraint(period, &min, &max);
    CHECK(min.ui == 1 && max.ui == 8192);
    CHECK(!jackctl_parameter_set_value(period, &value) && !jackctl_parameter_is_set(period));
    value.ui = 256;
    CHECK(jackctl_parameter_set_value(period, &value) && jackctl_parameter_is_set(period));
    CHECK(jackctl_parameter_get_value(period).ui == 256);
    CHECK(jackctl_parameter_get_default_value(period).ui == 1024);
    CHECK(jackctl_parameter_reset(period) && !jackctl_parameter_is_set(period));
    CHECK(jackctl_parameter_get_value(period).ui == 1024);
    CHECK(strlen(jackctl_parameter_get_short_description(period)) > 0);
    CHECK(strlen(jackctl_parameter_get_long_description(period)) > 0);

    jackctl_parameter_t *mode = parameter_of(jackctl_server_get_parameters(server), "self-connect-mode");
    CHECK(jackctl_parameter_get_type(mode) == JackParamChar && jackctl_parameter_has_enum_constraint(mode));
    CHECK(jackctl_parameter_get_enum_constraints_count(mode) == 5);
    CHECK(jackctl_parameter_get_enum_constraint_value(mode, 1).c == 'E');
    CHECK(strlen(jackctl_parameter_get_enum_constraint_description(mode, 1)) > 0);
    CHECK(jackctl_parameter_get_enum_constraint_description(mode, 5) == NULL);
    value.c = 'x';
    CHECK(!jackctl_parameter_set_value(mode, &value));

    jackctl_parameter_t *name = parameter_of(jackctl_server_get_parameters(server), "name");
    CHECK(jackctl_parameter_get_type(name) == JackParamString);
    memset(value.str, 'x', sizeof value.str);
    CHECK(!jackctl_parameter_set_value(name, &value));
    strcpy(value.str, "conducted");
    CHECK(jackctl_parameter_set_value(name, &value));
    CHECK(strcmp(jackctl_parameter_get_value(name).str, "conducted") == 0);

    jackctl_parameter_t *realtime = parameter_of(jackctl_server_get_parameters(server), "realtime");
    CHECK(jackctl_parameter_get_type(realtime) == JackParamBool && jackctl_parameter_get_value(realtime).b);
    jackctl_parameter_t *priority = parameter_of(jackctl_server_get_parameters(server), "realtime-priority");
    CHECK(jackctl_parameter_get_type(priority) == JackParamInt && jackctl_parameter_get_value(priority).i == 10);
}

static void command_lines_are_read(jackctl_server_t *server) {
    jackctl_driver_t *dummy = driver_of(server, "dummy");
    const JSList *parameters = jackctl_driver_get_parameters(dummy);
    char *good[] = {"dummy", "-r", "44100", "-p128", "--capture", "3", "--playback=1"};
    CHECK(jackctl_driver_params_parse(dummy, 7, good) == 0);
    CHECK(jackctl_parameter_get_value(parameter_of(parameters, "rate")).ui == 44100);
    CHECK(jackctl_parameter_get_value(parameter_of(parameters, "period")).ui == 128);
    CHECK(jackctl_parameter_get_value(parameter_of(parameters, "capture")).ui == 3);
    CHECK(jackctl_parameter_get_value(parameter_of(parameters, "playback")).ui == 1);
    char *bad[][3] = {{"dummy", "-q", "1"}, {"dummy", "-p", "many"}, {"dummy", "--periodic", "1"}, {"dummy", "x", "y"}};
    for (int i = 0; i < 4; i++)
        CHECK(jackctl_driver_params_parse(dummy, 3, bad[i]) != 0);
    char *cut[] = {"dummy", "-p"};
    CHECK(jackctl_driver_params_parse(dummy, 2, cut) != 0);
    CHECK(jackctl_driver_params_parse(dummy, 0, NULL) == 0);
}

static atomic_int shutdowns;
static void on_shutdown(void *unused) {
    (void)unused;
    atomic_fetch_add(&shutdowns, 1);
}
static atomic_uint frames;
static int process(jack_nframes_t count, void *unused) {
    (void)unused;
    atomic_store(&frames, count);
    return 0;
}

static int comes_true(int (*is_so)(jack_client_t *), jack_client_t *client) {
    for (int i = 0; i < 3000; i++) {
        if (is_so(client))
            return 1;
        usleep(10000);
    }
    return 0;
}
static int is_stopped(jack_client_t *client) { return (void)client, atomic_load(&shutdowns) == 1; }
static int runs_128(jack_client_t *client) { return (void)client, atomic_load(&frames) == 128; }
static int runs_256(jack_client_t *client) { return (void)client, atomic_load(&frames) == 256; }
static int has_two(jack_client_t *client) {
    return !jack_port_by_name(client, "system:capture_3") && jack_port_by_name(client, "system:capture_2");
}
static int is_connected(jack_client_t *client) {
    jack_port_t *port = jack_port_by_name(client, "guest:in");
    return jack_port_connected_to(port, "system:capture_1");
}

static jack_client_t *guest(void) {
    jack_client_t *client = jack_client_open("guest", JackNoStartServer | JackServerName, NULL, "conducted");
    CHECK(client != NULL);
    if (!client)
        return NULL;
    CHECK(jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0) != NULL);
    jack_on_shutdown(client, on_shutdown, NULL);
    jack_set_process_callback(client, process, NULL);
    CHECK(jack_activate(client) == 0);
    CHECK(jack_connect(client, "system:capture_1", "guest:in") == 0);
    return client;
}

static void plug_ins_are_loaded(jackctl_server_t *server, jack_client_t *client, const char *session) {
    jackctl_internal_t *profiler = internal_of(server, "profiler");
    union jackctl_parameter_value yes = {.b = true};
    CHECK(jackctl_parameter_set_value(parameter_of(jackctl_internal_get_parameters(profiler), "cpu-load"), &yes));
    CHECK(jackctl_server_load_internal(server, profiler));
    CHECK(jack_internal_client_handle(client, "profiler", NULL) != 0);
    CHECK(jack_port_by_name(client, "profiler:cpu_load") && !jack_port_by_name(client, "profiler:driver_period"));
    CHECK(jackctl_server_unload_internal(server, profiler));
    CHECK(!jackctl_server_unload_internal(server, profiler));
    CHECK(!jack_port_by_name(client, "profiler:cpu_load"));
    CHECK(jackctl_server_load_session_file(server, session));
    CHECK(jack_port_connected_to(jack_port_by_name(client, "meter:cpu_load"), "guest:in"));
    CHECK(!jackctl_server_load_session_file(server, "/no/such/file"));
    CHECK(!jackctl_server_load_session_file(server, "/proc/self/cmdline"));
    CHECK(!jackctl_server_load_session_file(server, NULL));
}

static void nonsense(jackctl_server_t *server) {
    jackctl_driver_t *dummy = driver_of(server, "dummy");
    void *foreign[] = {NULL, &foreign, (void *)8, dummy};
    for (int i = 0; i < 4; i++) {
        CHECK(!jackctl_server_open(foreign[i], dummy) && !jackctl_server_start(foreign[i]));
        CHECK(!jackctl_server_stop(foreign[i]) && !jackctl_server_close(foreign[i]));
        CHECK(!jackctl_server_get_drivers_list(foreign[i]) && !jackctl_server_get_parameters(foreign[i]));
        CHECK(!jackctl_server_get_internals_list(foreign[i]));
        CHECK(!jackctl_server_load_internal(server, foreign[i]) && !jackctl_server_load_internal(foreign[i], NULL));
        CHECK(!jackctl_server_unload_internal(server, foreign[i]));
        CHECK(!jackctl_server_switch_master(foreign[i], dummy));
        CHECK(!jackctl_internal_get_name(foreign[i]) && !jackctl_internal_get_parameters(foreign[i]));
        CHECK(!jackctl_parameter_get_name(foreign[i]) && !jackctl_parameter_get_type(foreign[i]));
        CHECK(!jackctl_parameter_set_value(foreign[i], NULL) && !jackctl_parameter_reset(foreign[i]));
        CHECK(jackctl_parameter_get_value(foreign[i]).ui == 0 && !jackctl_parameter_get_id(foreign[i]));
        jackctl_parameter_get_range_constraint(foreign[i], NULL, NULL);
        jackctl_server_destroy(foreign[i]);
        jackctl_wait_signals(foreign[i]);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(!jackctl_server_open(server, foreign[i]) && !jackctl_driver_get_name(foreign[i]));
        CHECK(!jackctl_driver_get_type(foreign[i]) && !jackctl_driver_get_parameters(foreign[i]));
        CHECK(jackctl_driver_params_parse(foreign[i], 0, NULL) != 0);
    }
    CHECK(!jackctl_server_start(server) && !jackctl_server_stop(server) && !jackctl_server_close(server));
    CHECK(!jackctl_server_switch_master(server, dummy) && !jackctl_server_load_internal(server, internal_of(server, "profiler")));
    CHECK(!jackctl_server_add_slave(server, dummy) && !jackctl_server_remove_slave(server, dummy));
    CHECK(!jackctl_server_add_slave(foreign[1], dummy) && !jackctl_server_add_slave(server, foreign[1]));
    CHECK(!jackctl_server_remove_slave(foreign[1], dummy) && !jackctl_server_remove_slave(server, foreign[1]));
    jackctl_driver_t *slave = driver_of(server, "alsarawmidi");
    CHECK(jackctl_driver_get_type(slave) == JackSlave && !jackctl_server_open(server, slave));
    jackctl_server_t *other = jackctl_server_create(NULL, NULL);
    CHECK(!jackctl_server_open(server, driver_of(other, "dummy")));
    CHECK(!jackctl_server_add_slave(server, driver_of(other, "alsarawmidi")));
    jackctl_server_destroy(other);
    CHECK(!jackctl_server_get_parameters(other));
    jackctl_server_destroy(other);
}

static int asked, released;
static bool permits;
static bool on_acquire(const char *device) {
    CHECK(strcmp(device, "Audio77") == 0);
    asked++;
    return permits;
}
static void on_release(const char *device) {
    CHECK(strcmp(device, "Audio77") == 0);
    released++;
}

static void cards_are_asked_for(void) {
    jackctl_server_t *server = jackctl_server_create2(on_acquire, on_release, NULL);
    jackctl_driver_t *alsa = driver_of(server, "alsa");
    char *card[] = {"alsa", "-dhw:77,0"};
    CHECK(jackctl_driver_params_parse(alsa, 2, card) == 0);
    CHECK(!jackctl_server_open(server, alsa) && asked == 1 && released == 0);
    /* It may be used, but does not exist. */
    permits = true;
    CHECK(!jackctl_server_open(server, alsa) && asked == 2 && released == 1);
    /* A running server continues with its driver, whether the card must not or cannot be used. */
    union jackctl_parameter_value name = {.str = "carded"};
    CHECK(jackctl_parameter_set_value(parameter_of(jackctl_server_get_parameters(server), "name"), &name));
    CHECK(jackctl_server_open(server, driver_of(server, "dummy")));
    CHECK(!jackctl_server_switch_master(server, alsa) && asked == 3 && released == 2);
    permits = false;
    CHECK(!jackctl_server_switch_master(server, alsa) && asked == 4 && released == 2);
    jack_client_t *client = jack_client_open("guest", JackNoStartServer | JackServerName, NULL, "carded");
    CHECK(client && jack_port_by_name(client, "system:playback_2") && jack_client_close(client) == 0);
    /* A slave driver's card is requested as well. */
    CHECK(!jackctl_server_add_slave(server, alsa) && asked == 5 && released == 2);
    permits = true;
    CHECK(!jackctl_server_add_slave(server, alsa) && asked == 6 && released == 3);
    CHECK(jackctl_server_close(server) && released == 3);
    /* Before the server starts, no program is asked; an unavailable slave driver then prevents the start. */
    CHECK(jackctl_server_add_slave(server, alsa) && asked == 6);
    CHECK(!jackctl_server_open(server, driver_of(server, "dummy")) && asked == 7 && released == 4);
    CHECK(!jack_client_open("late", JackNoStartServer | JackServerName, NULL, "carded"));
    CHECK(jackctl_server_remove_slave(server, alsa) && !jackctl_server_remove_slave(server, alsa));
    CHECK(jackctl_server_open(server, driver_of(server, "dummy")) && jackctl_server_close(server));
    jackctl_server_destroy(server);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    jackctl_server_t *server = jackctl_server_create2(NULL, NULL, NULL);
    CHECK(server != NULL);
    parameters_have_types_defaults_and_limits(server);
    command_lines_are_read(server);
    nonsense(server);
    cards_are_asked_for();

    jackctl_driver_t *dummy = driver_of(server, "dummy");
    CHECK(jackctl_server_open(server, dummy) && !jackctl_server_open(server, dummy));
    CHECK(jackctl_server_start(server));
    jack_client_t *client = guest();
    if (!client)
        return 1;
    CHECK(jack_get_sample_rate(client) == 44100 && jack_get_buffer_size(client) == 128);
    CHECK(jack_port_by_name(client, "system:capture_3") && !jack_port_by_name(client, "system:playback_2"));
    CHECK(comes_true(runs_128, client));
    plug_ins_are_loaded(server, client, argv[1]);

    char *two[] = {"dummy", "-C2", "-p256"};
    CHECK(jackctl_driver_params_parse(dummy, 3, two) == 0);
    CHECK(jackctl_server_switch_master(server, dummy));
    CHECK(has_two(client) && is_connected(client) && comes_true(runs_256, client));
    /* The same server: its further devices continue. */
    CHECK(jack_port_connected_to(jack_port_by_name(client, "meter:cpu_load"), "guest:in"));
    CHECK(atomic_load(&shutdowns) == 0);
    /* A driver that does not start, or has another sample rate, leaves the previous one in place. */
    char *rate[] = {"dummy", "-r48000"};
    CHECK(jackctl_driver_params_parse(dummy, 2, rate) == 0 && !jackctl_server_switch_master(server, dummy));
    char *same[] = {"dummy", "-r44100"};
    CHECK(jackctl_driver_params_parse(dummy, 2, same) == 0);
    jackctl_driver_t *file = driver_of(server, "file");
    char *missing[] = {"file", "--input", "/no/such/sound.wav"};
    CHECK(jackctl_driver_params_parse(file, 3, missing) == 0);
    CHECK(!jackctl_server_switch_master(server, file));
    CHECK(has_two(client) && is_connected(client) && comes_true(runs_256, client));
    CHECK(atomic_load(&shutdowns) == 0);

    CHECK(jackctl_server_stop(server) && !jackctl_server_stop(server));
    CHECK(comes_true(is_stopped, client));
    CHECK(jack_client_close(client) == 0);
    CHECK(jackctl_server_start(server));
    client = guest();
    CHECK(client && jack_client_close(client) == 0);
    CHECK(jackctl_server_close(server) && !jackctl_server_close(server));
    CHECK(!jack_client_open("late", JackNoStartServer | JackServerName, NULL, "conducted"));
    jackctl_server_destroy(server);
    CHECK(!jackctl_server_get_parameters(server));
    return failures != 0;
}
