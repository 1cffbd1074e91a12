/* consort: events in the buffers of MIDI ports. For the process thread: a buffer is what jack_port_get_buffer()
 * returned in this cycle. Event times are in frames from the cycle's start, and do not decrease.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_MIDIPORT_H
#define CONSORT_JACK_MIDIPORT_H

#include <stdlib.h>

#include <jack/types.h>
#include <jack/weakmacros.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One byte of a MIDI message. */
typedef unsigned char jack_midi_data_t;

/** One event: a whole MIDI message, with its status byte. */
typedef struct _jack_midi_event {
    jack_nframes_t time;      /**< frames from the cycle's start */
    size_t size;              /**< bytes */
    jack_midi_data_t *buffer; /**< read only, valid in this cycle */
} jack_midi_event_t;

/** Number of events in a buffer. */
uint32_t jack_midi_get_event_count(void *buffer) JACK_OPTIONAL_WEAK_EXPORT;
/** Describes event `index` in `*event`. Returns 0, -EINVAL (no MIDI buffer) or -ENOBUFS (no such event). */
int jack_midi_event_get(jack_midi_event_t *event, void *buffer, uint32_t index) JACK_OPTIONAL_WEAK_EXPORT;
/** Empties an output buffer. Needed once in every cycle, before the first event is written. */
void jack_midi_clear_buffer(void *buffer) JACK_OPTIONAL_WEAK_EXPORT;
/** The old name of jack_midi_clear_buffer(). */
void jack_midi_reset_buffer(void *buffer) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** Bytes of the largest event that still fits. */
size_t jack_midi_max_event_size(void *buffer) JACK_OPTIONAL_WEAK_EXPORT;
/** Appends an event of `size` bytes and returns where to write them; null when it does not fit or comes before
 * the last event or after the cycle. */
jack_midi_data_t *jack_midi_event_reserve(void *buffer, jack_nframes_t time,
                                          size_t size) JACK_OPTIONAL_WEAK_EXPORT;
/** Appends a copy of an event. Returns 0, -ENOBUFS (does not fit) or -EINVAL (time out of order or range). */
int jack_midi_event_write(void *buffer, jack_nframes_t time, const jack_midi_data_t *data,
                          size_t size) JACK_OPTIONAL_WEAK_EXPORT;
/** Events that did not fit since the buffer was emptied. */
uint32_t jack_midi_get_lost_event_count(void *buffer) JACK_OPTIONAL_WEAK_EXPORT;

#ifdef __cplusplus
}
#endif

#endif
