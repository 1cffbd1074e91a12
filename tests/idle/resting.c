/* A client with ports that is never activated. Says "rests", and waits. */
#include <jack/jack.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    jack_client_t *client = jack_client_open("resting", JackNoStartServer, NULL);
    if (!client)
        return 1;
    if (!jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0))
        return 2;
    puts("rests");
    fflush(stdout);
    for (;;)
        pause();
}
