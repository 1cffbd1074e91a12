/* The part of hostile.c that states the same untruth about itself in every cycle. */

/* The client's own page, as rt/src/shm/own.rs lays it out. */
struct own_page {
    uint32_t magic, kind, version, reserved;
    _Atomic uint32_t awake, finished, driver_sleeping, demoted, polls, unused;
    _Atomic uint64_t sync;
    struct {
        _Alignas(64) _Atomic uint64_t awake_ns, finished_ns;
        _Atomic uint32_t cpu;
    } cells[2];
    _Alignas(64) _Atomic uint32_t requested, roll;
    _Atomic uint64_t sync_timeout;
};

enum { OWN_PAGE = 4 };

static struct own_page *own_page(void) {
    for (int i = 0; i < range_count; i++)
        if (ranges[i].is_writable && ((uint32_t *)ranges[i].begin)[1] == OWN_PAGE)
            return (struct own_page *)ranges[i].begin;
    abort();
}

/* It has finished each cycle in time, but never began it. */
static void lie_not_begun(struct own_page *own) { own->awake = own->finished - 1000; }

/* It has finished each cycle before it begins. */
static void lie_early(struct own_page *own) { own->finished = own->awake + 1; }

/* It never finishes an odd cycle. */
static void lie_every_other(struct own_page *own) {
    uint32_t finished = own->finished;
    if (finished % 2 == 1)
        own->finished = finished - 1;
}

/* It begins before the machine was started, and finishes in centuries. */
static void lie_durations(struct own_page *own) {
    for (int i = 0; i < 2; i++) {
        own->cells[i].awake_ns = 1;
        own->cells[i].finished_ns = UINT64_MAX;
        own->cells[i].cpu = UINT32_MAX - 1;
    }
}

/* It needs more time before the transport rolls, always, and asks for the longest. */
static void lie_never_ready(struct own_page *own) {
    own->sync = 2ull << 32;
    own->sync_timeout = UINT64_MAX;
    own->roll = 1;
    own->requested = 1;
}

/* Another wish for the transport in each cycle. */
static void lie_transport(struct own_page *own) {
    own->roll = 1 + own->awake % 2;
    own->requested = 1;
}

/* It runs, and polls as one that waits. */
static void lie_idle(struct own_page *own) {
    own->polls++;
    own->demoted = 0;
    own->driver_sleeping = own->awake % 2;
}

static const struct lie {
    const char *name;
    void (*tell)(struct own_page *);
} lies[] = {{"not-begun", lie_not_begun}, {"early", lie_early}, {"every-other", lie_every_other}, {"durations", lie_durations},
            {"never-ready", lie_never_ready}, {"transport", lie_transport}, {"idle", lie_idle}};
static const struct lie *told;

/* Where the process callback lies: from the first lie until the last. */
static struct own_page *_Atomic lied_on;

/* The end of a process callback: when it lies, the driver waits for this cycle already. */
static void lie_in_cycle(void) {
    struct own_page *own = atomic_load(&lied_on);
    if (!own)
        return;
    for (double until_s = now_s() + 0.0003; now_s() < until_s;)
        ;
    told->tell(own);
}

/* The library writes the truth after each callback; this thread replaces it soon after. */
static void lie(void) {
    struct own_page *own = own_page();
    atomic_store(&lied_on, own);
    rise();
    while (now_s() < end_s) {
        told->tell(own);
        usleep(20);
    }
    atomic_store(&lied_on, NULL);
}

static int is_lie(const char *name) {
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        if (strcmp(name, lies[i].name) == 0)
            told = &lies[i];
    return told != NULL;
}
