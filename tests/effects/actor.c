/*
 * A JACK client that executes commands: `actor PIPE NAME [exact | new | plain-shutdown | both-shutdowns]`.
 *
 * It makes a pipe at PIPE and reads lines from it. Each line names one function of the interface with its arguments;
 * the function is called, and one line that begins with "= " gives its result. What the server reports through
 * callbacks is printed in lines that begin with "! ", by whichever thread the callback comes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <jack/jack.h>
#include <jack/session.h>
#include <jack/statistics.h>
#include <jack/thread.h>
#include <jack/uuid.h>
#include <jack/transport.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Deprecated functions have effects all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static jack_client_t *client;
/* Written by the process thread. */
static atomic_uint cycles, wrong_frames;
static atomic_ulong process_thread;
/* The kernel's id of it. */
static atomic_int process_thread_id;
/* The last argument of the buffer size callback. */
static atomic_uint notified_frames;
/* What the process callback returns. */
static atomic_int process_result;

/* One write per line: lines of several threads do not mix. */
static void line(const char *kind, const char *format, va_list arguments) {
    char text[4096], whole[4200];
    vsnprintf(text, sizeof text, format, arguments);
    int length = snprintf(whole, sizeof whole, "%s %s\n", kind, text);
    if (write(STDOUT_FILENO, whole, (size_t)length) != length)
        _exit(3);
}

static void answer(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line("=", format, arguments);
    va_end(arguments);
}

static void report_event(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line("!", format, arguments);
    va_end(arguments);
}

/* Callbacks */

static void measure(jack_nframes_t frames);
static void ask_in_cycle(void);
static void note_creator_and_close(void);

static int process(jack_nframes_t frames, void *unused) {
    (void)unused;
    ask_in_cycle();
    note_creator_and_close();
    atomic_store(&process_thread, (unsigned long)pthread_self());
    atomic_store(&process_thread_id, (int)syscall(SYS_gettid));
    measure(frames);
    if (frames != atomic_load(&notified_frames))
        atomic_fetch_add(&wrong_frames, 1);
    atomic_fetch_add(&cycles, 1);
    return atomic_load(&process_result);
}

/* The alternative: a thread that waits for cycles itself. */
static void *cycle_thread(void *unused) {
    (void)unused;
    for (;;) {
        jack_nframes_t frames = jack_cycle_wait(client);
        int result = process(frames, NULL);
        jack_cycle_signal(client, result);
        if (result)
            return NULL;
    }
}

static const char *port_of(jack_port_id_t id) {
    jack_port_t *port = jack_port_by_id(client, id);
    return port ? jack_port_name(port) : "(none)";
}

static int on_frames(jack_nframes_t frames, void *unused) {
    (void)unused;
    atomic_store(&notified_frames, frames);
    report_event("quantum %u", frames);
    return 0;
}
static void on_client(const char *name, int registered, void *unused) {
    (void)unused;
    report_event("client %s %s", name, registered ? "came" : "went");
}
static void on_port(jack_port_id_t id, int registered, void *unused) {
    (void)unused;
    report_event("port %s %s", port_of(id), registered ? "came" : "went");
}
static void on_connection(jack_port_id_t source, jack_port_id_t destination, int connected, void *unused) {
    (void)unused;
    report_event("%s %s %s", port_of(source), connected ? "to" : "no longer to", port_of(destination));
}
static void on_rename(jack_port_id_t id, const char *old_name, const char *new_name, void *unused) {
    (void)id, (void)unused;
    report_event("port %s is now %s", old_name, new_name);
}
static int on_order(void *unused) {
    (void)unused;
    report_event("order");
    return 0;
}
static int on_xrun(void *unused) {
    (void)unused;
    report_event("xrun");
    return 0;
}
static void on_latency(jack_latency_callback_mode_t mode, void *unused) {
    (void)unused;
    report_event("latency %s", mode == JackCaptureLatency ? "capture" : "playback");
}
static void on_shutdown(void *unused) {
    (void)unused;
    report_event("shutdown");
}
static void on_info_shutdown(jack_status_t code, const char *reason, void *unused) {
    (void)unused;
    report_event("shutdown 0x%x %s", (unsigned)code, reason);
}
static void on_thread(void *unused) {
    (void)unused;
    report_event("a thread begins");
}

/* Arguments */

static jack_port_t *port(const char *name) {
    jack_port_t *found = jack_port_by_name(client, name);
    if (!found)
        report_event("no port %s", name);
    return found;
}

/* Prints an array of names, and frees it. */
static void answer_names(const char **names) {
    if (!names) {
        answer("(null)");
        return;
    }
    char text[4000] = "";
    for (const char **name = names; *name; name++) {
        if (name != names)
            strcat(text, " ");
        strncat(text, *name, sizeof text - strlen(text) - 2);
    }
    answer("%s", text);
    jack_free(names);
}

static void answer_owned(char *text) {
    answer("%s", text ? text : "(null)");
    jack_free(text);
}

static unsigned long flags(const char *text) {
    static const char *const letters = "ioPMT";
    unsigned long found = 0;
    for (; *text; text++) {
        const char *letter = strchr(letters, *text);
        if (letter)
            found |= 1ul << (letter - letters);
    }
    return found;
}

static jack_latency_callback_mode_t mode(const char *text) {
    return strcmp(text, "capture") == 0 ? JackCaptureLatency : JackPlaybackLatency;
}

/* A port's type from a word without spaces. */
static const char *type(const char *word) {
    if (strcmp(word, "audio") == 0)
        return JACK_DEFAULT_AUDIO_TYPE;
    return strcmp(word, "midi") == 0 ? JACK_DEFAULT_MIDI_TYPE : word;
}

/* Commands: the words of the line, of which the first is the command. */

#define COMMAND(name) static void name(char **word)
#define UNUSED (void)word

COMMAND(activate) { UNUSED; answer("%d", jack_activate(client)); }
COMMAND(deactivate) { UNUSED; answer("%d", jack_deactivate(client)); }
COMMAND(close_client) { UNUSED; answer("%d", jack_client_close(client)); }
COMMAND(client_name) { UNUSED; answer("%s", jack_get_client_name(client)); }
COMMAND(own_uuid) { UNUSED; answer_owned(jack_client_get_uuid(client)); }
COMMAND(uuid_of) { answer_owned(jack_get_uuid_for_client_name(client, word[1])); }
COMMAND(name_of) { answer_owned(jack_get_client_name_by_uuid(client, word[1])); }
/* To the name and back to the uuid, for a client of another process. */
COMMAND(uuid_and_back) {
    char *uuid = jack_get_uuid_for_client_name(client, word[1]);
    answer_owned(uuid ? jack_get_client_name_by_uuid(client, uuid) : NULL);
    jack_free(uuid);
}
COMMAND(client_pid) { answer("%d", jack_get_client_pid(word[1])); }
COMMAND(port_register) {
    answer("%s", jack_port_register(client, word[1], type(word[2]), flags(word[3]), 0) ? "ok" : "(null)");
}
COMMAND(port_unregister) { answer("%d", jack_port_unregister(client, port(word[1]))); }
COMMAND(port_rename) {
    jack_port_t *renamed = port(word[1]);
    const char *before = jack_port_name(renamed);
    int result = jack_port_rename(client, renamed, word[2]);
    /* The old name may still be read through an older pointer. */
    answer("%d from %s to %s", result, before, jack_port_name(renamed));
}
COMMAND(port_set_name) { answer("%d", jack_port_set_name(port(word[1]), word[2])); }
COMMAND(set_alias) { answer("%d", jack_port_set_alias(port(word[1]), word[2])); }
COMMAND(unset_alias) { answer("%d", jack_port_unset_alias(port(word[1]), word[2])); }
COMMAND(aliases) {
    char first[321] = "-", second[321] = "-";
    char *const both[2] = {first, second};
    int count = jack_port_get_aliases(port(word[1]), both);
    answer("%d %s %s", count, first, second);
}
COMMAND(connect_ports) { answer("%d", jack_connect(client, word[1], word[2])); }
COMMAND(disconnect_ports) { answer("%d", jack_disconnect(client, word[1], word[2])); }
COMMAND(port_disconnect) { answer("%d", jack_port_disconnect(client, port(word[1]))); }
COMMAND(connected) { answer("%d", jack_port_connected(port(word[1]))); }
COMMAND(connected_to) { answer("%d", jack_port_connected_to(port(word[1]), word[2])); }
COMMAND(connections) { answer_names(jack_port_get_connections(port(word[1]))); }
COMMAND(all_connections) { answer_names(jack_port_get_all_connections(client, port(word[1]))); }
/* "-" stands for null. */
COMMAND(ports) {
    const char *name = strcmp(word[1], "-") ? word[1] : NULL, *kind = strcmp(word[2], "-") ? word[2] : NULL;
    answer_names(jack_get_ports(client, name, kind, flags(word[3])));
}
COMMAND(by_name) { answer("%s", jack_port_by_name(client, word[1]) ? "ok" : "(null)"); }
COMMAND(by_id) { answer("%s", port_of((jack_port_id_t)atoi(word[1]))); }
COMMAND(short_name) { answer("%s", jack_port_short_name(port(word[1]))); }
COMMAND(is_mine) { answer("%d", jack_port_is_mine(client, port(word[1]))); }
COMMAND(port_type) { answer("%s", jack_port_type(port(word[1]))); }
COMMAND(type_id) { answer("%u", jack_port_type_id(port(word[1]))); }
COMMAND(port_flags) { answer("0x%x", (unsigned)jack_port_flags(port(word[1]))); }
COMMAND(port_uuid) { answer("%llu", (unsigned long long)jack_port_uuid(port(word[1]))); }
COMMAND(set_buffer_size) { answer("%d", jack_set_buffer_size(client, (jack_nframes_t)atoi(word[1]))); }
COMMAND(buffer_size) { UNUSED; answer("%u", jack_get_buffer_size(client)); }
COMMAND(sample_rate) { UNUSED; answer("%u", jack_get_sample_rate(client)); }
COMMAND(type_buffer_size) { answer("%zu", jack_port_type_get_buffer_size(client, type(word[1]))); }
COMMAND(set_latency_range) {
    jack_latency_range_t range = {(jack_nframes_t)atoi(word[3]), (jack_nframes_t)atoi(word[4])};
    jack_port_set_latency_range(port(word[1]), mode(word[2]), &range);
    answer("done");
}
COMMAND(latency_range) {
    jack_latency_range_t range = {77, 77};
    jack_port_get_latency_range(port(word[1]), mode(word[2]), &range);
    answer("%u %u", range.min, range.max);
}
COMMAND(set_latency) {
    jack_port_set_latency(port(word[1]), (jack_nframes_t)atoi(word[2]));
    answer("done");
}
COMMAND(port_latency) { answer("%u", jack_port_get_latency(port(word[1]))); }
COMMAND(total_latency) { answer("%u", jack_port_get_total_latency(client, port(word[1]))); }
COMMAND(recompute) { UNUSED; answer("%d", jack_recompute_total_latencies(client)); }
/* Enough on any machine. */
COMMAND(await_cycle) {
    UNUSED;
    unsigned before = atomic_load(&cycles);
    for (int waits = 0; waits < 2000 && atomic_load(&cycles) == before; waits++)
        usleep(10000);
    answer("%s", atomic_load(&cycles) != before ? "ran" : "none");
}
COMMAND(cycles_go_on) {
    UNUSED;
    unsigned before = atomic_load(&cycles);
    usleep(200000);
    answer("%s", atomic_load(&cycles) != before ? "yes" : "no");
}
COMMAND(wrong) { UNUSED; answer("%u", atomic_load(&wrong_frames)); }
COMMAND(fail_cycle) { UNUSED; atomic_store(&process_result, 1); answer("done"); }
COMMAND(thread_of_process) {
    UNUSED;
    int same = pthread_equal(jack_client_thread_id(client), (pthread_t)atomic_load(&process_thread));
    answer("%s", same ? "the same" : "another");
}
COMMAND(is_realtime) { UNUSED; answer("%d", jack_is_realtime(client)); }
/* Where the kernel permits no real-time scheduling, there is nothing to compare with. */
COMMAND(priority) {
    UNUSED;
    struct sched_param parameter = {0};
    int policy = 0, said = jack_client_real_time_priority(client);
    pthread_getschedparam(jack_client_thread_id(client), &policy, &parameter);
    /* Without SCHED_RESET_ON_FORK, which the kernel reports in the same number. */
    int is_so = (policy & 0xff) != SCHED_FIFO || said == parameter.sched_priority;
    answer("%s", is_so ? "as the kernel says" : "wrong");
}
COMMAND(use_cycle_thread) {
    UNUSED;
    /* A client has one or the other. */
    jack_set_process_callback(client, NULL, NULL);
    answer("%d", jack_set_process_thread(client, cycle_thread, NULL));
}
static void *body(void *passed) {
    report_event("thread with %s", (const char *)passed);
    return passed;
}
COMMAND(create_thread) {
    jack_native_thread_t thread;
    int result = jack_client_create_thread(client, &thread, 0, 0, body, word[1]);
    void *passed = NULL;
    if (result == 0)
        pthread_join(thread, &passed);
    answer("%d %s", result, passed == word[1] ? word[1] : "wrong");
}
COMMAND(cpu_load) {
    UNUSED;
    float load = jack_cpu_load(client);
    answer("%s", load >= 0 && load <= 100 ? "in percent" : "wrong");
}
COMMAND(xrun_delayed) { UNUSED; answer("%s", jack_get_xrun_delayed_usecs(client) > 0 ? "some" : "none"); }
COMMAND(max_delayed) { UNUSED; answer("%.0f", jack_get_max_delayed_usecs(client)); }
COMMAND(reset_max) { UNUSED; jack_reset_max_delayed_usecs(client); answer("done"); }
COMMAND(frame_time) { UNUSED; answer("%u", jack_frame_time(client)); }
COMMAND(last_frame_time) { UNUSED; answer("%u", jack_last_frame_time(client)); }
COMMAND(microseconds) { UNUSED; answer("%llu", (unsigned long long)jack_get_time()); }

COMMAND(request_monitor) { answer("%d", jack_port_request_monitor(port(word[1]), atoi(word[2]))); }
COMMAND(request_by_name) { answer("%d", jack_port_request_monitor_by_name(client, word[1], atoi(word[2]))); }
COMMAND(ensure_monitor) { answer("%d", jack_port_ensure_monitor(port(word[1]), atoi(word[2]))); }
COMMAND(monitoring) { answer("%d", jack_port_monitoring_input(port(word[1]))); }

#include "thread_commands.h"
#include "second_commands.h"
#include "transport_commands.h"

static const struct {
    const char *name;
    void (*run)(char **words);
} COMMANDS[] = {
    TRANSPORT_COMMANDS,
    {"activate", activate}, {"deactivate", deactivate}, {"client_close", close_client},
    {"get_client_name", client_name}, {"client_get_uuid", own_uuid}, {"get_uuid_for_client_name", uuid_of},
    {"get_client_name_by_uuid", name_of}, {"uuid_and_back", uuid_and_back}, {"get_client_pid", client_pid},
    {"port_register", port_register}, {"port_unregister", port_unregister}, {"port_rename", port_rename},
    {"port_set_name", port_set_name}, {"port_set_alias", set_alias}, {"port_unset_alias", unset_alias},
    {"port_get_aliases", aliases}, {"connect", connect_ports}, {"disconnect", disconnect_ports},
    {"port_disconnect", port_disconnect}, {"port_connected", connected}, {"port_connected_to", connected_to},
    {"port_get_connections", connections}, {"port_get_all_connections", all_connections}, {"get_ports", ports},
    {"port_by_name", by_name}, {"port_by_id", by_id}, {"port_short_name", short_name}, {"port_is_mine", is_mine},
    {"port_type", port_type}, {"port_type_id", type_id}, {"port_flags", port_flags}, {"port_uuid", port_uuid},
    {"set_buffer_size", set_buffer_size}, {"get_buffer_size", buffer_size}, {"get_sample_rate", sample_rate},
    {"port_type_get_buffer_size", type_buffer_size}, {"port_set_latency_range", set_latency_range},
    {"port_get_latency_range", latency_range}, {"recompute_total_latencies", recompute},
    {"port_set_latency", set_latency},
    {"port_get_latency", port_latency}, {"port_get_total_latency", total_latency},
    {"await_cycle", await_cycle},
    {"cycles_go_on", cycles_go_on}, {"cycles_of_wrong_size", wrong}, {"fail_cycle", fail_cycle},
    {"client_thread_id", thread_of_process}, {"is_realtime", is_realtime}, {"client_real_time_priority", priority},
    {"set_process_thread", use_cycle_thread}, {"client_create_thread", create_thread}, {"cpu_load", cpu_load},
    SECOND_COMMANDS,
    {"get_xrun_delayed_usecs", xrun_delayed}, {"get_max_delayed_usecs", max_delayed},
    {"reset_max_delayed_usecs", reset_max}, {"port_request_monitor", request_monitor}, {"port_request_monitor_by_name", request_by_name},
    {"port_ensure_monitor", ensure_monitor}, {"port_monitoring_input", monitoring},
    {"frame_time", frame_time},
    {"last_frame_time", last_frame_time}, {"get_time", microseconds},
    THREAD_COMMANDS,
};

static void obey(char *text) {
    char *words[8] = {0}, *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(text, " \n", &rest); word && count < 7; word = strtok_r(NULL, " \n", &rest))
        words[count++] = word;
    /* Arguments that are missing are empty. */
    for (size_t i = count; i < 7; i++)
        words[i] = "";
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        if (strcmp(words[0], COMMANDS[i].name) == 0) {
            COMMANDS[i].run(words);
            return;
        }
    answer("unknown command %s", words[0]);
}

enum { WITH_REASON = 1, PLAIN = 2 };

static void set_callbacks(int shutdown_callbacks) {
    jack_set_process_callback(client, process, NULL);
    jack_set_thread_init_callback(client, on_thread, NULL);
    jack_set_buffer_size_callback(client, on_frames, NULL);
    jack_set_client_registration_callback(client, on_client, NULL);
    jack_set_port_registration_callback(client, on_port, NULL);
    jack_set_port_connect_callback(client, on_connection, NULL);
    jack_set_port_rename_callback(client, on_rename, NULL);
    jack_set_graph_order_callback(client, on_order, NULL);
    jack_set_xrun_callback(client, on_xrun, NULL);
    jack_set_latency_callback(client, on_latency, NULL);
    jack_set_freewheel_callback(client, on_freewheel, NULL);
    if (shutdown_callbacks & WITH_REASON)
        jack_on_info_shutdown(client, on_info_shutdown, NULL);
    if (shutdown_callbacks & PLAIN)
        jack_on_shutdown(client, on_shutdown, NULL);
}

int main(int count, char **arguments) {
    if (count < 3)
        return 2;
    int exact = count > 3 && strcmp(arguments[3], "exact") == 0;
    int plain = count > 3 && strcmp(arguments[3], "plain-shutdown") == 0;
    int both = count > 3 && strcmp(arguments[3], "both-shutdowns") == 0;
    jack_status_t status = 0;
    if (count > 3 && strcmp(arguments[3], "new") == 0)
        client = jack_client_new(arguments[2]);
    else
        client = jack_client_open(arguments[2], JackNoStartServer | (exact ? JackUseExactName : 0), &status);
    if (!client) {
        answer("refused 0x%x", (unsigned)status);
        return 1;
    }
    atomic_store(&notified_frames, jack_get_buffer_size(client));
    set_callbacks(both ? WITH_REASON | PLAIN : plain ? PLAIN : WITH_REASON);
    if (mkfifo(arguments[1], 0600) != 0)
        return 4;
    /* For writing too: the pipe does not end when a writer goes. */
    FILE *orders = fopen(arguments[1], "r+");
    if (!orders)
        return 5;
    answer("opened 0x%x %s", (unsigned)status, jack_get_client_name(client));
    char text[1024];
    while (fgets(text, sizeof text, orders))
        obey(text);
    return 0;
}
