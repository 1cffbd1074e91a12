/* The part of probe.c that notes what a monitor lost: cycles that it did not run or did not hear as they were sent, and those
 * that the driver skipped. */

/* What a monitor noticed, for the main thread to print. */
enum { LOSSES = 65536 };
static struct loss {
    const char *kind;
    unsigned long cycles;
    long long time_ns;
} losses[LOSSES];
static atomic_uint lost;
static int is_monitor;

static long long monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void note_loss_at(const char *kind, unsigned long count, long long time_ns) {
    unsigned at = atomic_load(&lost);
    if (!is_monitor || count == 0 || at == LOSSES)
        return;
    losses[at] = (struct loss){kind, count, time_ns};
    atomic_store(&lost, at + 1);
}

static void note_loss(const char *kind, unsigned long count) { note_loss_at(kind, count, monotonic_ns()); }

static void print_losses(void) {
    static unsigned printed;
    for (; printed < atomic_load(&lost); printed++)
        printf("lost %s %lu at %lld\n", losses[printed].kind, losses[printed].cycles, losses[printed].time_ns);
    fflush(stdout);
}

static void count_missed(jack_nframes_t frames) {
    jack_nframes_t now = jack_last_frame_time(client);
    if (expected_time != 0 && now != expected_time && frames != 0) {
        unsigned long count = (unsigned long)((now - expected_time) / frames);
        atomic_fetch_add(&missed, count);
        note_loss("missed", count);
    }
    expected_time = now + frames;
}

/* Cycles that the driver skipped: the clock has run ahead of the frames in all of some cycles, not in one that was late. */
static void count_skipped(jack_nframes_t frames, jack_nframes_t rate) {
    enum { CYCLES = 8 };
    static jack_nframes_t last;
    static long long clock_ahead_ns, clock_ns, known_ns, least_ns, since_ns;
    static int count = -CYCLES;
    long long now_ns = monotonic_ns(), period_ns = frames * 1000000000ll / rate;
    jack_nframes_t now = jack_last_frame_time(client);
    if (clock_ns != 0)
        clock_ahead_ns += now_ns - clock_ns - (jack_nframes_t)(now - last) * 1000000000ll / rate;
    last = now, clock_ns = now_ns;
    if (count == -CYCLES || count == 0 || clock_ahead_ns < least_ns)
        least_ns = clock_ahead_ns;
    if (clock_ahead_ns - known_ns < period_ns * 3 / 4)
        since_ns = 0;
    else if (since_ns == 0)
        since_ns = now_ns;
    if (++count == 0)
        known_ns = least_ns;
    if (count < CYCLES)
        return;
    if (least_ns - known_ns >= period_ns * 3 / 4) {
        note_loss_at("skipped", (unsigned long)((least_ns - known_ns + period_ns / 4) / period_ns), since_ns);
        since_ns = 0;
    }
    /* What ran ahead in the middle of these cycles is known after the next ones: it keeps its time. */
    known_ns = least_ns, count = 0;
}
