/* Clients that are late on purpose, each time in another way, and a thread that takes a CPU from others.
 *
 *   culprit client NAME [--from PORT] [--load PERCENT]   in -> out; always computes for PERCENT of a cycle
 *   culprit hog PRIORITY MILLISECONDS                    takes all CPUs at once under SCHED_FIFO for this long; ends
 *
 * Signals to a client, each for one cycle: SIGRTMIN+1 computes for 1.7 cycles, SIGRTMIN+2 sleeps for 1.7 cycles,
 * SIGRTMIN+3 computes for 0.8 of a cycle. Prints "ready" once it is active and connected. */
#define _GNU_SOURCE
#include <jack/jack.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static jack_client_t *client;
static jack_port_t *input, *output;
static atomic_int wanted;
static double load;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* CPU time, not elapsed time: a thread that is preempted meanwhile still has to use it. */
static void compute(double seconds) {
    double end = used() + seconds;
    while (used() < end)
        ;
}

static void on_signal(int signal) { atomic_store(&wanted, signal - SIGRTMIN); }

static int process(jack_nframes_t frames, void *unused) {
    double period = (double)frames / jack_get_sample_rate(client);
    (void)unused;
    memcpy(jack_port_get_buffer(output, frames), jack_port_get_buffer(input, frames), frames * sizeof(float));
    compute(load * period);
    switch (atomic_exchange(&wanted, 0)) {
    case 1:
        compute(1.7 * period);
        break;
    case 2: {
        struct timespec time = {(time_t)(1.7 * period), (long)(1.7 * period * 1e9) % 1000000000};
        nanosleep(&time, NULL);
        break;
    }
    case 3:
        compute(0.8 * period);
        break;
    }
    return 0;
}

static pthread_barrier_t together;
static double hog_seconds;

static void *take_cpu(void *cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((int)(long)cpu, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    pthread_barrier_wait(&together);
    double end = now() + hog_seconds;
    while (now() < end)
        ;
    return NULL;
}

static int hog(int priority) {
    struct sched_param parameter = {.sched_priority = priority};
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[64];
    if (count > 64 || sched_setscheduler(0, SCHED_FIFO, &parameter) != 0) {
        perror("hog");
        return 1;
    }
    pthread_barrier_init(&together, NULL, (unsigned)count);
    for (long cpu = 0; cpu < count; cpu++)
        pthread_create(&threads[cpu], NULL, take_cpu, (void *)cpu);
    for (long cpu = 0; cpu < count; cpu++)
        pthread_join(threads[cpu], NULL);
    return 0;
}

int main(int argc, char **argv) {
    const char *from = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc == 4 && strcmp(argv[1], "hog") == 0) {
        hog_seconds = atof(argv[3]) / 1000;
        return hog(atoi(argv[2]));
    }
    if (argc < 3)
        return 2;
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--from") == 0)
            from = argv[i + 1];
        else if (strcmp(argv[i], "--load") == 0)
            load = atof(argv[i + 1]) / 100;
    }
    for (int kind = 1; kind <= 3; kind++)
        signal(SIGRTMIN + kind, on_signal);
    client = jack_client_open(argv[2], JackNoStartServer, NULL);
    if (!client)
        return 1;
    input = jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    output = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    jack_set_process_callback(client, process, NULL);
    if (jack_activate(client) != 0 || (from && jack_connect(client, from, jack_port_name(input)) != 0))
        return 1;
    printf("ready\n");
    fflush(stdout);
    for (;;)
        pause();
}
