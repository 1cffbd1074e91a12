/* A client without ports that connects, disconnects and watches on request.
 *
 *   patcher NAME
 *
 * Prints "ready" once a server has taken it (it tries for ten seconds), then answers, one line for one line:
 *   connect SOURCE TARGET      done RESULT BEFORE_NS AFTER_NS
 *   disconnect SOURCE TARGET   done RESULT BEFORE_NS AFTER_NS
 *   watch SOURCE TARGET        watching, and later: seen TIME_NS | unseen
 */
#include "timestamps.h"
#include <jack/jack.h>

#define WATCH_LIMIT_NS 5000000000ull
#define POLL_PAUSE_NS 10000

static jack_client_t *client;

static jack_client_t *open_patiently(const char *name) {
    for (int attempt = 0; attempt < 200; attempt++) {
        jack_client_t *opened = jack_client_open(name, JackNoStartServer | JackUseExactName, NULL);
        if (opened)
            return opened;
        usleep(50000);
    }
    say_and_fail("no server took this client within ten seconds");
    return NULL;
}

static void patch(int (*request)(jack_client_t *, const char *, const char *), const char *source,
                  const char *target) {
    uint64_t before_ns = now_ns();
    int result = request(client, source, target);
    uint64_t after_ns = now_ns();
    printf("done %d %llu %llu\n", result, (unsigned long long)before_ns, (unsigned long long)after_ns);
}

/* Short pauses between polls: a loop without them would take a whole CPU away from what is measured. */
static void watch(const char *source, const char *target) {
    jack_port_t *port = jack_port_by_name(client, source);
    if (!port) {
        puts("unseen");
        return;
    }
    puts("watching");
    fflush(stdout);
    const struct timespec pause = {.tv_nsec = POLL_PAUSE_NS};
    uint64_t begun_ns = now_ns();
    while (!jack_port_connected_to(port, target)) {
        if (now_ns() - begun_ns > WATCH_LIMIT_NS) {
            puts("unseen");
            return;
        }
        nanosleep(&pause, NULL);
    }
    printf("seen %llu\n", (unsigned long long)now_ns());
}

int main(int argc, char **argv) {
    end_with_parent();
    if (argc != 2)
        say_and_fail("usage: patcher NAME");
    prctl(PR_SET_TIMERSLACK, 1);
    client = open_patiently(argv[1]);
    puts("ready");
    fflush(stdout);
    char line[1024], verb[16], source[400], target[400];
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%15s %399s %399s", verb, source, target) != 3)
            puts("what?");
        else if (strcmp(verb, "connect") == 0)
            patch(jack_connect, source, target);
        else if (strcmp(verb, "disconnect") == 0)
            patch(jack_disconnect, source, target);
        else if (strcmp(verb, "watch") == 0)
            watch(source, target);
        else
            puts("what?");
        fflush(stdout);
    }
    jack_client_close(client);
    puts("closed");
    return 0;
}
