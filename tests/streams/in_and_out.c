/* A client that reads the frame clock all the time. SIGUSR1 makes it active, and inactive again; on SIGTERM it prints
 * what it saw: how often the clock went backwards, and by how many frames at most it differed from the time that passed;
 * its cycles, how many of them began before the end of the one before, how many began later although it was active, how
 * often the time of a cycle went backwards, and how often the transport jumped. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include "../idle/clock.h"

static jack_client_t *client;
static atomic_int ends;
static struct clock_check check;
/* Of the cycles; read while the client is inactive. */
static unsigned cycles, early, late, turned, jumps;
static int is_first;
static jack_nframes_t next;
static jack_time_t begun;
/* Where the transport stood or, if it rolled, what its frame was ahead of the cycle's. */
static int is_known, rolled;
static jack_nframes_t place;

static void *read_clock(void *unused) {
    (void)unused;
    check = begin_check(client);
    while (!ends) {
        check_clock(&check, client);
        usleep(100);
    }
    return NULL;
}

static void follow_transport(jack_nframes_t now) {
    jack_position_t position;
    const jack_transport_state_t state = jack_transport_query(client, &position);
    const int rolls = state == JackTransportRolling;
    const jack_nframes_t stands = rolled ? place + now : place;
    /* It starts where it stood, and stops where it came to. */
    jumps += is_known && position.frame != stands;
    is_known = 1, rolled = rolls;
    place = rolls ? position.frame - now : position.frame;
}

static int process(jack_nframes_t frames, void *unused) {
    (void)unused;
    jack_nframes_t now;
    jack_time_t at, following;
    float period;
    if (jack_get_cycle_times(client, &now, &at, &following, &period) || now != jack_last_frame_time(client))
        turned++;
    early += cycles > 0 && (int32_t)(now - next) < 0;
    late += !is_first && (int32_t)(now - next) > 0;
    turned += at < begun;
    follow_transport(now);
    cycles++, is_first = 0, next = now + frames, begun = at;
    return 0;
}

int main(void) {
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    sigaddset(&awaited, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &awaited, NULL);
    client = jack_client_open("in and out", JackNoStartServer, NULL);
    pthread_t reader;
    if (!client || jack_set_process_callback(client, process, NULL) || pthread_create(&reader, NULL, read_clock, NULL))
        return 1;
    puts("reads");
    int signal, is_active = 0;
    while (!sigwait(&awaited, &signal) && signal == SIGUSR1) {
        is_first = 1;
        if (is_active ? jack_deactivate(client) : jack_activate(client))
            return 1;
        is_active = !is_active;
    }
    if (is_active)
        jack_deactivate(client);
    ends = 1;
    pthread_join(reader, NULL);
    print_check(&check);
    printf("cycles %u, early %u, late %u, turned %u, jumps %u\n", cycles, early, late, turned, jumps);
    return jack_client_close(client);
}
