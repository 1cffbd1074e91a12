/* Clients for tests of faults and of sound, in plain JACK: nothing here knows how the server works.
 *
 *   probe source NAME          out: for each frame its number, so that a reader can tell every sample
 *   probe swap NAME --to PORT  out: as source; again and again its port goes, one that no client hears comes, and then
 *                              another out, which it connects with PORT; prints "swapped" each time
 *   probe check NAME           in: counts cycles whose samples are the right ones, silence, or wrong
 *   probe monitor NAME         check that also prints each loss: "lost KIND CYCLES at TIME", CLOCK_MONOTONIC ns
 *   probe thru NAME            in -> out; at SIGUSR1 the fault that --fault names happens inside process;
 *                              with --fault write-input it makes what it hears silent once it has copied it,
 *                              and writes to address 0 at SIGUSR1; --handler before|after installs a handler for
 *                              SIGSEGV before it opens the client, or once it is active, that ends it with code 7;
 *                              with --fault block-buffer-size its buffer-size callback returns after SIGUSR1;
 *                              with --fault block-freewheel its freewheel callback returns after SIGUSR1;
 *                              with --fault block-notice a callback that tells of ports never returns;
 *                              with --fault fifth it sleeps a fifth of each cycle from then on;
 *                              with --fault every-other it sleeps in every other cycle until the next is due;
 *                              with --fault big-kill or big-crash it has 1 GB of memory, and a core to write.
 *                              It prints "running" before the fault, inside process, and "ran" if it comes to
 *                              the end of that cycle. Not inside process happen: scribble, hoard (it keeps what
 *                              it shares for ever, and scribbles at the next SIGUSR1), flood (it asks the
 *                              server without end, from four threads), no-descriptors (it opens all it can). From the
 *                              start on, with --fault keep-descriptors, nothing is closed that the library has open
 *
 *   probe follow NAME          out: for each frame of the piece its number while the transport rolls, else silence;
 *                              with --slow N it is ready to roll when it is asked for the Nth time;
 *                              with --sync-timeout S the transport waits for slow clients for S seconds
 *   probe conduct NAME         in: a sample of 1 starts the transport, 0.5 moves it to frame 100000, 0.25 stops it,
 *                              all from the process callback
 *   probe lead NAME            the timebase master: the piece has a bar for each 1000 frames
 *   probe clock NAME           asks for the frame time without end; prints at SIGTERM how often, and by how many frames at
 *                              most it was less than the time before: "asked N back N"
 *
 * check, monitor, conduct and thru connect to the port given by --from once they are active. All print one line when they
 * are ready ("ready") and check and monitor print their counts at SIGTERM:
 *   cycles N good N silent N wrong N missed N
 * It ends with code 9 at once if it hears a port that has no connection.
 * "missed" counts cycles that the client itself did not run, by the frame time. A monitor also prints as "skipped" what the
 * driver did not run: the frame time goes on by one cycle then, and the clock by several. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <jack/jack.h>
#include <jack/transport.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static jack_client_t *client;
static jack_port_t *input, *_Atomic output, *_Atomic unheard;
static const char *fault = "none";
static int slow = 1, sync_timeout_s;
static int writes_input, happens_inside = 1;
static atomic_int said;
static atomic_int fault_now, quit, shutdown_seen;
static atomic_ulong cycles, good, silent, wrong, missed;
static jack_nframes_t expected_time;
static atomic_int settled;

/* A sample that tells its frame: never 0, exact in a float. */
static float sample_of(jack_nframes_t frame) { return (float)((frame & 0xfffff) + 1) / 2097152.0f; }

#include "probe_losses.h"

static void write_source(jack_port_t *port, jack_nframes_t frames) {
    float *out = jack_port_get_buffer(port, frames);
    jack_nframes_t now = jack_last_frame_time(client);
    for (jack_nframes_t i = 0; i < frames; i++)
        out[i] = sample_of(now + i);
}

static int run_source(jack_nframes_t frames, void *unused) {
    (void)unused;
    write_source(output, frames);
    return 0;
}

/* A sample that no client may hear, and that no source sends. */
static const float UNHEARD = 0.75f;
static atomic_ulong swap_cycles;

static int run_swap(jack_nframes_t frames, void *unused) {
    jack_port_t *heard = atomic_load(&output), *now_unheard = atomic_load(&unheard);
    (void)unused;
    if (heard)
        write_source(heard, frames);
    if (now_unheard) {
        float *out = jack_port_get_buffer(now_unheard, frames);
        for (jack_nframes_t i = 0; i < frames; i++)
            out[i] = UNHEARD;
    }
    atomic_fetch_add(&swap_cycles, 1);
    return 0;
}

static int run_check(jack_nframes_t frames, void *unused) {
    const float *in = jack_port_get_buffer(input, frames);
    jack_nframes_t now = jack_last_frame_time(client);
    int is_silent = 1, is_good = 1;
    (void)unused;
    for (jack_nframes_t i = 0; i < frames; i++) {
        if (in[i] != 0.0f)
            is_silent = 0;
        if (in[i] != sample_of(now + i))
            is_good = 0;
        if (in[i] == UNHEARD)
            _exit(9);
    }
    /* Counting begins with the first good cycle: before it, the connection is still being made. */
    if (is_good)
        atomic_store(&settled, 1);
    if (!atomic_load(&settled))
        return 0;
    count_missed(frames);
    if (is_monitor)
        count_skipped(frames, jack_get_sample_rate(client));
    atomic_fetch_add(&cycles, 1);
    atomic_fetch_add(is_good ? &good : is_silent ? &silent : &wrong, 1);
    note_loss(is_silent ? "silent" : "wrong", !is_good);
    return 0;
}

static int keeps_descriptors;

/* In place of the C library's, for libjack as well. */
int close(int descriptor) { return keeps_descriptors ? 0 : (int)syscall(SYS_close, descriptor); }

static void sleep_ns(long ns) {
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    nanosleep(&time, NULL);
}

static void say(const char *word) {
    if (write(1, word, strlen(word)) < 0)
        abort();
}

/* Inside process: the others learn of the end of this program when all its memory has been given back. */
static void grow(void) {
    size_t bytes = (size_t)1 << 30;
    char *memory = malloc(bytes);
    if (!memory)
        abort();
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 1;
}

static void sleep_until_next(void) {
    jack_nframes_t frames;
    jack_time_t now, next;
    float period;
    if (jack_get_cycle_times(client, &frames, &now, &next, &period) != 0)
        abort();
    now = jack_get_time();
    if (next > now)
        sleep_ns((long)(next - now) * 1000);
}

static void happen(jack_nframes_t frames) {
    static int is_odd;
    double period = (double)frames / jack_get_sample_rate(client);
    if (strcmp(fault, "hang") == 0) {
        for (;;)
            ;
    } else if (strcmp(fault, "sleep") == 0) {
        for (;;)
            sleep_ns(1000000000);
    } else if (strcmp(fault, "kill") == 0 || strcmp(fault, "big-kill") == 0) {
        kill(getpid(), SIGKILL);
    } else if (strcmp(fault, "crash") == 0 || strcmp(fault, "big-crash") == 0 || writes_input) {
        *(volatile int *)0 = 1;
    } else if (strcmp(fault, "exit") == 0) {
        _exit(3);
    } else if (strcmp(fault, "end-thread") == 0) {
        syscall(SYS_exit, 0);
    } else if (strcmp(fault, "slow") == 0) {
        sleep_ns((long)(3 * period * 1e9));
    } else if (strcmp(fault, "fifth") == 0) {
        sleep_ns((long)(period * 1e9 / 5));
    } else if (strcmp(fault, "every-other") == 0) {
        is_odd = !is_odd;
        if (is_odd)
            sleep_until_next();
    } else if (strcmp(fault, "slow-once") == 0) {
        sleep_ns((long)(20 * period * 1e9));
        atomic_store(&fault_now, 0);
    } else if (strcmp(fault, "stop") == 0) {
        atomic_store(&fault_now, 0);
        kill(getpid(), SIGSTOP);
    }
}

static int run_thru(jack_nframes_t frames, void *unused) {
    const float *in = jack_port_get_buffer(input, frames);
    float *out = jack_port_get_buffer(output, frames);
    (void)unused;
    memcpy(out, in, frames * sizeof(float));
    if (writes_input)
        memset(jack_port_get_buffer(input, frames), 0, frames * sizeof(float));
    if (atomic_load(&fault_now) && happens_inside) {
        if (!atomic_exchange(&said, 1))
            say("running\n");
        happen(frames);
        if (atomic_exchange(&said, 2) == 1)
            say("ran\n");
    }
    return 0;
}

static void on_port(jack_port_id_t port, int registered, void *unused) {
    (void)port, (void)registered, (void)unused;
    while (atomic_load(&fault_now))
        sleep_ns(1000000000);
}

/* Blocks until SIGUSR1 when the buffer size is another than it was at the beginning. */
static int on_buffer_size(jack_nframes_t frames, void *unused) {
    static jack_nframes_t first;
    (void)unused;
    if (first == 0)
        first = frames;
    while (frames != first && !atomic_load(&fault_now) && !atomic_load(&quit))
        sleep_ns(1000000);
    return 0;
}

/* Blocks until SIGUSR1. */
static void on_freewheel(int starting, void *unused) {
    (void)starting, (void)unused;
    while (!atomic_load(&fault_now) && !atomic_load(&quit))
        sleep_ns(1000000);
}

#include "probe_transport.h"
#include "probe_scribble.h"

/* Until the process thread has taken what was set, and others have heard what it made of it. */
static void let_cycles_pass(unsigned long count) {
    unsigned long end = atomic_load(&swap_cycles) + count;
    while (atomic_load(&swap_cycles) < end && !atomic_load(&quit) && !atomic_load(&shutdown_seen))
        sleep_ns(200000);
}

static jack_port_t *add_output(const char *name) {
    return jack_port_register(client, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
}

static void swap_ports(const char *to) {
    while (!atomic_load(&quit) && !atomic_load(&shutdown_seen)) {
        jack_port_t *gone = atomic_exchange(&output, NULL);
        jack_port_unregister(client, gone);
        atomic_store(&unheard, add_output("unheard"));
        let_cycles_pass(4);
        jack_port_unregister(client, atomic_exchange(&unheard, NULL));
        let_cycles_pass(1);
        atomic_store(&output, add_output("out"));
        jack_connect(client, jack_port_name(output), to);
        let_cycles_pass(8);
        printf("swapped\n");
        fflush(stdout);
    }
}

static void ask_for_the_time(void) {
    unsigned long asked = 0;
    int most = 0;
    jack_nframes_t before = jack_frame_time(client);
    while (!atomic_load(&quit) && !atomic_load(&shutdown_seen)) {
        jack_nframes_t now = jack_frame_time(client);
        int back = (int)(before - now);
        most = back > most ? back : most;
        before = now;
        if (++asked % 64 == 0)
            sleep_ns(50000);
    }
    printf("asked %lu back %d\n", asked, most);
    fflush(stdout);
}

static void *ask_without_end(void *unused) {
    (void)unused;
    while (!atomic_load(&quit)) {
        jack_port_t *port = jack_port_register(client, "flood", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
        jack_connect(client, "source:out", "victim:flood");
        jack_recompute_total_latencies(client);
        if (port)
            jack_port_unregister(client, port);
    }
    return NULL;
}

static void flood(void) {
    pthread_t asker;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&asker, NULL, ask_without_end, NULL) != 0)
            abort();
    say("flooding\n");
}

static void use_up_descriptors(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    say("no descriptors\n");
}

static void on_signal(int signal) {
    if (signal == SIGUSR1)
        atomic_store(&fault_now, 1);
    else
        atomic_store(&quit, 1);
}

/* What programs do that save their work when they crash. */
static void on_fault(int signal, siginfo_t *info, void *unused) {
    (void)signal, (void)unused;
    _exit(info->si_addr == NULL ? 7 : 8);
}

static void handle_faults(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
}

static void on_shutdown(jack_status_t code, const char *reason, void *unused) {
    (void)code, (void)unused;
    fprintf(stderr, "shutdown: %s\n", reason);
    atomic_store(&shutdown_seen, 1);
}

int main(int argc, char **argv) {
    const char *from = NULL, *to = NULL, *role, *handler = "none";
    jack_status_t status;
    if (argc < 3)
        return 2;
    role = argv[1];
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--from") == 0)
            from = argv[i + 1];
        else if (strcmp(argv[i], "--to") == 0)
            to = argv[i + 1];
        else if (strcmp(argv[i], "--fault") == 0)
            fault = argv[i + 1];
        else if (strcmp(argv[i], "--slow") == 0)
            slow = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--sync-timeout") == 0)
            sync_timeout_s = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--handler") == 0)
            handler = argv[i + 1];
    }
    writes_input = strcmp(fault, "write-input") == 0;
    keeps_descriptors = strcmp(fault, "keep-descriptors") == 0;
    happens_inside = strcmp(fault, "scribble") && strcmp(fault, "hoard") && strcmp(fault, "flood") && strcmp(fault, "no-descriptors") &&
                     strcmp(fault, "block-notice") && strcmp(fault, "block-buffer-size") && strcmp(fault, "block-freewheel");
    if (strncmp(fault, "big-", 4) == 0) {
        struct rlimit whole = {RLIM_INFINITY, RLIM_INFINITY};
        grow();
        setrlimit(RLIMIT_CORE, &whole);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, on_signal);
    signal(SIGTERM, on_signal);
    if (strcmp(handler, "before") == 0)
        handle_faults();
    client = jack_client_open(argv[2], JackNoStartServer, &status);
    if (!client) {
        fprintf(stderr, "cannot open: 0x%x\n", status);
        return 1;
    }
    int hoards = 0, is_check = strcmp(role, "check") == 0 || strcmp(role, "monitor") == 0;
    is_monitor = strcmp(role, "monitor") == 0;
    static const struct {
        const char *name;
        int (*run)(jack_nframes_t, void *);
        int has_input, has_output;
    } roles[] = {{"source", run_source, 0, 1},   {"swap", run_swap, 0, 1},   {"check", run_check, 1, 0}, {"monitor", run_check, 1, 0}, {"thru", run_thru, 1, 1},
                 {"follow", run_follow, 0, 1},   {"conduct", run_conduct, 1, 0}, {"lead", NULL, 0, 0},
                 {"clock", NULL, 0, 0}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(role, roles[i].name) != 0)
            continue;
        if (roles[i].has_input)
            input = jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
        if (roles[i].has_output)
            output = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
        if (roles[i].run)
            jack_set_process_callback(client, roles[i].run, NULL);
    }
    if (slow > 1)
        jack_set_sync_callback(client, be_ready, NULL);
    if (sync_timeout_s > 0)
        jack_set_sync_timeout(client, (jack_time_t)sync_timeout_s * 1000000);
    if (strcmp(role, "lead") == 0 && jack_set_timebase_callback(client, 1, lead, NULL) != 0)
        return 1;
    jack_on_info_shutdown(client, on_shutdown, NULL);
    if (strcmp(fault, "block-notice") == 0)
        jack_set_port_registration_callback(client, on_port, NULL);
    if (strcmp(fault, "block-buffer-size") == 0)
        jack_set_buffer_size_callback(client, on_buffer_size, NULL);
    if (strcmp(fault, "block-freewheel") == 0)
        jack_set_freewheel_callback(client, on_freewheel, NULL);
    if (jack_activate(client) != 0) {
        fprintf(stderr, "cannot activate\n");
        return 1;
    }
    if (strcmp(handler, "after") == 0)
        handle_faults();
    if (from && jack_connect(client, from, jack_port_name(input)) != 0) {
        fprintf(stderr, "cannot connect %s\n", from);
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    if (to)
        swap_ports(to);
    if (strcmp(role, "clock") == 0)
        ask_for_the_time();
    while (!atomic_load(&quit) && !atomic_load(&shutdown_seen)) {
        if (atomic_load(&fault_now) && !happens_inside) {
            atomic_store(&fault_now, strncmp(fault, "block-", 6) == 0);
            if (strcmp(fault, "scribble") == 0)
                scribble();
            else if (strcmp(fault, "hoard") == 0 && hoards++ == 0)
                hoard();
            else if (strcmp(fault, "hoard") == 0)
                scribble();
            else if (strcmp(fault, "flood") == 0)
                flood();
            else if (strcmp(fault, "no-descriptors") == 0)
                use_up_descriptors();
        }
        sleep_ns(2000000);
        if (is_monitor)
            print_losses();
    }
    if (is_monitor)
        print_losses();
    if (is_check) {
        printf("cycles %lu good %lu silent %lu wrong %lu missed %lu\n", atomic_load(&cycles), atomic_load(&good),
               atomic_load(&silent), atomic_load(&wrong), atomic_load(&missed));
        fflush(stdout);
    }
    jack_client_close(client);
    return 0;
}
