/* consort: a ring of bytes between one writing thread and one reading thread. Neither side ever waits or locks, so
 * either may be the process thread.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_RINGBUFFER_H
#define CONSORT_JACK_RINGBUFFER_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A stretch of the ring's memory. */
typedef struct {
    char *buf;
    size_t len; /**< bytes */
} jack_ringbuffer_data_t;

/** The ring. Public for historical reasons: programs should use the functions only. */
typedef struct {
    char *buf;
    volatile size_t write_ptr; /**< offset of the next byte to write; only the writer changes it */
    volatile size_t read_ptr;  /**< offset of the next byte to read; only the reader changes it */
    size_t size;               /**< bytes of memory: a power of two */
    size_t size_mask;          /**< size - 1 */
    int mlocked;
} jack_ringbuffer_t;

/* Making and unmaking. Not in the process thread, and not while another thread uses the ring. */

/** Makes a ring of `size` bytes, rounded up to a power of two, of which one byte always stays free. Returns null
 * when there is no memory. */
jack_ringbuffer_t *jack_ringbuffer_create(size_t size);
/** Releases a ring. Null is allowed. */
void jack_ringbuffer_free(jack_ringbuffer_t *ring);
/** Locks the ring's memory so that touching it never faults. Returns 0, or not 0: the system refused. */
int jack_ringbuffer_mlock(jack_ringbuffer_t *ring);
/** Empties the ring. */
void jack_ringbuffer_reset(jack_ringbuffer_t *ring);
/** Empties the ring and uses only `size` bytes of it from now on: a power of two, not more than it was made with. */
void jack_ringbuffer_reset_size(jack_ringbuffer_t *ring, size_t size);

/* The reading thread. */

/** Bytes that can be read. */
size_t jack_ringbuffer_read_space(const jack_ringbuffer_t *ring);
/** Takes up to `count` bytes out. Returns how many. */
size_t jack_ringbuffer_read(jack_ringbuffer_t *ring, char *destination, size_t count);
/** Copies up to `count` bytes and leaves them in. Returns how many. */
size_t jack_ringbuffer_peek(jack_ringbuffer_t *ring, char *destination, size_t count);
/** Describes what can be read in place: two stretches, of which the second may be empty. */
void jack_ringbuffer_get_read_vector(const jack_ringbuffer_t *ring, jack_ringbuffer_data_t *vector);
/** Drops `count` bytes, not more than can be read. */
void jack_ringbuffer_read_advance(jack_ringbuffer_t *ring, size_t count);

/* The writing thread. */

/** Bytes that can be written. */
size_t jack_ringbuffer_write_space(const jack_ringbuffer_t *ring);
/** Puts up to `count` bytes in. Returns how many. */
size_t jack_ringbuffer_write(jack_ringbuffer_t *ring, const char *source, size_t count);
/** Describes where bytes can be written in place: two stretches, of which the second may be empty. */
void jack_ringbuffer_get_write_vector(const jack_ringbuffer_t *ring, jack_ringbuffer_data_t *vector);
/** Hands `count` bytes, written in place, to the reader. */
void jack_ringbuffer_write_advance(jack_ringbuffer_t *ring, size_t count);

#ifdef __cplusplus
}
#endif

#endif
