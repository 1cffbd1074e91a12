/* The sound that the programs here play: frames that never repeat within some seconds, those of ramps() in main.rs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RATE_HZ = 48000, CHANNELS = 2 };

/* Frames FIRST and on, up to END; silence after it. */
static void ramps(int16_t *samples, long first, long count, long end) {
    for (long frame = first; frame < first + count; frame++, samples += CHANNELS) {
        samples[0] = frame < end ? (int16_t)(1 + frame * 7 % 30011) : 0;
        samples[1] = frame < end ? (int16_t)-(1 + frame * 5 % 29989) : 0;
    }
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why ? why : "no reason given");
    exit(1);
}
