/* The parts of probe.c that keep and overwrite the memory that it shares. */
enum { RANGES = 256 };

struct range {
    char *begin, *end;
};

/* The shared memory that this process can write. */
static int find_shared(struct range *ranges) {
    int count = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps) && count < RANGES) {
        unsigned long begin, end;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && rights[1] == 'w' && rights[3] == 's') {
            ranges[count].begin = (char *)begin;
            ranges[count++].end = (char *)end;
        }
    }
    if (maps)
        fclose(maps);
    return count;
}

/* Maps all of it a second time, so that it stays when the library gives it up. */
static void hoard(void) {
    struct range ranges[RANGES];
    int count = find_shared(ranges);
    for (int i = 0; i < count; i++)
        if (mremap(ranges[i].begin, 0, (size_t)(ranges[i].end - ranges[i].begin), MREMAP_MAYMOVE) == MAP_FAILED)
            abort();
    say("hoarded\n");
}

/* Overwrites every byte of shared memory that this process can write, again and again for ten seconds. */
static void scribble(void) {
    struct range ranges[RANGES];
    int count = find_shared(ranges);
    printf("scribbling over %d mappings\n", count);
    fflush(stdout);
    uint64_t seed = 88172645463325252ull;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < count; i++)
            for (uint64_t *at = (uint64_t *)ranges[i].begin; (char *)at < ranges[i].end; at++) {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                *(volatile uint64_t *)at = seed;
            }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 10);
    printf("scribbled\n");
    fflush(stdout);
}
