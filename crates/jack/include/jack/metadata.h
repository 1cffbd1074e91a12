/* consort: properties, texts attached to clients and ports. Not to be called in the process thread.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_METADATA_H
#define CONSORT_JACK_METADATA_H

#include <jack/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One property. `type` is a MIME type, or null: plain text. */
typedef struct {
    const char *key;
    const char *data;
    const char *type;
} jack_property_t;

/** All properties of one subject. */
typedef struct {
    jack_uuid_t subject;
    uint32_t property_cnt;       /**< how many there are */
    jack_property_t *properties;
    uint32_t property_size;      /**< how many there is room for */
} jack_description_t;

/** What happened to a property. */
typedef enum {
    PropertyCreated,
    PropertyChanged,
    PropertyDeleted
} jack_property_change_t;

/** Notification thread: a property of `subject` changed. An empty key: all that it had are gone. */
typedef void (*JackPropertyChangeCallback)(jack_uuid_t subject, const char *key, jack_property_change_t change,
                                           void *context);

/** Sets a property. Returns 0, or -1: key or value empty, or no server. */
int jack_set_property(jack_client_t *client, jack_uuid_t subject, const char *key, const char *value,
                      const char *type);
/** Copies a property to `*value` and `*type` (null when it has none), both to be released with jack_free().
 * Returns 0, or -1: there is no such property. */
int jack_get_property(jack_uuid_t subject, const char *key, char **value, char **type);
/** Fills `*description` with all properties of a subject. Returns how many, or -1. Release the contents with
 * jack_free_description(description, 0). */
int jack_get_properties(jack_uuid_t subject, jack_description_t *description);
/** Allocates one description per subject that has properties. Returns how many, or -1. Release the contents of
 * each with jack_free_description(), then the array with jack_free(). */
int jack_get_all_properties(jack_description_t **descriptions);
/** Releases what a description holds, and with `itself` not 0 the description too. */
void jack_free_description(jack_description_t *description, int itself);
/** Removes one property. Returns 0, or -1. */
int jack_remove_property(jack_client_t *client, jack_uuid_t subject, const char *key);
/** Removes all properties of a subject. Returns how many, or -1. */
int jack_remove_properties(jack_client_t *client, jack_uuid_t subject);
/** Removes all properties of all subjects. Returns 0, or -1. */
int jack_remove_all_properties(jack_client_t *client);
/** Sets the callback for changes of any property. Before jack_activate() only. Returns 0, or -1. */
int jack_set_property_change_callback(jack_client_t *client, JackPropertyChangeCallback callback, void *context);

/* Keys with an agreed meaning. */

/** Port: what it is connected to outside the server. */
extern const char *JACK_METADATA_CONNECTED;
/** MIDI port: the kinds of events it understands. */
extern const char *JACK_METADATA_EVENT_TYPES;
/** Port: the device connector behind it. */
extern const char *JACK_METADATA_HARDWARE;
/** Client: a PNG image in base64, 128 x 128 at most. */
extern const char *JACK_METADATA_ICON_LARGE;
/** Client: name of an icon of the desktop's theme. */
extern const char *JACK_METADATA_ICON_NAME;
/** Client: a PNG image in base64, 32 x 32 at most. */
extern const char *JACK_METADATA_ICON_SMALL;
/** Port: its place among the ports of its client, a decimal number. */
extern const char *JACK_METADATA_ORDER;
/** Client or port: the name to show to people. */
extern const char *JACK_METADATA_PRETTY_NAME;
/** Port: the group it belongs to; ports of a group are shown together. */
extern const char *JACK_METADATA_PORT_GROUP;
/** Audio port: what the samples are, "AUDIO" or "CV" for example. */
extern const char *JACK_METADATA_SIGNAL_TYPE;

#ifdef __cplusplus
}
#endif

#endif
