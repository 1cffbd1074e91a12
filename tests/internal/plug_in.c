/* A plug-in that JACK2 would load, too: it passes its input on, and its parameters choose its fault:
 * refuse, crash or hang in jack_initialize; crash, exit or hang in a
 * cycle, once its input is connected; crash or hang in jack_finish. */
#include <jack/jack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    jack_port_t *in, *out;
    const char *fault;
} plug_in_t;

static void go_wrong(const char *how) {
    if (strncmp(how, "crash", 5) == 0)
        *(volatile int *)NULL = 1;
    if (strncmp(how, "exit", 4) == 0)
        _exit(0);
    while (strncmp(how, "hang", 4) == 0)
        pause();
}

static const char *fault_in(const char *fault, const char *where) {
    size_t length = strlen(where);
    return strncmp(fault, where, length) == 0 ? fault + length : "";
}

static int process(jack_nframes_t frames, void *argument) {
    plug_in_t *plug_in = argument;
    void *in = jack_port_get_buffer(plug_in->in, frames), *out = jack_port_get_buffer(plug_in->out, frames);
    memcpy(out, in, frames * sizeof(float));
    if (jack_port_connected(plug_in->in))
        go_wrong(fault_in(plug_in->fault, "process-"));
    return 0;
}

int jack_initialize(jack_client_t *client, const char *parameters) {
    if (strcmp(parameters, "refuse") == 0)
        return 7;
    go_wrong(fault_in(parameters, "initialize-"));
    plug_in_t *plug_in = malloc(sizeof *plug_in);
    plug_in->fault = strdup(parameters);
    plug_in->in = jack_port_register(client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    plug_in->out = jack_port_register(client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    jack_set_process_callback(client, process, plug_in);
    return jack_activate(client);
}

void jack_finish(void *argument) {
    plug_in_t *plug_in = argument;
    /* What the process callback got, as in JACK2. */
    fprintf(stderr, "plug-in finishes with '%s'\n", plug_in->fault);
    go_wrong(fault_in(plug_in->fault, "finish-"));
    free((char *)plug_in->fault);
    free(plug_in);
}
