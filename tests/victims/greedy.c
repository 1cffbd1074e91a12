/* A program that has the driver play as much as it can: `greedy CLIENTS OUTPUTS PLAYBACKS`.
 *
 * It opens clients and connects each of their outputs with each of the first PLAYBACKS ports of the driver, until it is
 * refused as often in a row as a client has outputs. It prints how many connections were made, then "ready"; SIGTERM ends it.
 */
#include <jack/jack.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static void ignore(const char *message) { (void)message; }

static int process(jack_nframes_t frames, void *context) {
    (void)frames, (void)context;
    return 0;
}

int main(int count, char **arguments) {
    int clients = count == 4 ? atoi(arguments[1]) : 0;
    int outputs = count == 4 ? atoi(arguments[2]) : 0, playbacks = count == 4 ? atoi(arguments[3]) : 0;
    int made = 0, refused = 0;
    char name[64];
    sigset_t end;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    jack_set_error_function(ignore);
    for (int i = 0; i < clients && refused < outputs; i++) {
        jack_client_t *client = jack_client_open("greedy", JackNoStartServer, NULL);
        if (!client)
            return 1;
        jack_set_process_callback(client, process, NULL);
        for (int o = 0; o < outputs; o++) {
            snprintf(name, sizeof name, "out-%d", o);
            if (!jack_port_register(client, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0))
                return 1;
        }
        if (jack_activate(client) != 0)
            return 1;
        for (int pair = 0; pair < outputs * playbacks && refused < outputs; pair++) {
            char from[64];
            snprintf(from, sizeof from, "%s:out-%d", jack_get_client_name(client), pair / playbacks);
            snprintf(name, sizeof name, "system:playback_%d", 1 + pair % playbacks);
            if (jack_connect(client, from, name) == 0)
                made++, refused = 0;
            else
                refused++;
        }
    }
    printf("made %d\nready\n", made);
    fflush(stdout);
    int taken;
    sigwait(&end, &taken);
    return 0;
}
