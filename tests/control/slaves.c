/* Adds drivers to a server's own by control.h: a card (argument 1) whose client has the port of argument 2, and MIDI. Prints
 * what is wrong and ends with 1, or ends with 0. */
#include <jack/control.h>
#include <jack/jack.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures;

static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    failures++;
}
#define CHECK(condition) check(condition, __LINE__, #condition)

static jackctl_driver_t *driver_of(jackctl_server_t *server, const char *name) {
    for (const JSList *node = jackctl_server_get_drivers_list(server); node; node = jack_slist_next(node))
        if (strcmp(jackctl_driver_get_name(node->data), name) == 0)
            return node->data;
    return NULL;
}

static bool uses(jackctl_driver_t *alsa, const char *card) {
    char device[128];
    snprintf(device, sizeof device, "-d%s", card);
    char *words[] = {"alsa", device};
    return jackctl_driver_params_parse(alsa, 2, words) == 0;
}

/* Whether the server has ports that match, after at most 30 s if it is to have some. */
static bool has(const char *pattern, bool is_awaited) {
    jack_client_t *client = jack_client_open("looks", JackNoStartServer | JackServerName, NULL, "with-slaves");
    if (!client)
        return false;
    const char **ports = NULL;
    for (int tries = is_awaited ? 3000 : 1; tries && !ports; tries--) {
        ports = jack_get_ports(client, pattern, NULL, 0);
        if (!ports)
            usleep(10000);
    }
    jack_client_close(client);
    bool found = ports != NULL;
    jack_free(ports);
    return found;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    const char *card = argv[1], *port = argv[2];
    jackctl_server_t *server = jackctl_server_create2(NULL, NULL, NULL);
    jackctl_driver_t *dummy = driver_of(server, "dummy");
    jackctl_driver_t *alsa = driver_of(server, "alsa"), *midi = driver_of(server, "alsarawmidi");
    char *words[] = {"dummy", "-p512"};
    union jackctl_parameter_value name = {.str = "with-slaves"};
    for (const JSList *node = jackctl_server_get_parameters(server); node; node = jack_slist_next(node))
        if (strcmp(jackctl_parameter_get_name(node->data), "name") == 0)
            CHECK(jackctl_parameter_set_value(node->data, &name));
    CHECK(jackctl_driver_params_parse(dummy, 2, words) == 0);

    /* Before it starts: with the parameters that are set now, not with later ones. */
    CHECK(uses(alsa, card) && jackctl_server_add_slave(server, alsa) && uses(alsa, "hw:nowhere"));
    CHECK(jackctl_server_open(server, dummy) && jackctl_server_start(server));
    CHECK(has(port, false));
    CHECK(jackctl_server_remove_slave(server, alsa) && !has(port, false));
    CHECK(!jackctl_server_remove_slave(server, alsa));

    /* While the server runs. */
    CHECK(!jackctl_server_add_slave(server, alsa) && !jackctl_server_remove_slave(server, alsa));
    CHECK(jackctl_server_add_slave(server, midi) && has("^midi:", true));
    CHECK(uses(alsa, card) && jackctl_server_add_slave(server, alsa) && has(port, false));

    /* A server that is stopped and started has them again; one that was closed does not. */
    CHECK(jackctl_server_stop(server) && jackctl_server_start(server) && has(port, false) && has("^midi:", true));
    CHECK(jackctl_server_remove_slave(server, midi) && !has("^midi:", false) && has(port, false));
    CHECK(jackctl_server_close(server) && jackctl_server_open(server, dummy) && !has(port, false));
    CHECK(!jackctl_server_remove_slave(server, alsa));
    CHECK(jackctl_server_close(server));
    jackctl_server_destroy(server);
    return failures != 0;
}
