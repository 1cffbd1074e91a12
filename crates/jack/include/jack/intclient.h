/* consort: internal clients, shared objects that the server loads. Not to be called in the process thread.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_INTCLIENT_H
#define CONSORT_JACK_INTCLIENT_H

#include <jack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Name of an internal client, or null. Release it with jack_free(). */
char *jack_get_internal_client_name(jack_client_t *client, jack_intclient_t internal);
/** Handle of the internal client of a name, or 0 with JackNoSuchClient in `*status`. */
jack_intclient_t jack_internal_client_handle(jack_client_t *client, const char *name, jack_status_t *status);
/** Loads and starts an internal client. Options: JackLoadOptions, with their arguments after `status`; without
 * JackLoadName the object is called as the client is. Returns its handle, or 0 with the reason in `*status`. */
jack_intclient_t jack_internal_client_load(jack_client_t *client, const char *name, jack_options_t options,
                                           jack_status_t *status, ...);
/** Stops and unloads an internal client. Returns 0, or JackFailure and the reason. */
jack_status_t jack_internal_client_unload(jack_client_t *client, jack_intclient_t internal);

#ifdef __cplusplus
}
#endif

#endif
