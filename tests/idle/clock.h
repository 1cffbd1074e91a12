/* Compares the frame clock of a client with the time that passes. */
#include <jack/jack.h>

struct clock_check {
    double per_us;
    jack_time_t begin;
    jack_nframes_t first, last;
    /* How often it went backwards, and by how many frames at most it differed. */
    unsigned backwards;
    double ahead, behind;
};

static struct clock_check begin_check(jack_client_t *client) {
    const jack_time_t begin = jack_get_time();
    const jack_nframes_t first = jack_frame_time(client);
    return (struct clock_check){jack_get_sample_rate(client) / 1e6, begin, first, first, 0, 0, 0};
}

/* Reads it once more; returns the time of that. */
static jack_time_t check_clock(struct clock_check *check, jack_client_t *client) {
    const jack_time_t before = jack_get_time();
    const jack_nframes_t now = jack_frame_time(client);
    const jack_time_t after = jack_get_time();
    check->backwards += (int32_t)(now - check->last) < 0;
    check->last = now;
    const double passed = (double)(now - check->first);
    const double ahead = passed - (double)(after - check->begin) * check->per_us;
    const double behind = (double)(before - check->begin) * check->per_us - passed;
    if (ahead > check->ahead)
        check->ahead = ahead;
    if (behind > check->behind)
        check->behind = behind;
    return after;
}

static void print_check(const struct clock_check *check) {
    printf("backwards %u, ahead %.0f, behind %.0f\n", check->backwards, check->ahead, check->behind);
}
