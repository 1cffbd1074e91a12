/*
 * `running CASE`: what a program does while one of its callbacks runs. Prints what is wrong and ends with 1, or ends
 * with 0.
 */
#include <errno.h>
#include <jack/jack.h>
#include <jack/transport.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 60 };

static atomic_int failures;
static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    atomic_fetch_add(&failures, 1);
}
#define CHECK(condition) check(condition, __LINE__, #condition)

/* Enough on any machine. */
static int await(sem_t *semaphore) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    int result;
    while ((result = sem_timedwait(semaphore, &end)) != 0 && errno == EINTR)
        ;
    return result == 0;
}

/* The client whose callbacks these are, and another one that triggers them. */
static jack_client_t *client, *other;
/* A callback has begun, and may return. */
static sem_t begun, may_return;
/* The result, or what was notified. */
static sem_t notified, notified_renamed;

static void register_port(const char *name) {
    CHECK(jack_port_register(other, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0) != NULL);
}
static int is_named(jack_port_id_t id, const char *name) {
    jack_port_t *port = jack_port_by_id(client, id);
    return port && strcmp(jack_port_short_name(port), name) == 0;
}
static int process_nothing(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    return 0;
}

/* Stays in the callback for the port "first", and reports the port "second". */
static void on_port(jack_port_id_t id, int registered, void *unused) {
    (void)registered, (void)unused;
    if (is_named(id, "first")) {
        sem_post(&begun);
        CHECK(await(&may_return));
    } else if (is_named(id, "second")) {
        sem_post(&notified);
    }
}
static void on_rename(jack_port_id_t id, const char *before, const char *now, void *unused) {
    (void)id, (void)before, (void)now, (void)unused;
    sem_post(&notified_renamed);
}

/* In the callback when this returns. */
static void begin_callback(void) {
    jack_set_port_registration_callback(client, on_port, NULL);
    CHECK(jack_activate(client) == 0);
    register_port("first");
    CHECK(await(&begun));
}

static void reactivate(void) {
    begin_callback();
    CHECK(jack_deactivate(client) == 0);
    CHECK(jack_activate(client) == 0);
    sem_post(&may_return);
    register_port("second");
    CHECK(await(&notified));
}

/* Events come in order: those before the renaming have been delivered. */
static void rename_and_await(const char *name) {
    CHECK(jack_port_rename(other, jack_port_by_name(other, "other:renamed"), name) == 0);
    CHECK(await(&notified_renamed));
    CHECK(jack_port_rename(other, jack_port_by_name(other, "other:moved"), "renamed") == 0);
    CHECK(await(&notified_renamed));
}

static void unset(void) {
    jack_set_port_rename_callback(client, on_rename, NULL);
    register_port("renamed");
    begin_callback();
    CHECK(jack_deactivate(client) == 0);
    CHECK(jack_set_port_registration_callback(client, NULL, NULL) == 0);
    sem_post(&may_return);
    CHECK(jack_activate(client) == 0);
    rename_and_await("moved");
    CHECK(jack_deactivate(client) == 0);
    CHECK(jack_activate(client) == 0);
    register_port("second");
    rename_and_await("moved");
    CHECK(sem_trywait(&notified) != 0);
}

static void on_port_replacing(jack_port_id_t id, int registered, void *unused) {
    (void)registered, (void)unused;
    if (!is_named(id, "first"))
        return;
    CHECK(jack_deactivate(client) == 0);
    CHECK(jack_set_port_registration_callback(client, on_port, NULL) == 0);
    CHECK(jack_activate(client) == 0);
    sem_post(&begun);
}
static void replace(void) {
    jack_set_port_registration_callback(client, on_port_replacing, NULL);
    CHECK(jack_activate(client) == 0);
    register_port("first");
    CHECK(await(&begun));
    register_port("second");
    CHECK(await(&notified));
}

/* Does not return from the process callback until it may, once. */
static atomic_int stays, in_process;
static int process_staying(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    CHECK(atomic_fetch_add(&in_process, 1) == 0);
    if (atomic_exchange(&stays, 0)) {
        sem_post(&begun);
        CHECK(await(&may_return));
    }
    atomic_fetch_sub(&in_process, 1);
    sem_post(&notified);
    return 0;
}
static void stay(void) {
    jack_set_process_callback(client, process_staying, NULL);
    atomic_store(&stays, 1);
    CHECK(jack_activate(client) == 0);
    CHECK(await(&begun));
    CHECK(jack_deactivate(client) == 0);
    CHECK(jack_activate(client) != 0);
    sem_post(&may_return);
    CHECK(await(&notified));
    /* The thread needs a moment to end. */
    int result = -1;
    for (int tries = 0; tries < PATIENCE_S * 100 && (result = jack_activate(client)) != 0; tries++)
        usleep(10000);
    CHECK(result == 0);
    CHECK(await(&notified));
}

/* What the process thread does before its first cycle, while the program activates. */
static int on_sync(jack_transport_state_t state, jack_position_t *position, void *unused) {
    (void)state, (void)position, (void)unused;
    sem_post(&notified);
    return 1;
}
static void on_timebase(jack_transport_state_t state, jack_nframes_t frames, jack_position_t *position, int is_new,
                        void *unused) {
    (void)state, (void)frames, (void)position, (void)unused;
    if (is_new)
        sem_post(&notified_renamed);
}
static int on_frames_setting(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    CHECK(jack_set_sync_callback(client, on_sync, NULL) == 0);
    CHECK(jack_set_timebase_callback(client, 0, on_timebase, NULL) == 0);
    return 0;
}
static void set_transport(void) {
    jack_set_buffer_size_callback(client, on_frames_setting, NULL);
    CHECK(jack_activate(client) == 0);
    jack_transport_start(other);
    CHECK(await(&notified));
    CHECK(await(&notified_renamed));
}
static int on_frames_deactivating(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    CHECK(jack_deactivate(client) != 0);
    CHECK(jack_activate(client) != 0);
    return 0;
}
static void deactivate(void) {
    jack_set_buffer_size_callback(client, on_frames_deactivating, NULL);
    jack_set_process_callback(client, process_staying, NULL);
    CHECK(jack_activate(client) == 0);
    CHECK(await(&notified));
}
static int on_frames_closing(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    CHECK(jack_client_close(client) == 0);
    sem_post(&begun);
    return 0;
}
static void on_client(const char *name, int registered, void *unused) {
    (void)unused;
    if (strcmp(name, "client") == 0 && !registered)
        sem_post(&notified);
}
static void close_it(void) {
    jack_set_buffer_size_callback(client, on_frames_closing, NULL);
    /* Whether it is done before or after the client is closed. */
    jack_activate(client);
    CHECK(sem_trywait(&begun) == 0);
    CHECK(await(&notified));
}

/* The signals of the thread that calls: SIGUSR1 is blocked by the one that opened the client. */
static atomic_int blocks_term[2], blocks_usr1[2];
static void note_signals(int place) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    atomic_store(&blocks_term[place], sigismember(&blocked, SIGTERM));
    atomic_store(&blocks_usr1[place], sigismember(&blocked, SIGUSR1));
}
static int process_noting(jack_nframes_t frames, void *unused) {
    (void)frames, (void)unused;
    note_signals(0);
    sem_post(&begun);
    return 0;
}
static void on_port_noting(jack_port_id_t id, int registered, void *unused) {
    (void)id, (void)registered, (void)unused;
    note_signals(1);
    sem_post(&notified);
}
static void signals(void) {
    jack_set_process_callback(client, process_noting, NULL);
    jack_set_port_registration_callback(client, on_port_noting, NULL);
    CHECK(jack_activate(client) == 0);
    register_port("first");
    CHECK(await(&begun));
    CHECK(await(&notified));
    CHECK(atomic_load(&blocks_term[0]) && atomic_load(&blocks_usr1[0]));
    CHECK(!atomic_load(&blocks_term[1]) && atomic_load(&blocks_usr1[1]));
}

static const struct {
    const char *name;
    void (*run)(void);
} CASES[] = {
    {"reactivate", reactivate}, {"unset", unset},           {"replace", replace}, {"stay", stay},
    {"set-transport", set_transport}, {"deactivate", deactivate}, {"close", close_it},  {"signals", signals},
};

int main(int count, char **arguments) {
    sem_t *const all[] = {&begun, &may_return, &notified, &notified_renamed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sem_init(all[i], 0, 0);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    client = jack_client_open("client", JackNoStartServer, NULL);
    other = jack_client_open("other", JackNoStartServer, NULL);
    if (count != 2 || !client || !other)
        return 2;
    jack_set_process_callback(client, process_nothing, NULL);
    /* Other clients are not notified of an inactive client's ports. */
    jack_set_client_registration_callback(other, on_client, NULL);
    CHECK(jack_activate(other) == 0);
    int found = 0;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (strcmp(arguments[1], CASES[i].name) == 0) {
            found = 1;
            CASES[i].run();
        }
    CHECK(found);
    return atomic_load(&failures) != 0;
}
