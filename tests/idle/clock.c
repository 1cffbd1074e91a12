/* An inactive client that reads the frame clock all the time, for the seconds of its argument, and
 * prints whether it went backwards, and by how many frames at most it differed from the time that
 * passed. */
#include <inttypes.h>
#include <jack/jack.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
    jack_client_t *client = jack_client_open("clock", JackNoStartServer, NULL);
    if (!client || count < 2)
        return 1;
    const double per_us = jack_get_sample_rate(client) / 1e6;
    const jack_time_t begin = jack_get_time();
    const jack_nframes_t first = jack_frame_time(client);
    const jack_time_t end = begin + (jack_time_t)(atof(arguments[1]) * 1e6);
    jack_nframes_t last = first;
    uint64_t backwards = 0;
    double ahead = 0, behind = 0;
    jack_time_t after = begin;
    while (after < end) {
        const jack_time_t before = jack_get_time();
        const jack_nframes_t now = jack_frame_time(client);
        after = jack_get_time();
        backwards += (int32_t)(now - last) < 0;
        last = now;
        const double passed = (double)(now - first);
        if (passed - (double)(after - begin) * per_us > ahead)
            ahead = passed - (double)(after - begin) * per_us;
        if ((double)(before - begin) * per_us - passed > behind)
            behind = (double)(before - begin) * per_us - passed;
    }
    printf("backwards %" PRIu64 ", ahead %.0f, behind %.0f\n", backwards, ahead, behind);
    return jack_client_close(client);
}
