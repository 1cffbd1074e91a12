/* Uses what libjack offers without a server. Prints what is wrong and ends with 1, or ends with 0. */
#include <jack/jack.h>
#include <jack/metadata.h>
#include <jack/uuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition);   \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

static void hear(const char *message)
{
    (void)message;
}

/* The address of a variable of the library may end up in the program itself; both must mean the same object. */
static void message_functions(void)
{
    void (*printing)(const char *) = jack_error_callback;
    CHECK(printing != NULL && jack_info_callback != NULL);
    jack_set_error_function(hear);
    CHECK(jack_error_callback == hear);
    CHECK(jack_info_callback != hear);
    jack_set_error_function(NULL);
    CHECK(jack_error_callback == printing);
    jack_set_info_function(hear);
    CHECK(jack_info_callback == hear);
    jack_error_callback("printed by the library");
}

static void metadata_keys(void)
{
#define KEY(variable, name) CHECK(strcmp(variable, "http://jackaudio.org/metadata/" name) == 0)
    KEY(JACK_METADATA_CONNECTED, "connected");
    KEY(JACK_METADATA_EVENT_TYPES, "event-types");
    KEY(JACK_METADATA_HARDWARE, "hardware");
    KEY(JACK_METADATA_ICON_LARGE, "icon-large");
    KEY(JACK_METADATA_ICON_NAME, "icon-name");
    KEY(JACK_METADATA_ICON_SMALL, "icon-small");
    KEY(JACK_METADATA_ORDER, "order");
    KEY(JACK_METADATA_PORT_GROUP, "port-group");
    KEY(JACK_METADATA_PRETTY_NAME, "pretty-name");
    KEY(JACK_METADATA_SIGNAL_TYPE, "signal-type");
}

static void uuids(void)
{
    char text[JACK_UUID_STRING_SIZE];
    jack_uuid_t uuid = JACK_UUID_EMPTY_INITIALIZER;
    CHECK(jack_uuid_empty(uuid));
    jack_uuid_unparse(jack_port_uuid_generate(7), text);
    CHECK(strcmp(text, "4294967304") == 0);
    CHECK(jack_uuid_parse(text, &uuid) == 0 && uuid == jack_port_uuid_generate(7));
    CHECK(jack_uuid_to_index(uuid) == 7);
    jack_uuid_t copy = JACK_UUID_EMPTY_INITIALIZER;
    jack_uuid_copy(&copy, uuid);
    CHECK(jack_uuid_compare(copy, uuid) == 0);
    jack_uuid_clear(&copy);
    CHECK(jack_uuid_empty(copy));
    CHECK(jack_uuid_compare(jack_client_uuid_generate(), jack_client_uuid_generate()) != 0);
}

int main(void)
{
    jack_time_t first = jack_get_time();
    int numbers[4] = {9, 9, 9, 9};
    CHECK(first > 0 && first <= jack_get_time());
    jack_get_version(&numbers[0], &numbers[1], &numbers[2], &numbers[3]);
    CHECK(!numbers[0] && !numbers[1] && !numbers[2] && !numbers[3]);
    CHECK(strlen(jack_get_version_string()) > 0);
    jack_free(NULL);
    jack_free(malloc(1));
    message_functions();
    metadata_keys();
    uuids();
    return 0;
}
