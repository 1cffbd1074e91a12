/*
 * Part of actor.c: a second client in the process, and a client that is closed within its cycle.
 */

/* Whether they were made by the program's own creator: the process thread, and the second client's threads. */
static atomic_int process_created, second_threads, second_threads_created;
/* Whether the process callback is to close the client, and the result of that. */
static atomic_int closes_in_cycle, close_result = 1;
/* A second client of this process, and what was received through it. */
static jack_client_t *second;
static jack_port_t *held_port;
static const char *held_name, *held_listed;

/* In the process callback. */
static void note_creator_and_close(void) {
    atomic_store(&process_created, created);
    if (atomic_load(&closes_in_cycle)) {
        atomic_store(&close_result, jack_client_close(client));
        atomic_store(&closes_in_cycle, 0);
    }
}
COMMAND(process_thread_by) { UNUSED; answer("%s", atomic_load(&process_created) ? "the program" : "the library"); }
static void on_second_thread(void *unused) {
    (void)unused;
    atomic_fetch_add(&second_threads_created, created);
    atomic_fetch_add(&second_threads, 1);
}
COMMAND(second_open) {
    second = jack_client_open(word[1], JackNoStartServer, NULL);
    answer("%s", second ? "ok" : "(null)");
}
COMMAND(second_close) { UNUSED; answer("%d", jack_client_close(second)); }
/* Without a process callback only its notification thread begins. */
COMMAND(second_activate) {
    UNUSED;
    jack_set_thread_init_callback(second, on_second_thread, NULL);
    answer("%d", jack_activate(second));
}
COMMAND(second_threads_by) {
    UNUSED;
    for (int waits = 0; waits < 2000 && atomic_load(&second_threads) == 0; waits++)
        usleep(10000);
    int all = atomic_load(&second_threads_created) == atomic_load(&second_threads);
    answer("%s", all ? "the program" : "the library");
}
COMMAND(second_hold) {
    held_port = jack_port_by_name(second, word[1]);
    held_name = jack_port_name(held_port);
    const char **names = jack_get_ports(second, word[1], NULL, 0);
    held_listed = names ? names[0] : NULL;
    jack_free(names);
    answer("%s", held_port && held_name && held_listed ? "ok" : "(null)");
}
COMMAND(held) { UNUSED; answer("%s %s %s", held_name, held_listed, jack_port_name(held_port)); }
COMMAND(close_in_cycle) {
    UNUSED;
    atomic_store(&closes_in_cycle, 1);
    for (int waits = 0; waits < 2000 && atomic_load(&closes_in_cycle); waits++)
        usleep(10000);
    answer("%d", atomic_load(&close_result));
}

#define SECOND_COMMANDS                                                                                               \
    {"process_thread_by", process_thread_by}, {"second_open", second_open}, {"second_close", second_close},           \
        {"second_activate", second_activate}, {"second_threads_by", second_threads_by},                               \
        {"second_hold", second_hold}, {"held", held}, {"close_in_cycle", close_in_cycle}
