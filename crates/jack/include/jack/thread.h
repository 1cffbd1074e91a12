/* consort: threads with the scheduling that the server would give them. Not to be called in the process thread.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_THREAD_H
#define CONSORT_JACK_THREAD_H

#include <jack/types.h>
#include <jack/weakmacros.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Stack of a thread made by jack_client_create_thread(), in bytes. */
#define THREAD_STACK 524288

/** What makes threads in place of pthread_create(); same arguments, same result. */
typedef int (*jack_thread_creator_t)(pthread_t *thread, const pthread_attr_t *attributes,
                                     void *(*body)(void *), void *argument);

/** Priority of the client's process thread, or -1 when the server does not run in real time. */
int jack_client_real_time_priority(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** Highest priority a client should give its own threads, or -1 when the server does not run in real time. */
int jack_client_max_real_time_priority(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** Puts a thread under SCHED_FIFO at `priority`. Returns 0, or the error number of the system. */
int jack_acquire_real_time_scheduling(jack_native_thread_t thread, int priority) JACK_OPTIONAL_WEAK_EXPORT;
/** Puts a thread back under ordinary scheduling. Returns 0, or the error number of the system. */
int jack_drop_real_time_scheduling(jack_native_thread_t thread) JACK_OPTIONAL_WEAK_EXPORT;
/** Starts a thread; with `realtime` not 0 under SCHED_FIFO at `priority`. Returns 0, or not 0: no thread. */
int jack_client_create_thread(jack_client_t *client, jack_native_thread_t *thread, int priority, int realtime,
                              void *(*body)(void *), void *argument) JACK_OPTIONAL_WEAK_EXPORT;
/** Waits for a thread to end. Returns 0, or not 0 on failure. */
int jack_client_stop_thread(jack_client_t *client, jack_native_thread_t thread) JACK_OPTIONAL_WEAK_EXPORT;
/** Cancels a thread and waits for it to end. Returns 0, or not 0 on failure. */
int jack_client_kill_thread(jack_client_t *client, jack_native_thread_t thread) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what makes the library's threads in this process from now on; null restores pthread_create(). */
void jack_set_thread_creator(jack_thread_creator_t creator) JACK_OPTIONAL_WEAK_EXPORT;

#ifdef __cplusplus
}
#endif

#endif
