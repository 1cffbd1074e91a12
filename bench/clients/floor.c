/* What the machine allows: the same chain or fan of processes with nothing between them but futexes.
 *
 *   floor SHAPE NODES PLACEMENT PRIORITY FRAMES PERIOD_NS RECORDING CAPACITY
 *
 * SHAPE: chain   the timer wakes the first process, each process wakes the next
 *        fan     the timer wakes every process, each by a futex of its own
 *        group   the timer wakes every process, all by one futex
 * PLACEMENT: one      everything on the first CPU that this program may use
 *            across   processes in turn on all the CPUs, the timer on the last
 *            kernel   no process is pinned
 * PRIORITY: of SCHED_FIFO, the timer one above it; 0 for SCHED_OTHER.
 *
 * Prints "pids TIMER NODE…", then "policy POLICY PRIORITY" of a node, and runs until the end of its input. Lane 0 is
 * the timer's own (from its wake-up to its last FUTEX_WAKE), lane n + 1 is node n's. */
#define _GNU_SOURCE
#include "timestamps.h"
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NODES_MAX 256

/* One word per node, each on a cache line of its own: the number of the cycle that the node is to run. */
struct word {
    _Alignas(64) _Atomic uint32_t cycle;
};

static struct word *words;
static int node_count, priority;
/* A cycle is recorded under the frame that it would begin with in the measured servers. */
static uint32_t quantum_frames;
static enum { CHAIN, FAN, GROUP } shape;
static enum { ONE, ACROSS, KERNEL } placement;
static cpu_set_t allowed;
static atomic_int ending;

static void wake(struct word *word, uint32_t cycle, int sleepers) {
    atomic_store_explicit(&word->cycle, cycle, memory_order_release);
    syscall(SYS_futex, &word->cycle, FUTEX_WAKE, sleepers, NULL, NULL, 0);
}

static uint32_t wait_for_other_than(struct word *word, uint32_t last) {
    uint32_t cycle;
    while ((cycle = atomic_load_explicit(&word->cycle, memory_order_acquire)) == last)
        syscall(SYS_futex, &word->cycle, FUTEX_WAIT, last, NULL, NULL, 0);
    return cycle;
}

static void pin(int index) {
    if (placement == KERNEL)
        return;
    int wanted = placement == ONE ? 0 : index % CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || wanted-- > 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static void schedule(int wanted) {
    struct sched_param parameters = {.sched_priority = wanted};
    if (wanted > 0 && sched_setscheduler(0, SCHED_FIFO, &parameters) != 0)
        fprintf(stderr, "SCHED_FIFO %d refused: %s\n", wanted, strerror(errno));
}

static void run_node(int index, struct lane *lane) {
    pin(index);
    schedule(priority);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    struct word *word = &words[shape == GROUP ? 0 : index];
    uint32_t cycle = 0;
    for (;;) {
        cycle = wait_for_other_than(word, cycle);
        struct record record = {.entry_ns = now_ns(), .frame = cycle * quantum_frames};
        record.exit_ns = now_ns();
        record_cycle(lane, record);
        if (shape == CHAIN && index + 1 < node_count)
            wake(&words[index + 1], cycle, 1);
    }
}

static void run_timer(uint64_t period_ns, struct lane *lane) {
    uint64_t next_ns = now_ns() + 10 * period_ns;
    for (uint32_t cycle = 1; !ending; cycle++, next_ns += period_ns) {
        struct timespec next = {.tv_sec = (time_t)(next_ns / 1000000000u), .tv_nsec = (long)(next_ns % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        struct record record = {.entry_ns = now_ns(), .frame = cycle * quantum_frames};
        int last = shape == FAN ? node_count : 1;
        for (int i = 0; i < last; i++)
            wake(&words[i], cycle, shape == GROUP ? INT_MAX : 1);
        record.exit_ns = now_ns();
        record_cycle(lane, record);
    }
}

static void *watch_input(void *argument) {
    (void)argument;
    char ignored[64];
    while (read(0, ignored, sizeof ignored) > 0)
        ;
    ending = 1;
    return NULL;
}

int main(int argc, char **argv) {
    end_with_parent();
    if (argc != 9)
        say_and_fail("usage: floor chain|fan|group NODES one|across|kernel PRIORITY FRAMES PERIOD_NS RECORDING CAPACITY");
    shape = strcmp(argv[1], "chain") == 0 ? CHAIN : strcmp(argv[1], "fan") == 0 ? FAN : GROUP;
    node_count = atoi(argv[2]);
    placement = strcmp(argv[3], "one") == 0 ? ONE : strcmp(argv[3], "across") == 0 ? ACROSS : KERNEL;
    priority = atoi(argv[4]);
    quantum_frames = (uint32_t)atol(argv[5]);
    if (node_count < 1 || node_count > NODES_MAX)
        say_and_fail("too few or too many nodes");
    sched_getaffinity(0, sizeof allowed, &allowed);
    words = mmap(NULL, NODES_MAX * sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t capacity = (size_t)atol(argv[8]);

    static pid_t pids[NODES_MAX];
    for (int i = 0; i < node_count; i++) {
        if ((pids[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            struct lane *lane = map_lane(argv[7], (size_t)i + 1, capacity);
            if (!lane)
                say_and_fail("cannot map the recording");
            run_node(i, lane);
        }
    }
    struct lane *lane = map_lane(argv[7], 0, capacity);
    if (!lane)
        say_and_fail("cannot map the recording");
    pthread_t watcher;
    pthread_create(&watcher, NULL, watch_input, NULL);
    usleep(200000); /* the nodes are asleep by then; a node that is not loses cycles, which the analysis leaves out */
    printf("pids %d", (int)getpid());
    for (int i = 0; i < node_count; i++)
        printf(" %d", (int)pids[i]);
    printf("\n");
    fflush(stdout);

    pin(placement == ACROSS ? CPU_COUNT(&allowed) - 1 : 0);
    schedule(priority > 0 ? priority + 1 : 0);
    run_timer(strtoull(argv[6], NULL, 10), lane);
    for (int i = 0; i < node_count; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    return 0;
}
