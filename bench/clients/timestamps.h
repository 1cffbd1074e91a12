/* What the programs of the benchmark share: timestamps, and the recording that the benchmark reads.
 *
 * A recording is a file of lanes, one per client, all of the same size. A lane is a header of 64 bytes followed by
 * `capacity` records; record n of a client is at n % capacity. Only the client itself writes its lane. All numbers
 * are in the machine's own byte order; timestamps are CLOCK_MONOTONIC in nanoseconds. */
#ifndef BENCH_TIMESTAMPS_H
#define BENCH_TIMESTAMPS_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

struct record {
    uint64_t entry_ns;
    uint64_t exit_ns;
    uint32_t frame; /* names the cycle: its first frame, or in a floor its number */
    uint32_t heard; /* bit i: input i began with the tone */
};

struct lane {
    _Atomic uint64_t count; /* records written so far */
    uint64_t capacity;
    uint8_t reserved[48];
    struct record records[];
};

_Static_assert(sizeof(struct record) == 24 && sizeof(struct lane) == 64, "the benchmark reads this layout");

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Maps one lane of the recording at `path`, which the benchmark has already given its size. Every page is made
 * present here, so that no cycle faults on one. NULL and errno on failure. */
static inline struct lane *map_lane(const char *path, size_t index, size_t capacity) {
    size_t lane_bytes = sizeof(struct lane) + capacity * sizeof(struct record);
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t begin = index * lane_bytes, skipped = begin % page_bytes;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    void *mapped = mmap(NULL, lane_bytes + skipped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file,
                        (off_t)(begin - skipped));
    close(file);
    if (mapped == MAP_FAILED)
        return NULL;
    struct lane *lane = (struct lane *)((char *)mapped + skipped);
    lane->capacity = capacity;
    return lane;
}

/* Writes one record; called from the lane's owner only, in its cycle. */
static inline void record_cycle(struct lane *lane, struct record record) {
    uint64_t count = atomic_load_explicit(&lane->count, memory_order_relaxed);
    lane->records[count % lane->capacity] = record;
    atomic_store_explicit(&lane->count, count + 1, memory_order_release);
}

/* Ends this process with the one that started it, whatever ended that. */
static inline void end_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1)
        _exit(1);
}

static inline void say_and_fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

#endif
