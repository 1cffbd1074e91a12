/*
 * What no server of this release can do yet: each function answers its documented error to a client that is open,
 * active and in order, and never a made-up success. Prints what is wrong and ends with 1, or ends with 0.
 *
 * When one of them gets its effect, its lines here go and its line in functions.txt names another test.
 */
#include <jack/intclient.h>
#include <jack/jack.h>
#include <stdatomic.h>
#include <stdio.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static jack_client_t *client;
static atomic_int failures;

static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    atomic_fetch_add(&failures, 1);
}
#define CHECK(condition) check(condition, __LINE__, #condition)

static void internal_clients(void) {
    jack_status_t status = 0;
    CHECK(jack_internal_client_load(client, "a", JackLoadName, &status, "inprocess") == 0);
    CHECK(status == (JackFailure | JackLoadFailure));
    CHECK(jack_internal_client_handle(client, "a", &status) == 0);
    CHECK(status == (JackFailure | JackNoSuchClient));
    CHECK(jack_get_internal_client_name(client, 1) == NULL);
    CHECK(jack_internal_client_unload(client, 1) == (JackFailure | JackNoSuchClient));
    CHECK(jack_internal_client_new("a", "inprocess", "") == -1);
    jack_internal_client_close("a");
}

int main(void) {
    client = jack_client_open("later", JackNoStartServer, NULL);
    if (!client)
        return 2;
    CHECK(jack_activate(client) == 0);
    internal_clients();
    CHECK(jack_client_close(client) == 0);
    return atomic_load(&failures) != 0;
}
