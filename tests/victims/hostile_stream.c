/* A program with a stream that writes nonsense into the stream's memory while the server plays it.
 *
 *   hostile_stream SOCKET DIRECTORY NONSENSE COUNT
 *
 * It knows nothing of the protocol. DIRECTORY has what it sends, as a correct program would: the packets "hello", "open",
 * "begin" and "call", and the bytes of the segment "ring". It prints "ready" once its stream has begun.
 * From SIGUSR1 on, and until it is killed, it overwrites words, has the device look, and again. NONSENSE is one of
 *
 *   backwards  the count of the frames that were written goes back, and forth again
 *   beyond     it is beyond the ring, and beyond any number of frames
 *   samples    infinities, and what is no number, as samples and in the page before them
 *   anything   any word of the segment gets any bits
 *
 * COUNT is where in the ring's segment that count is, bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { PACKET_BYTES = 1 << 18, PAGE_BYTES = 4096, WORDS_AT_ONCE = 256 };

struct segment {
    int memfd;
    size_t words;
    volatile uint64_t *memory;
};

static int server;
static char packet[PACKET_BYTES];

static void fail(const char *what) {
    fprintf(stderr, "hostile_stream: %s: %s\n", what, strerror(errno));
    exit(1);
}

static size_t read_file(const char *directory, const char *name, void *into, size_t room) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? -1 : read(file, into, room);
    if (bytes < 0) fail(path);
    close(file);
    return (size_t)bytes;
}

/* A segment with the bytes of a file, sealed as the server wants it. */
static struct segment segment_of(const char *directory, const char *name) {
    char path[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (stat(path, &status) < 0) fail(path);
    size_t bytes = (size_t)status.st_size;
    int memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd < 0 || ftruncate(memfd, status.st_size) < 0) fail("memfd");
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (memory == MAP_FAILED) fail("mmap");
    if (read_file(directory, name, memory, bytes) != bytes) fail(path);
    if (fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0) fail("seals");
    return (struct segment){.memfd = memfd, .words = bytes / sizeof(uint64_t), .memory = memory};
}

/* Sends a packet with these descriptors; returns how many descriptors came with the answer. */
static int ask(const char *directory, const char *name, const int *descriptors, size_t count) {
    size_t bytes = read_file(directory, name, packet, sizeof packet);
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(64 * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = packet, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
    }
    if (sendmsg(server, &message, MSG_NOSIGNAL) < 0) fail(name);
    part.iov_len = sizeof packet;
    message.msg_control = control.room;
    message.msg_controllen = sizeof control.room;
    ssize_t answered = recvmsg(server, &message, MSG_CMSG_CLOEXEC);
    if (answered <= 0) fail(name);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    return rights == NULL ? 0 : (int)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

/* xorshift64, Marsaglia 2003. */
static uint64_t random_bits(void) {
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* A number of any magnitude. */
static uint64_t random_number(void) {
    unsigned bits = random_bits() % 64;
    return random_bits() >> bits;
}

static void overwrite(const char *nonsense, size_t count, struct segment ring) {
    static const uint64_t no_numbers[] = {0x7fc000007fc00000, 0x7f800000ff800000, 0xffffffff7f7fffff};
    for (unsigned word = 0; word < WORDS_AT_ONCE; word++) {
        if (strcmp(nonsense, "backwards") == 0) {
            ring.memory[count] = (WORDS_AT_ONCE - word) * 64;
        } else if (strcmp(nonsense, "beyond") == 0) {
            ring.memory[count] = word % 2 ? UINT64_MAX - word : (uint64_t)1 << (word / 4);
        } else if (strcmp(nonsense, "samples") == 0) {
            ring.memory[count] = UINT64_MAX;
            size_t place = PAGE_BYTES / sizeof(uint64_t) + random_bits() % (ring.words - PAGE_BYTES / sizeof(uint64_t));
            ring.memory[place] = no_numbers[random_bits() % 3];
        } else {
            /* Most of it where counts and wishes are. */
            size_t within = random_bits() % 4 ? PAGE_BYTES / sizeof(uint64_t) : ring.words;
            if (random_bits() % 4 == 0) within = count + 1;
            ring.memory[random_bits() % within] = random_number();
        }
    }
}

int main(int arguments, char **argument) {
    if (arguments != 5) return 2;
    const char *directory = argument[2];
    size_t count = strtoul(argument[4], NULL, 10) / sizeof(uint64_t);
    sigset_t begin;
    sigemptyset(&begin);
    sigaddset(&begin, SIGUSR1);
    sigprocmask(SIG_BLOCK, &begin, NULL);

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, argument[1], sizeof address.sun_path - 1);
    server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address) < 0) fail(argument[1]);
    ask(directory, "hello", NULL, 0);
    if (ask(directory, "open", NULL, 0) != 1) {
        fprintf(stderr, "hostile_stream: the server grants no stream\n");
        return 1;
    }
    struct segment ring = segment_of(directory, "ring");
    ask(directory, "begin", &ring.memfd, 1);
    ask(directory, "call", NULL, 0);
    puts("ready");
    fflush(stdout);
    int signal;
    sigwait(&begin, &signal);
    for (;;) {
        overwrite(argument[3], count, ring);
        ask(directory, "call", NULL, 0);
    }
}
