/* Load on the machine next to a graph.
 *
 *   load fifo PRIORITY    a tenth of a CPU for a real-time thread above the graph: half a millisecond of every five
 *   load interrupts 0     on every CPU a timer's interrupt each 50 µs, and the thread that it wakes
 *   load memory 0         on every CPU, with what time is left, a thread that goes through more memory than the CPU's own
 *                         caches hold
 *
 * Prints "loads" and runs until the end of its input. */
#define _GNU_SOURCE
#include "timestamps.h"
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#define BUSY_NS 500000u
#define EACH_NS 5000000u
#define INTERRUPTS_NS 50000u
#define MEMORY_BYTES (8u << 20)
#define LINE_BYTES 64
#define LOWEST 19

static void sleep_until(uint64_t until_ns) {
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u), .tv_nsec = (long)(until_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void *be_busy(void *argument) {
    struct sched_param parameters = {.sched_priority = *(int *)argument};
    if (parameters.sched_priority > 0 && sched_setscheduler(0, SCHED_FIFO, &parameters) != 0)
        fprintf(stderr, "SCHED_FIFO %d refused: %s\n", parameters.sched_priority, strerror(errno));
    for (uint64_t next_ns = now_ns();; next_ns += EACH_NS) {
        sleep_until(next_ns);
        uint64_t begun_ns = now_ns();
        while (now_ns() - begun_ns < BUSY_NS)
            ;
    }
    return NULL;
}

static void stay_on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void *be_interrupted(void *argument) {
    stay_on((int)(intptr_t)argument);
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;)
        sleep_until(now_ns() + INTERRUPTS_NS);
    return NULL;
}

static void *take_caches(void *argument) {
    stay_on((int)(intptr_t)argument);
    /* Of the thread, on Linux. */
    if (setpriority(PRIO_PROCESS, 0, LOWEST) != 0)
        fprintf(stderr, "lowest priority refused: %s\n", strerror(errno));
    volatile char *memory = calloc(MEMORY_BYTES, 1);
    if (!memory)
        say_and_fail("no memory");
    for (;;)
        for (size_t at = 0; at < MEMORY_BYTES; at += LINE_BYTES)
            memory[at]++;
    return NULL;
}

static void start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) != 0)
        say_and_fail("no thread");
}

int main(int argc, char **argv) {
    static int priority;
    end_with_parent();
    if (argc != 3)
        say_and_fail("usage: load fifo|interrupts|memory PRIORITY");
    priority = atoi(argv[2]);
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    void *(*on_each)(void *) = strcmp(argv[1], "memory") == 0       ? take_caches
                               : strcmp(argv[1], "interrupts") == 0 ? be_interrupted
                                                                    : NULL;
    if (strcmp(argv[1], "fifo") == 0)
        start(be_busy, &priority);
    else if (!on_each)
        say_and_fail("fifo, interrupts, or memory");
    else
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &allowed))
                start(on_each, (void *)(intptr_t)cpu);
    puts("loads");
    fflush(stdout);
    char ignored[64];
    while (read(0, ignored, sizeof ignored) > 0)
        ;
    return 0;
}
