/* An inactive client that reads the frame clock all the time, for the seconds of its argument, and
 * prints whether it went backwards, and by how many frames at most it differed from the time that
 * passed. */
#include <stdio.h>
#include <stdlib.h>
#include "clock.h"

int main(int count, char **arguments) {
    jack_client_t *client = jack_client_open("clock", JackNoStartServer, NULL);
    if (!client || count < 2)
        return 1;
    struct clock_check check = begin_check(client);
    const jack_time_t end = check.begin + (jack_time_t)(atof(arguments[1]) * 1e6);
    while (check_clock(&check, client) < end)
        ;
    print_check(&check);
    return jack_client_close(client);
}
