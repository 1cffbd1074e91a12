/* Opens a client at the server SERVER, and one at the server that the environment names, as C passes a variadic
 * argument or none; what the calls find on the stack stays as it was: open SERVER. Prints the clients' names. */
#include <jack/jack.h>
#include <stdio.h>
#include <string.h>

#define GUARD 0x5a

static int opened(const char *server) {
    volatile char guard[64];
    memset((void *)guard, GUARD, sizeof guard);
    jack_status_t status;
    jack_client_t *client = server ? jack_client_open("named", JackNoStartServer | JackServerName, &status, server)
                                   : jack_client_open("plain", JackNoStartServer, &status);
    for (size_t at = 0; at < sizeof guard; at++)
        if (guard[at] != GUARD)
            return 2;
    if (!client)
        return 1;
    puts(jack_get_client_name(client));
    return jack_client_close(client);
}

int main(int count, char **words) {
    int named = count == 2 ? opened(words[1]) : 3;
    return named ? named : opened(0);
}
