/* consort: the session interface of JACK, superseded by NSM and kept for the programs that use it. Not to be called
 * in the process thread.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_SESSION_H
#define CONSORT_JACK_SESSION_H

#include <jack/types.h>
#include <jack/weakmacros.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a session manager asks for. */
enum JackSessionEventType {
    JackSessionSave = 1,
    JackSessionSaveAndQuit = 2,
    JackSessionSaveTemplate = 3 /**< save without media files */
};
typedef enum JackSessionEventType jack_session_event_type_t;

/** Bits of a client's answer. */
enum JackSessionFlags {
    JackSessionSaveError = 1 << 0,
    JackSessionNeedTerminal = 1 << 1 /**< the command has to run in a terminal */
};
typedef enum JackSessionFlags jack_session_flags_t;

/** One request, and the client's answer to it. */
struct _jack_session_event {
    jack_session_event_type_t type;
    const char *session_dir;     /**< directory for the client's files, ending in '/' */
    const char *client_uuid;     /**< to be part of the command line */
    char *command_line;          /**< answer, from malloc(): "${SESSION_DIR}" stands for the directory */
    jack_session_flags_t flags;  /**< answer */
    uint32_t future;
};
typedef struct _jack_session_event jack_session_event_t;

/** One client's answer as the session manager sees it. The last of a list has a null uuid. */
typedef struct {
    const char *uuid;
    const char *client_name;
    const char *command;
    jack_session_flags_t flags;
} jack_session_command_t;

/** Notification thread: a session event. The client owns it: jack_session_reply(), then jack_session_event_free(). */
typedef void (*JackSessionCallback)(jack_session_event_t *event, void *context);

/* For clients. */

/** Sets the callback. Before jack_activate() only. Returns 0, or not 0 on failure. */
int jack_set_session_callback(jack_client_t *client, JackSessionCallback callback,
                              void *context) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** Sends the answer, in the callback or later. Returns 0, or not 0 on failure. */
int jack_session_reply(jack_client_t *client, jack_session_event_t *event) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** Releases an event with the texts in it. */
void jack_session_event_free(jack_session_event_t *event) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** The client's own uuid as text, to be released with jack_free(); or null. */
char *jack_client_get_uuid(jack_client_t *client) JACK_WEAK_EXPORT;

/* For session managers. */

/** Sends an event to the client `target`, or to all when null, and waits for the answers. Returns the list of
 * them, for jack_session_commands_free(); or null. */
jack_session_command_t *jack_session_notify(jack_client_t *client, const char *target,
                                            jack_session_event_type_t type, const char *path) JACK_WEAK_EXPORT;
/** Releases a list of answers. */
void jack_session_commands_free(jack_session_command_t *commands) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
/** Keeps a name for the client that will open with this uuid as its session id. Returns 0, or not 0 on failure. */
int jack_reserve_client_name(jack_client_t *client, const char *name, const char *uuid) JACK_WEAK_EXPORT;
/** 1 when the client of that name has a session callback, 0 when it has none, less than 0 on failure. */
int jack_client_has_session_callback(jack_client_t *client,
                                     const char *name) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;

#ifdef __cplusplus
}
#endif

#endif
