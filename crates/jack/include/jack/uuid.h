/* consort: uuids of clients and ports: 64-bit numbers, written in decimal. Any thread.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_UUID_H
#define CONSORT_JACK_UUID_H

#include <jack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest text of a uuid, without the terminating 0. */
#define JACK_UUID_SIZE 36
#define JACK_UUID_STRING_SIZE (JACK_UUID_SIZE + 1)
/** No uuid. */
#define JACK_UUID_EMPTY_INITIALIZER 0

/** A uuid for a client that no earlier call in this process has given. */
jack_uuid_t jack_client_uuid_generate(void);
/** The uuid that belongs to a port number. */
jack_uuid_t jack_port_uuid_generate(uint32_t port_id);
/** The number that a uuid was made from: the lower half, less one. */
uint32_t jack_uuid_to_index(jack_uuid_t uuid);
/** Less than, equal to or greater than 0 as `a` is to `b`. */
int jack_uuid_compare(jack_uuid_t a, jack_uuid_t b);
/** Stores `uuid` in `*destination`. */
void jack_uuid_copy(jack_uuid_t *destination, jack_uuid_t uuid);
/** Makes `*uuid` empty. */
void jack_uuid_clear(jack_uuid_t *uuid);
/** Reads a uuid from text. Returns 0; or -1 and leaves `*uuid` alone when the text is none. */
int jack_uuid_parse(const char *text, jack_uuid_t *uuid);
/** Writes a uuid as text. */
void jack_uuid_unparse(jack_uuid_t uuid, char text[JACK_UUID_STRING_SIZE]);
/** Not 0 when the uuid is empty. */
int jack_uuid_empty(jack_uuid_t uuid);

#ifdef __cplusplus
}
#endif

#endif
