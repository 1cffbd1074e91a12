/* consort: the transport, one position and one rolling state shared by all clients of a server.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_TRANSPORT_H
#define CONSORT_JACK_TRANSPORT_H

#include <jack/types.h>
#include <jack/weakmacros.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Control. Requests take effect in a later cycle; the last one given wins. Any thread, the process thread too. */

/** Starts rolling, once every client with a sync callback is ready or the sync timeout has passed. */
void jack_transport_start(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** Stops rolling. */
void jack_transport_stop(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** Jumps to a frame. Returns 0, or not 0 on a bad handle. */
int jack_transport_locate(jack_client_t *client, jack_nframes_t frame) JACK_OPTIONAL_WEAK_EXPORT;
/** Jumps to position->frame and proposes the optional members that position->valid names. Returns 0, or EINVAL. */
int jack_transport_reposition(jack_client_t *client, const jack_position_t *position) JACK_OPTIONAL_WEAK_EXPORT;

/* State. Any thread, the process thread too; no waiting. */

/** Returns the state; copies the position of the current cycle to `position` unless that is null. */
jack_transport_state_t jack_transport_query(const jack_client_t *client,
                                            jack_position_t *position) JACK_OPTIONAL_WEAK_EXPORT;
/** Estimates the frame that is being played now, between two cycles. */
jack_nframes_t jack_get_current_transport_frame(const jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;

/* Taking part. Not in the process thread. */

/** Makes this a client that others wait for before they roll; null takes it back. Allowed while active.
 * Returns 0, or not 0 on failure. */
int jack_set_sync_callback(jack_client_t *client, JackSyncCallback callback,
                           void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets how long, in microseconds, the transport waits for slow clients. Returns 0, or not 0 on failure. */
int jack_set_sync_timeout(jack_client_t *client, jack_time_t timeout_us) JACK_OPTIONAL_WEAK_EXPORT;
/** Makes this client the timebase master, the one that fills in bar and beat. With `conditional` not 0 an
 * existing master stays. Allowed while active. Returns 0, EBUSY (there is a master) or EINVAL. */
int jack_set_timebase_callback(jack_client_t *client, int conditional, JackTimebaseCallback callback,
                               void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Gives the role back. Returns 0, or EINVAL when this client is not the master. */
int jack_release_timebase(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;

/* For old programs. */

/** Tells what jack_transport_query() does. Use that. */
void jack_get_transport_info(jack_client_t *client, jack_transport_info_t *info) JACK_OPTIONAL_WEAK_EXPORT;
/** Does nothing. Use jack_set_timebase_callback(). */
void jack_set_transport_info(jack_client_t *client, jack_transport_info_t *info) JACK_OPTIONAL_WEAK_EXPORT;

#ifdef __cplusplus
}
#endif

#endif
