/* One client of the measured graph.
 *
 *   node NAME KIND INPUTS OUTPUTS [RECORDING LANE CAPACITY [WORK_NS]]
 *
 * KIND: tone     every output is full of 1.0
 *       source   every output carries the number of each frame
 *       checker  as tone, and input 0 must carry the number of each frame
 *       hang     as tone until "trigger", then its callback never returns
 *       stop     as tone until "trigger", then its process stops within the callback
 *       flood    as tone until "trigger", then four threads send requests without end
 *
 * Prints "ready OPEN_NS PORTS_NS ACTIVATE_NS" (what each step took) once active. Then answers "stats" with
 * "stats CYCLES LOST WRONG XRUNS", "trigger" with "triggered", and ends at the end of its input with "closed CLOSE_NS".
 *
 * In its cycle it takes two timestamps, reads its inputs, writes its outputs, works for WORK_NS of its CPU's time (0),
 * and does nothing else. */
#include "timestamps.h"
#include <jack/jack.h>
#include <pthread.h>
#include <signal.h>

#define PORTS_MAX 64
/* Frame numbers are sent modulo 2^23 and scaled below 1.0: each is one float, exactly. */
#define FRAME_MASK 0x7fffffu
#define FRAME_SCALE (1.0f / 8388608.0f)

enum kind { TONE, SOURCE, CHECKER, HANG, STOP, FLOOD };
static const char *const KINDS[] = {"tone", "source", "checker", "hang", "stop", "flood"};

static enum kind kind;
static jack_client_t *client;
static jack_port_t *inputs[PORTS_MAX], *outputs[PORTS_MAX];
static int input_count, output_count;
static struct lane *lane;
static uint64_t work_ns;

/* Written by the process thread (xruns: by the notification thread), read by the main thread. */
static _Atomic uint64_t cycles, lost_cycles, wrong_cycles, xruns;
/* The process thread's own: the frame at which the next cycle begins, if none is lost. */
static jack_nframes_t expected_frame;
static int running;

static void count(_Atomic uint64_t *counter, uint64_t more) {
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static float number_of(jack_nframes_t frame) {
    return (float)(frame & FRAME_MASK) * FRAME_SCALE;
}

static void count_lost(jack_nframes_t frame, jack_nframes_t nframes) {
    if (running && frame != expected_frame) {
        int32_t missing = (int32_t)(frame - expected_frame);
        /* A step back, or one of less than a quantum, is one break of the stream all the same. */
        count(&lost_cycles, missing >= (int32_t)nframes ? (uint64_t)missing / nframes : 1);
    }
    running = 1;
    expected_frame = frame + nframes;
}

static _Atomic int triggered;

static void happen(void) {
    while (kind == HANG)
        ;
    if (kind == STOP)
        kill(getpid(), SIGSTOP);
}

static void *ask_without_end(void *unused) {
    (void)unused;
    for (;;) {
        jack_port_t *port = jack_port_register(client, "flood", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
        jack_recompute_total_latencies(client);
        if (port)
            jack_port_unregister(client, port);
    }
    return NULL;
}

static void trigger(void) {
    printf("triggered\n");
    fflush(stdout);
    pthread_t asker;
    for (int i = 0; kind == FLOOD && i < 4; i++)
        if (pthread_create(&asker, NULL, ask_without_end, NULL) != 0)
            say_and_fail("no thread");
    triggered = 1;
}

static uint64_t worked_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void work(void) {
    uint64_t begun_ns = worked_ns();
    while (worked_ns() - begun_ns < work_ns)
        ;
}

static int process(jack_nframes_t nframes, void *argument) {
    (void)argument;
    if (atomic_load_explicit(&triggered, memory_order_relaxed))
        happen();
    struct record record = {.entry_ns = now_ns(), .frame = jack_last_frame_time(client)};
    count_lost(record.frame, nframes);
    for (int i = 0; i < input_count; i++) {
        const float *samples = jack_port_get_buffer(inputs[i], nframes);
        int is_tone = 1;
        for (jack_nframes_t n = 0; n < nframes; n++)
            is_tone &= samples[n] == 1.0f;
        if (is_tone && i < 32)
            record.heard |= 1u << i;
        if (kind == CHECKER && i == 0) {
            int wrong = 0;
            for (jack_nframes_t n = 0; n < nframes; n++)
                wrong |= samples[n] != number_of(record.frame + n);
            count(&wrong_cycles, (uint64_t)wrong);
        }
    }
    for (int i = 0; i < output_count; i++) {
        float *samples = jack_port_get_buffer(outputs[i], nframes);
        for (jack_nframes_t n = 0; n < nframes; n++)
            samples[n] = kind == SOURCE ? number_of(record.frame + n) : 1.0f;
    }
    if (work_ns > 0)
        work();
    count(&cycles, 1);
    record.exit_ns = now_ns();
    if (lane)
        record_cycle(lane, record);
    return 0;
}

static int on_xrun(void *argument) {
    (void)argument;
    count(&xruns, 1);
    return 0;
}

static void on_shutdown(void *argument) {
    (void)argument;
    _exit(3);
}

static void register_ports(jack_port_t **ports, int port_count, const char *prefix, unsigned long flags) {
    for (int i = 0; i < port_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%d", prefix, i);
        ports[i] = jack_port_register(client, name, JACK_DEFAULT_AUDIO_TYPE, flags, 0);
        if (!ports[i])
            say_and_fail("jack_port_register failed");
    }
}

static void answer_until_end_of_input(void) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "stats\n") == 0) {
            printf("stats %llu %llu %llu %llu\n", (unsigned long long)cycles, (unsigned long long)lost_cycles,
                   (unsigned long long)wrong_cycles, (unsigned long long)xruns);
            fflush(stdout);
        } else if (strcmp(line, "trigger\n") == 0) {
            trigger();
        }
    }
}

int main(int argc, char **argv) {
    end_with_parent();
    if (argc != 5 && argc != 8 && argc != 9)
        say_and_fail("usage: node NAME KIND INPUTS OUTPUTS [RECORDING LANE CAPACITY [WORK_NS]]");
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(argv[2], KINDS[i]) == 0)
            kind = (enum kind)i;
    input_count = atoi(argv[3]);
    output_count = atoi(argv[4]);
    if (input_count > PORTS_MAX || output_count > PORTS_MAX)
        say_and_fail("too many ports");
    if (argc == 9)
        work_ns = (uint64_t)atoll(argv[8]);
    if (argc >= 8 && !(lane = map_lane(argv[5], (size_t)atol(argv[6]), (size_t)atol(argv[7]))))
        say_and_fail("cannot map the recording");

    uint64_t begun_ns = now_ns();
    client = jack_client_open(argv[1], JackNoStartServer | JackUseExactName, NULL);
    if (!client)
        say_and_fail("jack_client_open failed");
    uint64_t opened_ns = now_ns();
    register_ports(inputs, input_count, "in", JackPortIsInput);
    register_ports(outputs, output_count, "out", JackPortIsOutput);
    uint64_t registered_ns = now_ns();
    jack_set_process_callback(client, process, NULL);
    jack_set_xrun_callback(client, on_xrun, NULL);
    jack_on_shutdown(client, on_shutdown, NULL);
    if (jack_activate(client) != 0)
        say_and_fail("jack_activate failed");
    uint64_t activated_ns = now_ns();
    printf("ready %llu %llu %llu\n", (unsigned long long)(opened_ns - begun_ns),
           (unsigned long long)(registered_ns - opened_ns), (unsigned long long)(activated_ns - registered_ns));
    fflush(stdout);

    answer_until_end_of_input();

    uint64_t closing_ns = now_ns();
    jack_deactivate(client);
    jack_client_close(client);
    printf("closed %llu\n", (unsigned long long)(now_ns() - closing_ns));
    return 0;
}
