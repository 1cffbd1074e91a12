/*
 * Part of actor.c: threads that the library makes for a program, times as a cycle sees them, names at their limits.
 */

/* The kernel's id of the calling thread, as in /proc. */
static int kernel_thread(void) { return (int)syscall(SYS_gettid); }

/* One thread of the actor's own at a time. */
static jack_native_thread_t own_thread;
static atomic_int own_thread_id, own_thread_may_end;

static void *waiting_thread(void *unused) {
    (void)unused;
    atomic_store(&own_thread_id, kernel_thread());
    /* A cancellation point. */
    while (!atomic_load(&own_thread_may_end))
        usleep(1000);
    return NULL;
}

/* "real-time" and a priority, or "ordinary"; answers with the kernel's number of the thread. */
COMMAND(start_thread) {
    int is_realtime = strcmp(word[1], "real-time") == 0;
    atomic_store(&own_thread_id, 0);
    atomic_store(&own_thread_may_end, 0);
    int result = jack_client_create_thread(client, &own_thread, atoi(word[2]), is_realtime, waiting_thread, NULL);
    while (result == 0 && !atomic_load(&own_thread_id))
        usleep(1000);
    answer("%d %d", result, atomic_load(&own_thread_id));
}
COMMAND(acquire) { answer("%d", jack_acquire_real_time_scheduling(own_thread, atoi(word[1]))); }
COMMAND(drop) { UNUSED; answer("%d", jack_drop_real_time_scheduling(own_thread)); }
COMMAND(stop_thread) {
    UNUSED;
    atomic_store(&own_thread_may_end, 1);
    answer("%d", jack_client_stop_thread(client, own_thread));
}
COMMAND(kill_thread) { UNUSED; answer("%d", jack_client_kill_thread(client, own_thread)); }

/* Whether the calling thread was made by the creator below. */
static _Thread_local int created;

struct made {
    void *(*body)(void *);
    void *argument;
};
static void *run_made(void *passed) {
    struct made made = *(struct made *)passed;
    free(passed);
    created = 1;
    return made.body(made.argument);
}

static int telling_creator(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    size_t stack_bytes = 0;
    pthread_attr_getstacksize(attributes, &stack_bytes);
    report_event("creates a thread with a stack of %zu bytes", stack_bytes);
    struct made *made = malloc(sizeof *made);
    *made = (struct made){body, argument};
    return pthread_create(thread, attributes, run_made, made);
}
COMMAND(set_creator) {
    jack_set_thread_creator(strcmp(word[1], "own") == 0 ? telling_creator : NULL);
    answer("done");
}
COMMAND(priorities) {
    UNUSED;
    answer("%d %d", jack_client_real_time_priority(client), jack_client_max_real_time_priority(client));
}
COMMAND(own_process_thread) { UNUSED; answer("%d", atomic_load(&process_thread_id)); }

/* Requested by a command, and done inside one cycle. */
static atomic_int measuring;
static struct {
    jack_nframes_t first_frame, last_frame_time, back, since_begin, since_later;
    jack_time_t start_us, next_us, start_again_us, next_again_us;
    float length_us;
    int result;
} measured;

static void measure(jack_nframes_t frames) {
    if (!atomic_load(&measuring))
        return;
    measured.result = jack_get_cycle_times(client, &measured.first_frame, &measured.start_us, &measured.next_us,
                                           &measured.length_us);
    measured.last_frame_time = jack_last_frame_time(client);
    measured.start_again_us = jack_frames_to_time(client, measured.first_frame);
    measured.next_again_us = jack_frames_to_time(client, measured.first_frame + frames);
    measured.back = jack_time_to_frames(client, measured.start_us);
    measured.since_begin = jack_frames_since_cycle_start(client);
    usleep(2000);
    measured.since_later = jack_frames_since_cycle_start(client);
    atomic_store(&measuring, 0);
}
COMMAND(measure_cycle) {
    UNUSED;
    atomic_store(&measuring, 1);
    for (int waits = 0; waits < 20000 && atomic_load(&measuring); waits++)
        usleep(1000);
    answer("%d %u %u %u %u %u %llu %llu %llu %llu %.0f", measured.result, measured.first_frame,
           measured.last_frame_time, measured.back, measured.since_begin, measured.since_later,
           (unsigned long long)measured.start_us, (unsigned long long)measured.next_us,
           (unsigned long long)measured.start_again_us, (unsigned long long)measured.next_again_us,
           measured.length_us);
}
COMMAND(frames_to_time) {
    answer("%llu", (unsigned long long)jack_frames_to_time(client, (jack_nframes_t)strtoul(word[1], NULL, 10)));
}
COMMAND(time_to_frames) { answer("%u", jack_time_to_frames(client, strtoull(word[1], NULL, 10))); }

static atomic_uint notified_rate_hz;
static int on_rate(jack_nframes_t rate_hz, void *unused) {
    (void)unused;
    atomic_store(&notified_rate_hz, rate_hz);
    return 0;
}
/* What the callback was passed before its setter returned. */
COMMAND(set_rate_callback) {
    UNUSED;
    atomic_store(&notified_rate_hz, 0);
    int result = jack_set_sample_rate_callback(client, on_rate, NULL);
    answer("%d %u", result, atomic_load(&notified_rate_hz));
}
COMMAND(set_shutdown_with_reason) {
    UNUSED;
    jack_on_info_shutdown(client, on_info_shutdown, NULL);
    answer("done");
}

/* The number that a port's uuid was made from, by way of text, and the uuid made from the number. */
COMMAND(port_uuid_number) {
    char text[JACK_UUID_STRING_SIZE];
    jack_uuid_t uuid = jack_port_uuid(port(word[1])), read = 0, copy = 0;
    jack_uuid_unparse(uuid, text);
    int result = jack_uuid_parse(text, &read);
    jack_uuid_copy(&copy, read);
    int same = jack_uuid_compare(uuid, copy) == 0 && !jack_uuid_empty(copy);
    uint32_t number = jack_uuid_to_index(uuid);
    answer("%d %s %u", result, same && jack_port_uuid_generate(number) == uuid ? "the same" : "another", number);
}
COMMAND(sizes) {
    UNUSED;
    answer("%d %d %d", jack_client_name_size(), jack_port_name_size(), jack_port_type_size());
}
COMMAND(recompute_one) { answer("%d", jack_recompute_total_latency(client, port(word[1]))); }

COMMAND(reserve) { answer("%d", jack_reserve_client_name(client, word[1], word[2])); }
COMMAND(has_session) { answer("%d", jack_client_has_session_callback(client, word[1])); }

#define THREAD_COMMANDS                                                                                               \
    {"start_thread", start_thread}, {"acquire_real_time_scheduling", acquire}, {"drop_real_time_scheduling", drop},   \
        {"client_stop_thread", stop_thread}, {"client_kill_thread", kill_thread},                                     \
        {"set_thread_creator", set_creator}, {"priorities", priorities},                                              \
        {"process_thread_id", own_process_thread}, {"measure_cycle", measure_cycle},                                   \
        {"frames_to_time", frames_to_time}, {"time_to_frames", time_to_frames},                                       \
        {"set_sample_rate_callback", set_rate_callback}, {"on_info_shutdown", set_shutdown_with_reason},              \
        {"port_uuid_number", port_uuid_number}, {"sizes", sizes}, {"recompute_total_latency", recompute_one}, \
        {"reserve_client_name", reserve}, {"client_has_session_callback", has_session}
