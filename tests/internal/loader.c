/* What jack/intclient.h declares, and the two calls of jack.h that it replaces, against a server that runs. Prints what
 * is wrong and ends with 1, or ends with 0. The plug-in `plug_in` must be where the server looks. */
#include <jack/intclient.h>
#include <jack/jack.h>
#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int failures;

static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    failures++;
}
#define CHECK(condition) check(condition, __LINE__, #condition)

static jack_client_t *client;

static void loads_and_finds(void) {
    jack_status_t status = 99;
    jack_options_t both = JackLoadName | JackLoadInit;
    jack_intclient_t first = jack_internal_client_load(client, "first", both, &status, "plug_in", "");
    CHECK(first != 0 && status == 0);
    jack_intclient_t second = jack_internal_client_load(client, "first", both, &status, "plug_in", "");
    CHECK(second != 0 && second != first && status == JackNameNotUnique);
    char *name = jack_get_internal_client_name(client, second);
    CHECK(name && strcmp(name, "first-01") == 0);
    status = 99;
    CHECK(jack_internal_client_handle(client, name, &status) == second && status == 0);
    jack_free(name);
    CHECK(jack_port_by_name(client, "first:out") && jack_port_by_name(client, "first-01:in"));
    CHECK(jack_internal_client_load(client, "first", both | JackUseExactName, &status, "plug_in", "") == 0);
    CHECK(status == (JackFailure | JackNameNotUnique));
    CHECK(jack_internal_client_unload(client, first) == 0);
    CHECK(!jack_port_by_name(client, "first:out"));
    CHECK(jack_internal_client_unload(client, first) == (JackFailure | JackNoSuchClient));
    CHECK(jack_get_internal_client_name(client, first) == NULL);
    CHECK(jack_internal_client_handle(client, "first", &status) == 0);
    CHECK(status == (JackFailure | JackNoSuchClient));
    /* Its own id belongs to no other client. */
    jack_intclient_t third = jack_internal_client_load(client, "first", both, NULL, "plug_in", "");
    CHECK(third != 0 && third != first && third != second);
    CHECK(jack_internal_client_unload(client, third) == 0);
    CHECK(jack_internal_client_unload(client, second) == 0);
}

static void named_as_its_file(void) {
    jack_status_t status = 99;
    jack_intclient_t loaded = jack_internal_client_load(client, "plug_in", JackNullOption, &status);
    CHECK(loaded != 0 && status == 0);
    CHECK(jack_internal_client_unload(client, loaded) == 0);
    loaded = jack_internal_client_load(client, "plug_in", JackLoadInit, &status, "refuse");
    CHECK(loaded == 0 && status == (JackFailure | JackInitFailure));
}

static void refuses(const char *name, const char *object, jack_status_t expected) {
    jack_status_t status = 99;
    CHECK(jack_internal_client_load(client, name, JackLoadName, &status, object) == 0);
    check(status == (JackFailure | expected), __LINE__, object);
}

static void nonsense(void) {
    jack_status_t status = 99;
    CHECK(jack_internal_client_load(client, "a", JackServerName, &status, "b") == 0);
    CHECK(status == (JackFailure | JackInvalidOption));
    CHECK(jack_internal_client_load(client, NULL, JackLoadName, NULL, "plug_in") == 0);
    CHECK(jack_internal_client_handle(client, NULL, &status) == 0);
    refuses("a", "no_such_plug_in", JackLoadFailure);
    refuses("a", "../lib/jack/plug_in", JackLoadFailure);
    refuses("a", "/usr/lib/x86_64-linux-gnu/jack/inprocess", JackLoadFailure);
    refuses("a", "--exact", JackLoadFailure);
    refuses("a", "plug_in\n", JackLoadFailure);
    refuses("a", "no_functions", JackLoadFailure);
    refuses("a", "no_object", JackLoadFailure);
    refuses("", "plug_in", JackLoadFailure);
    char long_text[3000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    refuses(long_text, "plug_in", JackLoadFailure);
    refuses("a", long_text, JackLoadFailure);
    CHECK(jack_internal_client_load(client, "a", JackLoadName | JackLoadInit, &status, "plug_in", long_text) == 0);
    CHECK(status == (JackFailure | JackLoadFailure));
    CHECK(jack_internal_client_unload(client, 0) == (JackFailure | JackNoSuchClient));
    CHECK(jack_internal_client_unload(client, ~0ull) == (JackFailure | JackNoSuchClient));
}

static void without_a_client(void) {
    CHECK(jack_internal_client_new("old", "plug_in", "") == 0);
    CHECK(jack_port_by_name(client, "old:out") != NULL);
    CHECK(jack_internal_client_new("old", "plug_in", "") == -1);
    CHECK(jack_internal_client_new(NULL, "plug_in", "") == -1);
    CHECK(jack_internal_client_new("old", NULL, NULL) == -1);
    jack_internal_client_close("old");
    CHECK(jack_port_by_name(client, "old:out") == NULL);
    jack_internal_client_close("old");
    jack_internal_client_close(NULL);
}

int main(void) {
    client = jack_client_open("loader", JackNoStartServer, NULL);
    if (!client)
        return 2;
    loads_and_finds();
    named_as_its_file();
    nonsense();
    without_a_client();
    const char **ports = jack_get_ports(client, "(first|old|plug_in|a):", NULL, 0);
    CHECK(ports == NULL);
    jack_free(ports);
    jack_client_close(client);
    return failures != 0;
}
