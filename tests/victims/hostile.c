/* A client that turns system calls against what it was given: its descriptors, its shared memory, and nothing else.
 *
 *   hostile NAME CALL [--to PORT | --with MEMORY]
 *
 * It has an output, which is silent and connected with PORT, and prints "ready" once it is active. At each SIGUSR1 it makes
 * the call, again and again for two seconds where that makes sense, and prints "done". It keeps every page that it ever had
 * mapped, and that of the segment MEMORY, by its path in /proc. Words are the aligned 32-bit words of its shared memory,
 * writable or not:
 *
 *   requeue    moves all sleepers of every word to a word of its own
 *   poison     sleeps on the words that change with FUTEX_WAIT_REQUEUE_PI, where a wake-up stops with an error
 *   queue      sleeps on the words that change, 128 times in each of its threads
 *   storm      wakes all sleepers of the words that change
 *   discard    gives the memory back to the kernel: MADV_REMOVE, MADV_DONTNEED, MADV_PAGEOUT, holes made by fallocate; prints
 *              "kept" or "discarded", whether the kernel took any
 *   merge      has the kernel merge the pages of each segment into a large one, and split that again; prints "stayed" or
 *              "merged", whether the kernel did it with any
 *   unprotect  asks for write access to what it may only read; prints "written" if it gets it
 *   linger     sends the server TCP sockets whose close lasts an hour
 *   fuse       sends the server files of a file system that answers nothing
 *   splice     writes into the descriptors of its segments: splice, sendfile, pwrite, a larger size, a new mapping; prints
 *              "written" if any of it is done
 *   remap      moves its mappings to other places and makes them longer, and asks for write access there; prints "written"
 *              if it gets it
 *   LIE        one of hostile_lies.h: the same untruth about itself in every cycle, on its own page
 *   fork       leaves a child behind that keeps everything, and exits without closing its client */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jack/jack.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { RANGES = 512, PAGE = 4096, MOST_WORDS = 256, CALL_S = 2, THREADS = 32, ENTRIES = 128 };

static jack_port_t *output;
static atomic_int asked, quit;
static uint32_t own_word;

struct range {
    char *begin;
    size_t bytes;
    int is_writable;
} ranges[RANGES];
static int range_count;

static uint32_t *changing[MOST_WORDS];
static int changing_count;

static void say(const char *line) {
    printf("%s\n", line);
    fflush(stdout);
}

static int is_segment(int descriptor) {
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals > 0 && (seals & F_SEAL_SHRINK) != 0;
}

/* In place of the C library's, for libjack as well: the descriptors of segments stay open. */
int close(int descriptor) { return is_segment(descriptor) ? 0 : (int)syscall(SYS_close, descriptor); }

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long futex(uint32_t *word, int operation, uint32_t value, unsigned long more, uint32_t *other, uint32_t last) {
    return syscall(SYS_futex, word, operation, value, more, other, last);
}

/* Maps all shared memory of the server a second time, so that it stays when the library gives it up. */
static void keep_shared_memory(void) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    range_count = 0;
    while (maps && fgets(line, sizeof line, maps) && range_count < RANGES / 2) {
        unsigned long begin, end;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || rights[3] != 's' || !strstr(line, "memfd:consort"))
            continue;
        ranges[range_count++] = (struct range){(char *)begin, end - begin, rights[1] == 'w'};
    }
    if (maps)
        fclose(maps);
    for (int i = 0; i < range_count; i++) {
        void *kept = mremap(ranges[i].begin, 0, ranges[i].bytes, MREMAP_MAYMOVE);
        if (kept != MAP_FAILED)
            ranges[i].begin = kept;
    }
}

/* Finds the words on which somebody may sleep: those in the first page of a mapping that change within some cycles, and the
 * first words of pages that others write to. */
static void find_changing_words(void) {
    static uint32_t before[RANGES][PAGE / 4];
    changing_count = 0;
    for (int i = 0; i < range_count; i++)
        memcpy(before[i], ranges[i].begin, PAGE);
    usleep(100000);
    for (int i = 0; i < range_count; i++)
        for (int word = 0; word < PAGE / 4 && changing_count < MOST_WORDS; word++)
            if (*(volatile uint32_t *)(ranges[i].begin + word * 4) != before[i][word])
                changing[changing_count++] = (uint32_t *)(ranges[i].begin + word * 4);
}

static void requeue(void) {
    for (int i = 0; i < range_count; i++)
        for (size_t at = 0; at < ranges[i].bytes && at < PAGE; at += 4)
            futex((uint32_t *)(ranges[i].begin + at), FUTEX_REQUEUE, 0, INT_MAX, &own_word, 0);
}

static double end_s;

/* A waker finds the sleepers of the highest priority first. Every JACK program may take this one. */
static void rise(void) {
    struct sched_param priority = {.sched_priority = 9};
    sched_setscheduler(0, SCHED_FIFO, &priority);
}

static void *poison_words(void *first) {
    rise();
    while ((int)(intptr_t)first < changing_count && now_s() < end_s)
        for (int i = (int)(intptr_t)first; i < changing_count && now_s() < end_s; i += THREADS) {
            struct timespec until;
            uint32_t lock = 0;
            clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_nsec += 200000000;
            if (until.tv_nsec >= 1000000000)
                until.tv_sec++, until.tv_nsec -= 1000000000;
            futex(changing[i], FUTEX_WAIT_REQUEUE_PI, *(volatile uint32_t *)changing[i], (unsigned long)&until, &lock, 0);
            /* The word may have changed. Without a pause the threads would be an attack on the CPU. */
            usleep(100);
        }
    return NULL;
}

struct waiter {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static void *queue_on_words(void *first) {
    struct waiter waiters[ENTRIES];
    rise();
    while (now_s() < end_s && changing_count > 0) {
        struct timespec until;
        for (int i = 0; i < ENTRIES; i++) {
            uint32_t *word = changing[((int)(intptr_t)first + i) % changing_count];
            waiters[i] = (struct waiter){*(volatile uint32_t *)word, (uint64_t)(uintptr_t)word, 2, 0};
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        syscall(449, waiters, ENTRIES, 0, &until, CLOCK_MONOTONIC);
        usleep(100);
    }
    return NULL;
}

static void on_threads(void *(*body)(void *)) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, body, (void *)i) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void poison(void) { on_threads(poison_words); }

static void queue(void) { on_threads(queue_on_words); }

static void storm(void) {
    for (int i = 0; i < changing_count; i++)
        futex(changing[i], FUTEX_WAKE, INT_MAX, 0, NULL, 0);
}

static void discard(void) {
    int has_discarded = 0;
    for (int i = 0; i < range_count; i++) {
        has_discarded |= madvise(ranges[i].begin, ranges[i].bytes, MADV_REMOVE) == 0;
        madvise(ranges[i].begin, ranges[i].bytes, MADV_DONTNEED);
        madvise(ranges[i].begin, ranges[i].bytes, MADV_PAGEOUT);
    }
    for (int descriptor = 3; descriptor < 256; descriptor++)
        if (is_segment(descriptor))
            has_discarded |= fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) == 0;
    static int is_told;
    if (!is_told)
        say(has_discarded ? "discarded" : "kept");
    is_told = 1;
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static void merge(void) {
    static const size_t large = 2 << 20;
    int has_merged = 0;
    char *space = mmap(NULL, 2 * large, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED)
        abort();
    char *aligned = (char *)(((uintptr_t)space + large - 1) / large * large);
    for (int i = 0; i < range_count; i++) {
        char *mapped = mremap(ranges[i].begin, 0, large, MREMAP_MAYMOVE | MREMAP_FIXED, aligned);
        if (mapped == MAP_FAILED)
            continue;
        /* The kernel merges what the page table of this process has. */
        for (size_t at = 0; at < ranges[i].bytes && at < large; at += PAGE)
            (void)*(volatile char *)(mapped + at);
        has_merged |= madvise(mapped, large, MADV_COLLAPSE) == 0;
        madvise(mapped, 2 * PAGE, MADV_PAGEOUT);
    }
    munmap(space, 2 * large);
    static int is_told;
    if (!is_told)
        say(has_merged ? "merged" : "stayed");
    is_told = 1;
}

static void unprotect(void) {
    for (int i = 0; i < range_count; i++)
        if (!ranges[i].is_writable && mprotect(ranges[i].begin, ranges[i].bytes, PROT_READ | PROT_WRITE) == 0)
            say("written");
}

static void splice_into_segments(void) {
    int ends[2], zeros = open("/dev/zero", O_RDONLY), segments = 0;
    char bytes[64] = {0};
    if (pipe(ends) != 0 || write(ends[1], bytes, sizeof bytes) < 0)
        abort();
    for (int descriptor = 3; descriptor < 256; descriptor++) {
        loff_t at = 0;
        struct stat what;
        if (!is_segment(descriptor) || fstat(descriptor, &what) != 0)
            continue;
        segments++;
        int is_written = splice(ends[0], NULL, descriptor, &at, sizeof bytes, SPLICE_F_NONBLOCK) > 0;
        is_written |= pwrite(descriptor, bytes, sizeof bytes, 0) > 0;
        is_written |= lseek(descriptor, 0, SEEK_SET) == 0 && sendfile(descriptor, zeros, NULL, sizeof bytes) > 0;
        is_written |= ftruncate(descriptor, what.st_size * 2) == 0 || ftruncate(descriptor, 0) == 0;
        is_written |= mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) != MAP_FAILED;
        if (is_written)
            say("written");
    }
    if (segments == 0)
        abort();
}

static void remap(void) {
    for (int i = 0; i < range_count; i++) {
        char *moved = mremap(ranges[i].begin, 0, ranges[i].bytes * 2, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED)
            continue;
        if (!ranges[i].is_writable && mprotect(moved, ranges[i].bytes * 2, PROT_READ | PROT_WRITE) == 0)
            say("written");
        munmap(moved, ranges[i].bytes * 2);
    }
}

struct parcel {
    int socket, descriptor, is_kept;
};

/* Closes its own descriptor at once, so that the server has the last one, unless every close is slow. A thread of its own:
 * if the server was faster, the slow close is ours. */
static void *send_away(void *argument) {
    struct parcel parcel = *(struct parcel *)argument;
    char byte = 'x', space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &parcel.descriptor, sizeof parcel.descriptor);
    sendmsg(parcel.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!parcel.is_kept)
        close(parcel.descriptor);
    return NULL;
}

static void send_on_thread(int socket, int descriptor, int is_kept) {
    static struct parcel parcels[256];
    pthread_t sender;
    parcels[socket] = (struct parcel){socket, descriptor, is_kept};
    if (pthread_create(&sender, NULL, send_away, &parcels[socket]) != 0)
        abort();
    pthread_detach(sender);
}

/* Connects once more where a socket of the library's is connected; -1: that has no address. */
static int connect_again(int socket_of_library) {
    struct sockaddr_un address = {0};
    socklen_t size = sizeof address;
    if (getpeername(socket_of_library, (struct sockaddr *)&address, &size) != 0 || address.sun_path[0] == 0)
        return -1;
    int again = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (again < 0 || again >= 256 || connect(again, (struct sockaddr *)&address, size) != 0)
        abort();
    return again;
}

/* Sends a descriptor of its own on every connection to the server, and one in the first packet of a new one. */
static void send_descriptors(int (*make)(void), int is_kept) {
    int fresh = -1;
    for (int socket = 3; socket < 256; socket++) {
        int type = 0;
        socklen_t size = sizeof type;
        if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET)
            continue;
        if (socket == fresh)
            continue;
        if (fresh < 0 && (fresh = connect_again(socket)) >= 0)
            send_on_thread(fresh, make(), is_kept);
        send_on_thread(socket, make(), is_kept);
    }
    if (fresh < 0)
        abort();
    usleep(100000);
}

/* The other end of a lingering socket stays open, and is never read. */
static int make_lingering(void) {
    static char zeros[65536];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &size) || connect(one, (struct sockaddr *)&address, size) ||
        accept(listener, NULL, NULL) < 0)
        abort();
    struct linger hour = {1, 3600};
    setsockopt(one, SOL_SOCKET, SO_LINGER, &hour, sizeof hour);
    while (send(one, zeros, sizeof zeros, MSG_DONTWAIT) > 0)
        ;
    return one;
}

#include "silent_fuse.h"

static int fuse_file = -1;

static int make_silent(void) { return dup(fuse_file); }

static void linger(void) { send_descriptors(make_lingering, 0); }
static void fuse(void) { send_descriptors(make_silent, 1); }

static void leave_a_child(void) {
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, 0);
        alarm(60);
        for (;;)
            pause();
    }
    say("done");
    _exit(0);
}

#include "hostile_lies.h"

static const struct call {
    const char *name;
    void (*make)(void);
    int is_repeated;
} calls[] = {{"requeue", requeue, 1},     {"poison", poison, 0}, {"queue", queue, 0}, {"storm", storm, 1}, {"discard", discard, 1}, {"merge", merge, 1},
             {"unprotect", unprotect, 0}, {"linger", linger, 0}, {"fuse", fuse, 0}, {"fork", leave_a_child, 0},
             {"splice", splice_into_segments, 0}, {"remap", remap, 1}},
  lying = {"lie", lie, 0};

static const struct call *call_named(const char *name) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(name, calls[i].name) == 0)
            return &calls[i];
    return is_lie(name) ? &lying : NULL;
}

static void attack(const struct call *call) {
    find_changing_words();
    end_s = now_s() + CALL_S;
    do
        call->make();
    while (call->is_repeated && now_s() < end_s);
    say("done");
}

static int be_silent(jack_nframes_t frames, void *unused) {
    (void)unused;
    memset(jack_port_get_buffer(output, frames), 0, frames * sizeof(float));
    lie_in_cycle();
    return 0;
}

static void on_signal(int signal) { atomic_store(signal == SIGUSR1 ? &asked : &quit, 1); }

static void map_memory(const char *path) {
    int memory = open(path, O_RDONLY);
    struct stat what;
    if (memory < 0 || fstat(memory, &what) != 0 ||
        mmap(NULL, (size_t)what.st_size, PROT_READ, MAP_SHARED, memory, 0) == MAP_FAILED)
        abort();
}

int main(int argc, char **argv) {
    const struct call *call = argc >= 3 ? call_named(argv[2]) : NULL;
    if (!call)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, on_signal);
    signal(SIGTERM, on_signal);
    if (call->make == fuse && (fuse_file = silent_fuse_file()) < 0) {
        say("none");
        return 1;
    }
    jack_client_t *client = jack_client_open(argv[1], JackNoStartServer, NULL);
    if (!client)
        return 1;
    output = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    jack_set_process_callback(client, be_silent, NULL);
    if (jack_activate(client) != 0)
        return 1;
    if (argc == 5 && strcmp(argv[3], "--to") == 0 && jack_connect(client, jack_port_name(output), argv[4]) != 0)
        return 1;
    if (argc == 5 && strcmp(argv[3], "--with") == 0)
        map_memory(argv[4]);
    /* Its follower's page comes a moment after the connection. */
    usleep(300000);
    keep_shared_memory();
    say("ready");
    while (!atomic_load(&quit)) {
        if (atomic_exchange(&asked, 0))
            attack(call);
        usleep(2000);
    }
    return 0;
}
