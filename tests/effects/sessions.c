/*
 * A session manager and its clients in one process: prints what is wrong and ends with 1, or ends with 0.
 */
#include <jack/jack.h>
#include <jack/session.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define KEPT_UUID "8589999999"

static atomic_int failures;
static jack_client_t *manager, *saver;
static char seen_directory[4096];
static int seen_type;

static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    atomic_fetch_add(&failures, 1);
}
#define CHECK(condition) check(condition, __LINE__, #condition)

static int is_text(const char *text, const char *expected) { return text && strcmp(text, expected) == 0; }

static void on_session(jack_session_event_t *event, void *client) {
    char command[256];
    snprintf(seen_directory, sizeof seen_directory, "%s", event->session_dir);
    seen_type = (int)event->type;
    /* While the manager waits for this client, it cannot start another session. */
    CHECK(jack_session_notify(*(jack_client_t **)client, NULL, JackSessionSave, "/tmp") == NULL);
    snprintf(command, sizeof command, "saver %s", event->client_uuid);
    event->command_line = strdup(command);
    event->flags = JackSessionNeedTerminal;
    CHECK(jack_session_reply(*(jack_client_t **)client, event) == 0);
    CHECK(jack_session_reply(*(jack_client_t **)client, event) == -1); /* once */
    jack_session_event_free(event);
}

static void asks_and_is_answered(const char *directory) {
    char expected[4096], *uuid = jack_client_get_uuid(saver);
    jack_session_command_t *commands = jack_session_notify(manager, NULL, JackSessionSaveTemplate, directory);
    CHECK(commands && commands[0].uuid && !commands[1].uuid);
    if (commands && commands[0].uuid) {
        CHECK(is_text(commands[0].uuid, uuid));
        CHECK(is_text(commands[0].client_name, "saver"));
        snprintf(expected, sizeof expected, "saver %s", uuid);
        CHECK(is_text(commands[0].command, expected));
        CHECK(commands[0].flags == JackSessionNeedTerminal);
    }
    jack_session_commands_free(commands);
    snprintf(expected, sizeof expected, "%s/saver/", directory);
    CHECK(is_text(seen_directory, expected));
    CHECK(seen_type == JackSessionSaveTemplate);
    /* A client without a callback has nothing to answer. */
    commands = jack_session_notify(manager, "manager", JackSessionSave, directory);
    CHECK(commands && !commands[0].uuid);
    jack_session_commands_free(commands);
    CHECK(jack_session_notify(manager, "nobody", JackSessionSave, directory) == NULL);
    CHECK(jack_session_notify(manager, NULL, (jack_session_event_type_t)9, directory) == NULL);
    CHECK(jack_client_has_session_callback(manager, "saver") == 1);
    CHECK(jack_client_has_session_callback(manager, "manager") == 0);
    CHECK(jack_client_has_session_callback(manager, "nobody") == -1);
    jack_free(uuid);
}

static void keeps_names(void) {
    CHECK(jack_reserve_client_name(manager, "kept", KEPT_UUID) == 0);
    CHECK(jack_reserve_client_name(manager, "kept", "8589999998") == -1); /* it is another's */
    CHECK(jack_reserve_client_name(manager, "saver", "8589999998") == -1); /* it is in use */
    CHECK(jack_reserve_client_name(manager, "kept", "no uuid") == -1);
    jack_client_t *other = jack_client_open("kept", JackNoStartServer, NULL);
    CHECK(other && is_text(jack_get_client_name(other), "kept-01"));
    jack_client_t *kept = jack_client_open("any", JackNoStartServer | JackSessionID, NULL, KEPT_UUID);
    CHECK(kept && is_text(jack_get_client_name(kept), "kept"));
    char *uuid = jack_client_get_uuid(kept), *name = jack_get_client_name_by_uuid(manager, KEPT_UUID);
    CHECK(is_text(uuid, KEPT_UUID));
    CHECK(is_text(name, "kept"));
    jack_free(uuid);
    jack_free(name);
    CHECK(jack_client_close(kept) == 0 && jack_client_close(other) == 0);
}

int main(int count, char **words) {
    manager = jack_client_open("manager", JackNoStartServer, NULL);
    saver = jack_client_open("saver", JackNoStartServer, NULL);
    if (count < 2 || !manager || !saver)
        return 2;
    CHECK(jack_set_session_callback(saver, on_session, &saver) == 0);
    CHECK(jack_activate(manager) == 0 && jack_activate(saver) == 0);
    CHECK(jack_set_session_callback(saver, on_session, &saver) == -1); /* not on an active client */
    asks_and_is_answered(words[1]);
    keeps_names();
    CHECK(jack_client_close(saver) == 0 && jack_client_close(manager) == 0);
    return atomic_load(&failures) != 0;
}
