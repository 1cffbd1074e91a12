/* consort: how late cycles were, in microseconds. Any thread.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_STATISTICS_H
#define CONSORT_JACK_STATISTICS_H

#include <jack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest delay since the last reset. */
float jack_get_max_delayed_usecs(jack_client_t *client);
/** Delay of the last xrun. */
float jack_get_xrun_delayed_usecs(jack_client_t *client);
/** Sets the longest delay to 0. */
void jack_reset_max_delayed_usecs(jack_client_t *client);

#ifdef __cplusplus
}
#endif

#endif
