/* Uses the ring buffer of libjack as programs do. Prints what is wrong and ends with 1, or ends with 0. */
#include <jack/ringbuffer.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition);   \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

enum { CHUNK = 700 };

/* A ring, and how many bytes are to go through it. */
struct transfer {
    jack_ringbuffer_t *ring;
    size_t bytes;
};

/* A sequence that both threads make on their own; its upper bits do not repeat with the ring's size. */
static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void fill(char *bytes, size_t count, uint32_t *content)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)next(content);
}

static void compare(const char *bytes, size_t count, uint32_t *content)
{
    for (size_t i = 0; i < count; i++)
        CHECK(bytes[i] == (char)next(content));
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Writes all bytes in chunks of changing size, by copy or in place. */
static void *writer(void *argument)
{
    const struct transfer *transfer = argument;
    jack_ringbuffer_t *ring = transfer->ring;
    uint32_t content = 1, choice = 2;
    char chunk[CHUNK];
    for (size_t written = 0; written < transfer->bytes;) {
        size_t count = least(least(next(&choice) % CHUNK, transfer->bytes - written), jack_ringbuffer_write_space(ring));
        if (count == 0) {
            sched_yield();
        } else if (next(&choice) % 2) {
            fill(chunk, count, &content);
            CHECK(jack_ringbuffer_write(ring, chunk, count) == count);
        } else {
            jack_ringbuffer_data_t place[2];
            jack_ringbuffer_get_write_vector(ring, place);
            CHECK(place[0].len + place[1].len >= count);
            fill(place[0].buf, least(count, place[0].len), &content);
            fill(place[1].buf, count - least(count, place[0].len), &content);
            jack_ringbuffer_write_advance(ring, count);
        }
        written += count;
    }
    return NULL;
}

/* Reads and compares all bytes in chunks of changing size, by copy or in place. */
static void *reader(void *argument)
{
    const struct transfer *transfer = argument;
    jack_ringbuffer_t *ring = transfer->ring;
    uint32_t content = 1, choice = 3;
    char chunk[CHUNK];
    for (size_t taken = 0; taken < transfer->bytes;) {
        size_t count = next(&choice) % CHUNK;
        if (next(&choice) % 2) {
            count = jack_ringbuffer_read(ring, chunk, count);
            compare(chunk, count, &content);
        } else {
            jack_ringbuffer_data_t place[2];
            jack_ringbuffer_get_read_vector(ring, place);
            count = least(count, place[0].len + place[1].len);
            compare(place[0].buf, least(count, place[0].len), &content);
            compare(place[1].buf, count - least(count, place[0].len), &content);
            jack_ringbuffer_read_advance(ring, count);
        }
        if (count == 0)
            sched_yield();
        taken += count;
    }
    CHECK(jack_ringbuffer_read_space(ring) == 0);
    return NULL;
}

static void two_threads(size_t size, size_t bytes)
{
    struct transfer transfer = {jack_ringbuffer_create(size), bytes};
    pthread_t threads[2];
    CHECK(transfer.ring != NULL);
    CHECK(pthread_create(&threads[0], NULL, writer, &transfer) == 0);
    CHECK(pthread_create(&threads[1], NULL, reader, &transfer) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0);
    CHECK(pthread_join(threads[1], NULL) == 0);
    jack_ringbuffer_free(transfer.ring);
}

static void sizes(void)
{
    static const size_t asked_and_made[][2] = {{0, 2}, {1, 2}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {1000, 1024}, {1024, 1024}};
    for (size_t i = 0; i < sizeof asked_and_made / sizeof *asked_and_made; i++) {
        jack_ringbuffer_t *ring = jack_ringbuffer_create(asked_and_made[i][0]);
        CHECK(ring != NULL);
        CHECK(ring->size == asked_and_made[i][1]);
        CHECK(ring->size_mask == ring->size - 1);
        CHECK(jack_ringbuffer_write_space(ring) == ring->size - 1);
        CHECK(jack_ringbuffer_read_space(ring) == 0);
        jack_ringbuffer_free(ring);
    }
    CHECK(jack_ringbuffer_create(SIZE_MAX) == NULL);
    CHECK(jack_ringbuffer_create(SIZE_MAX / 2 + 1) == NULL);
    jack_ringbuffer_free(NULL);
}

static void full_and_wrapped(void)
{
    jack_ringbuffer_t *ring = jack_ringbuffer_create(16);
    jack_ringbuffer_data_t place[2];
    char bytes[32] = {0};
    CHECK(jack_ringbuffer_write(ring, "0123456789abcdefghij", 20) == 15);
    CHECK(jack_ringbuffer_write(ring, "x", 1) == 0);
    jack_ringbuffer_get_write_vector(ring, place);
    CHECK(place[0].len == 0 && place[1].len == 0);

    CHECK(jack_ringbuffer_peek(ring, bytes, 4) == 4 && memcmp(bytes, "0123", 4) == 0);
    CHECK(jack_ringbuffer_read_space(ring) == 15);
    jack_ringbuffer_read_advance(ring, 10);
    CHECK(jack_ringbuffer_write(ring, "ABCDE", 5) == 5);
    jack_ringbuffer_get_read_vector(ring, place);
    CHECK(place[0].len == 6 && place[0].buf == ring->buf + 10);
    CHECK(place[1].len == 4 && place[1].buf == ring->buf);
    CHECK(jack_ringbuffer_peek(ring, bytes, 32) == 10 && memcmp(bytes, "abcdeABCDE", 10) == 0);
    CHECK(jack_ringbuffer_read(ring, bytes, 32) == 10 && memcmp(bytes, "abcdeABCDE", 10) == 0);
    CHECK(jack_ringbuffer_read(ring, bytes, 32) == 0);
    CHECK(ring->read_ptr == 4 && ring->write_ptr == 4);
    jack_ringbuffer_free(ring);
}

static void resets(void)
{
    jack_ringbuffer_t *ring = jack_ringbuffer_create(64);
    static const size_t asked_and_made[][2] = {{8, 8}, {64, 64}, {9, 16}, {1, 2}, {1000, 64}};
    CHECK(jack_ringbuffer_write(ring, "abc", 3) == 3);
    jack_ringbuffer_reset(ring);
    CHECK(jack_ringbuffer_read_space(ring) == 0 && jack_ringbuffer_write_space(ring) == 63);
    for (size_t i = 0; i < sizeof asked_and_made / sizeof *asked_and_made; i++) {
        CHECK(jack_ringbuffer_write(ring, "a", 1) == 1);
        jack_ringbuffer_reset_size(ring, asked_and_made[i][0]);
        CHECK(ring->size == asked_and_made[i][1]);
        CHECK(jack_ringbuffer_read_space(ring) == 0);
        CHECK(jack_ringbuffer_write_space(ring) == ring->size - 1);
    }
    CHECK(ring->mlocked == 0);
    CHECK((jack_ringbuffer_mlock(ring) == 0) == (ring->mlocked == 1));
    jack_ringbuffer_free(ring);
}

int main(void)
{
    alarm(60); /* a thread that waits for ever is a failure */
    sizes();
    full_and_wrapped();
    resets();
    two_threads(2, 1 << 16);
    two_threads(64, 1 << 20);
    two_threads(4096, 1 << 24);
    return 0;
}
