/* consort: the JACK client interface.
 *
 * Threads: what is marked [any] may be called from any thread, the process thread included: it neither waits nor
 * allocates. What is marked [app] may wait, so it belongs in ordinary threads: the program's own, or a notification
 * callback, as far as it does not say otherwise. Callback setters are [app], before jack_activate() only, return 0
 * or not 0 on failure, and take null to remove the callback.
 *
 * Texts handed to the library are copied. Handles may be used until the client is closed.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_JACK_H
#define CONSORT_JACK_JACK_H

#include <jack/systemdeps.h>
#include <jack/types.h>
#include <jack/transport.h>
#include <jack/weakmacros.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library. */

/** [any] Stores four version numbers. They are all 0: use jack_get_version_string(). */
void jack_get_version(int *major, int *minor, int *micro, int *protocol) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The library's version as text. */
const char *jack_get_version_string(void) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Releases what a function of this library allocated for its caller. Null is allowed. */
void jack_free(void *memory) JACK_OPTIONAL_WEAK_EXPORT;

/** Called with each error message, without a newline. Set it with jack_set_error_function(). */
extern void (*jack_error_callback)(const char *message) JACK_OPTIONAL_WEAK_EXPORT;
/** Called with each informative message, without a newline. Set it with jack_set_info_function(). */
extern void (*jack_info_callback)(const char *message) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Sets where error messages go in this process, from any of its threads; null: standard error. */
void jack_set_error_function(void (*function)(const char *message)) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Sets where informative messages go in this process; null: standard error. */
void jack_set_info_function(void (*function)(const char *message)) JACK_OPTIONAL_WEAK_EXPORT;

/* A client's life. */

/** [app] Opens a client on a server. `options` are of JackOpenOptions; those that announce an argument take it
 * after `status`. The name may come out changed unless JackUseExactName is given: ask jack_get_client_name().
 * Returns null on failure; `*status`, unless null, gets the reason. */
jack_client_t *jack_client_open(const char *name, jack_options_t options, jack_status_t *status,
                                ...) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Opens a client under exactly this name. Use jack_client_open(). */
jack_client_t *jack_client_new(const char *name) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** [app] Deactivates and closes a client; its handle and those of its ports are dead after that. Not in a callback.
 * Returns 0, or not 0 on failure. */
int jack_client_close(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Puts a client into the graph: its callbacks begin. Returns 0 (also when it was active), or not 0. */
int jack_activate(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Takes a client out of the graph and disconnects its ports. Returns 0, or not 0. */
int jack_deactivate(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;

/** [any] Longest client name in bytes, with the terminating 0. */
int jack_client_name_size(void) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The client's name. Belongs to the library. */
char *jack_get_client_name(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] The uuid, as text, of the client of a name; null when there is none. Release it with jack_free(). */
char *jack_get_uuid_for_client_name(jack_client_t *client, const char *name) JACK_WEAK_EXPORT;
/** [app] The name of the client of a uuid; null when there is none. Release it with jack_free(). */
char *jack_get_client_name_by_uuid(jack_client_t *client, const char *uuid) JACK_WEAK_EXPORT;
/** [app] Process number of the client of a name; 0 when it is not known. */
int jack_get_client_pid(const char *name) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The client's process thread; 0 before jack_activate(). */
jack_native_thread_t jack_client_thread_id(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Not 0 when the server runs in real time, and is not freewheeling. */
int jack_is_realtime(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;

/** [app] Loads an internal client. Returns 0, or not 0. Use jack_internal_client_load(). */
int jack_internal_client_new(const char *name, const char *load_name,
                             const char *load_init) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** [app] Unloads an internal client. Use jack_internal_client_unload(). */
void jack_internal_client_close(const char *name) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;

/* Running in the cycle. A client has either a process callback or a process thread of its own. */

/** Sets what runs in each cycle. */
int jack_set_process_callback(jack_client_t *client, JackProcessCallback callback,
                              void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets a function that is the whole process thread: it loops over jack_cycle_wait() and jack_cycle_signal(). */
int jack_set_process_thread(jack_client_t *client, JackThreadCallback body,
                            void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Process thread: waits for the client's turn. Returns the cycle's length in frames. */
jack_nframes_t jack_cycle_wait(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** Process thread: the client's outputs are complete. A status other than 0 ends its part in the graph. */
void jack_cycle_signal(jack_client_t *client, int status) JACK_OPTIONAL_WEAK_EXPORT;
/** Without function. Use jack_cycle_wait(). */
jack_nframes_t jack_thread_wait(jack_client_t *client, int status) JACK_OPTIONAL_WEAK_EXPORT;

/* Other callbacks; types.h says which thread they run in. */

/** Sets what each thread of the library runs before its first callback. */
int jack_set_thread_init_callback(jack_client_t *client, JackThreadInitCallback callback,
                                  void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what runs when the server is gone. Ignored while the client is active. */
void jack_on_shutdown(jack_client_t *client, JackShutdownCallback callback,
                      void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** As jack_on_shutdown(), with the reason. If both are set, only this one runs. */
void jack_on_info_shutdown(jack_client_t *client, JackInfoShutdownCallback callback,
                           void *context) JACK_WEAK_EXPORT;
/** Sets what is told when freewheeling begins and ends. */
int jack_set_freewheel_callback(jack_client_t *client, JackFreewheelCallback callback,
                                void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what is told a new cycle length. */
int jack_set_buffer_size_callback(jack_client_t *client, JackBufferSizeCallback callback,
                                  void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what is told the sample rate, and calls it at once with the present one. */
int jack_set_sample_rate_callback(jack_client_t *client, JackSampleRateCallback callback,
                                  void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what is told of other clients that come and go. */
int jack_set_client_registration_callback(jack_client_t *client, JackClientRegistrationCallback callback,
                                          void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what is told of ports that come and go. */
int jack_set_port_registration_callback(jack_client_t *client, JackPortRegistrationCallback callback,
                                        void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what is told of connections made and undone. */
int jack_set_port_connect_callback(jack_client_t *client, JackPortConnectCallback callback,
                                   void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what is told of ports that change their name. */
int jack_set_port_rename_callback(jack_client_t *client, JackPortRenameCallback callback,
                                  void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what is told that the graph has another order. */
int jack_set_graph_order_callback(jack_client_t *client, JackGraphOrderCallback callback,
                                  void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what is told of missed deadlines. */
int jack_set_xrun_callback(jack_client_t *client, JackXRunCallback callback,
                           void *context) JACK_OPTIONAL_WEAK_EXPORT;
/** Sets what computes the latencies of the client's ports, in place of the rule that every output depends on every
 * input without delay. */
int jack_set_latency_callback(jack_client_t *client, JackLatencyCallback callback,
                              void *context) JACK_WEAK_EXPORT;

/* The server. */

/** [app] Begins (not 0) or ends (0) running cycles as fast as the clients can. Returns 0, or not 0: it is so. */
int jack_set_freewheel(jack_client_t *client, int on) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Asks for cycles of another length, in frames, for all clients. Returns 0, or not 0 when it is refused. */
int jack_set_buffer_size(jack_client_t *client, jack_nframes_t frames) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The sample rate, in Hz. */
jack_nframes_t jack_get_sample_rate(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The longest cycle that can come before the next buffer size callback, in frames. */
jack_nframes_t jack_get_buffer_size(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Part of the cycle's time that the graph takes, smoothed: 0 to 100. */
float jack_cpu_load(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** Without function; fails. Use jack_set_timebase_callback(). */
int jack_engine_takeover_timebase(jack_client_t *client) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;

/* Own ports. */

/** [app] Makes a port `client:name`. `flags` are of JackPortFlags, exactly one of input and output among them;
 * `buffer_size` is ignored for the built-in types. Returns null when the name is empty, too long or taken, or the
 * type is unknown. */
jack_port_t *jack_port_register(jack_client_t *client, const char *name, const char *type, unsigned long flags,
                                unsigned long buffer_size) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Disconnects and removes an own port. Returns 0, or not 0. */
int jack_port_unregister(jack_client_t *client, jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** Process thread: the port's memory for this cycle, `frames` samples or a MIDI buffer. Ask again in every cycle.
 * Inputs are read only: the memory may be the source's own. Outputs have to be written whole. */
void *jack_port_get_buffer(jack_port_t *port, jack_nframes_t frames) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Gives a port another short name, also one of another client's. Returns 0, or not 0: empty, taken, too long. */
int jack_port_rename(jack_client_t *client, jack_port_t *port, const char *name) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] As jack_port_rename(), without the client. */
int jack_port_set_name(jack_port_t *port, const char *name) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** [app] Gives a port one more name, two at most. Returns 0, or not 0. */
int jack_port_set_alias(jack_port_t *port, const char *alias) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Takes such a name away. Returns 0, or not 0: the port has no such alias. */
int jack_port_unset_alias(jack_port_t *port, const char *alias) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Makes output `destination` read its samples from input `source` of the same client. Returns 0, or not 0. */
int jack_port_tie(jack_port_t *source, jack_port_t *destination) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** [app] Undoes jack_port_tie(). Returns 0, or not 0. */
int jack_port_untie(jack_port_t *port) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;

/* Any port. Strings belong to the library and may change with a rename. */

/** [any] The uuid. */
jack_uuid_t jack_port_uuid(const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The full name, `client:port`. Still answers for a port that was just unregistered. */
const char *jack_port_name(const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The name behind the first colon. */
const char *jack_port_short_name(const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The bits of JackPortFlags. */
int jack_port_flags(const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The type's name. */
const char *jack_port_type(const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The type's number. */
jack_port_type_id_t jack_port_type_id(const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Not 0 when the port belongs to the client. */
int jack_port_is_mine(const jack_client_t *client, const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Copies the aliases to two arrays of jack_port_name_size() bytes. Returns how many there are. */
int jack_port_get_aliases(const jack_port_t *port, char *const aliases[2]) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The port of a full name or alias; null when there is none. */
jack_port_t *jack_port_by_name(jack_client_t *client, const char *name) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] The port of a number that a callback gave. */
jack_port_t *jack_port_by_id(jack_client_t *client, jack_port_id_t id) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Full names of the ports whose name and type match extended regular expressions (null or empty: all) and
 * that have all of `flags`. Ends with a null; null when there is none. Release the array with jack_free(). */
const char **jack_get_ports(jack_client_t *client, const char *name_pattern, const char *type_pattern,
                            unsigned long flags) JACK_OPTIONAL_WEAK_EXPORT;

/** [any] Longest full port name in bytes, with the terminating 0. */
int jack_port_name_size(void) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Longest type name in bytes, with the terminating 0. */
int jack_port_type_size(void) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Bytes of a buffer of a type; 0 for an unknown type. */
size_t jack_port_type_get_buffer_size(jack_client_t *client, const char *type) JACK_WEAK_EXPORT;

/* Connections, always from an output to an input of the same type. */

/** [app] Connects two ports of any clients. Returns 0, EEXIST when they are connected, or another number. */
int jack_connect(jack_client_t *client, const char *source, const char *destination) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Undoes a connection. Returns 0, or not 0. */
int jack_disconnect(jack_client_t *client, const char *source,
                    const char *destination) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Undoes all connections of a port. Returns 0, or not 0. */
int jack_port_disconnect(jack_client_t *client, jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] How many connections a port has. */
int jack_port_connected(const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Not 0 when the port is connected to the one of that name. */
int jack_port_connected_to(const jack_port_t *port, const char *name) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] Full names of the ports a port is connected to. Ends with a null; null when there is none. Release the array
 * with jack_free(). */
const char **jack_port_get_connections(const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] As jack_port_get_connections(). */
const char **jack_port_get_all_connections(const jack_client_t *client,
                                           const jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;

/* Input monitoring, for ports with JackPortCanMonitor. */

/** [any] Asks for one more (not 0) or one less (0) to be listening. Returns 0, or not 0. */
int jack_port_request_monitor(jack_port_t *port, int on) JACK_OPTIONAL_WEAK_EXPORT;
/** [app] As jack_port_request_monitor(), by name. */
int jack_port_request_monitor_by_name(jack_client_t *client, const char *name,
                                      int on) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Sees to it that somebody (not 0) or nobody (0) is listening. Returns 0, or not 0. */
int jack_port_ensure_monitor(jack_port_t *port, int on) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Not 0 when somebody is listening. */
int jack_port_monitoring_input(jack_port_t *port) JACK_OPTIONAL_WEAK_EXPORT;

/* Latency, in frames. */

/** [any] Copies a port's latency range of one mode. */
void jack_port_get_latency_range(jack_port_t *port, jack_latency_callback_mode_t mode,
                                 jack_latency_range_t *range) JACK_WEAK_EXPORT;
/** Latency callback: sets the range of an own port. */
void jack_port_set_latency_range(jack_port_t *port, jack_latency_callback_mode_t mode,
                                 jack_latency_range_t *range) JACK_WEAK_EXPORT;
/** [app] Has all clients compute their latencies again. Returns 0, or not 0. */
int jack_recompute_total_latencies(jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Sets both ranges. Use jack_port_set_latency_range(). */
void jack_port_set_latency(jack_port_t *port, jack_nframes_t frames) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** [any] The port's latency. Use jack_port_get_latency_range(). */
jack_nframes_t jack_port_get_latency(jack_port_t *port) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** [any] The longest way to or from a device. Use jack_port_get_latency_range(). */
jack_nframes_t jack_port_get_total_latency(jack_client_t *client,
                                           jack_port_t *port) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** [app] Use jack_recompute_total_latencies(). */
int jack_recompute_total_latency(jack_client_t *client, jack_port_t *port) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;

/* Time. */

/** [any] Now, in microseconds of a clock that only goes forward. */
jack_time_t jack_get_time(void) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Now, in frames. */
jack_nframes_t jack_frame_time(const jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** Process thread: the cycle's first frame. */
jack_nframes_t jack_last_frame_time(const jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Frames since the cycle began, estimated. */
jack_nframes_t jack_frames_since_cycle_start(const jack_client_t *client) JACK_OPTIONAL_WEAK_EXPORT;
/** Process thread: the cycle's first frame, its smoothed time, that of the next cycle, and the smoothed length of a
 * cycle, in microseconds. Returns 0, or not 0 before the first cycle. */
int jack_get_cycle_times(const jack_client_t *client, jack_nframes_t *first_frame, jack_time_t *start_us,
                         jack_time_t *next_us, float *length_us) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Time of a frame, in microseconds. */
jack_time_t jack_frames_to_time(const jack_client_t *client, jack_nframes_t frame) JACK_OPTIONAL_WEAK_EXPORT;
/** [any] Frame at a time in microseconds. */
jack_nframes_t jack_time_to_frames(const jack_client_t *client, jack_time_t time_us) JACK_OPTIONAL_WEAK_EXPORT;

#ifdef __cplusplus
}
#endif

#endif
