/* Asks a server of PulseAudio's protocol everything that it answers in the same order, and prints each field of each
 * answer on a line: "PATH VALUE". What differs from run to run by nature is not printed, but for whether it is there.
 *
 *   conformance
 *
 * Connects to $PULSE_SERVER, which has a sink "consort" and is the caller's own: it is changed. Two servers are
 * compared by their lines. */
#include "manager.h"

static int await_context(void) {
    while (PA_CONTEXT_IS_GOOD(pa_context_get_state(context)) && pa_context_get_state(context) != PA_CONTEXT_READY)
        iterate();
    return pa_context_get_state(context) == PA_CONTEXT_READY;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    loop = pa_mainloop_new();
    context = pa_context_new(pa_mainloop_get_api(loop), "conformance");
    if (pa_context_connect(context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL) != 0 || !await_context()) {
        fprintf(stderr, "conformance: no connection: %s\n", error_text());
        return 1;
    }
    uint32_t module = load_tested();
    objects(module);
    playback_granted();
    record_granted();
    playback_life();
    early_requests();
    playback_flags();
    record_life();
    volumes();
    samples();
    refused();
    module = events_of_steps(module);
    device_manager(&module);
    at("killed");
    OUTCOME("own-client", pa_context_kill_client(context, pa_context_get_index(context), on_success, NULL));
    at("end");
    yes("reached", 1);
    return 0;
}
