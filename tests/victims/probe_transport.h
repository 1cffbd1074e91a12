/* The parts of probe.c that lead, follow and move the transport. */
static int run_follow(jack_nframes_t frames, void *unused) {
    float *out = jack_port_get_buffer(output, frames);
    jack_position_t position;
    int rolls = jack_transport_query(client, &position) == JackTransportRolling;
    (void)unused;
    for (jack_nframes_t i = 0; i < frames; i++)
        out[i] = rolls ? sample_of(position.frame + i) : 0.0f;
    return 0;
}

static int be_ready(jack_transport_state_t state, jack_position_t *position, void *unused) {
    static int asked;
    (void)position, (void)unused;
    if (state == JackTransportStarting && ++asked < slow)
        return 0;
    asked = 0;
    return 1;
}

static int run_conduct(jack_nframes_t frames, void *unused) {
    const float *in = jack_port_get_buffer(input, frames);
    (void)unused;
    for (jack_nframes_t i = 0; i < frames; i++) {
        if (in[i] == 1.0f)
            jack_transport_start(client);
        else if (in[i] == 0.5f)
            jack_transport_locate(client, 100000);
        else if (in[i] == 0.25f)
            jack_transport_stop(client);
    }
    return 0;
}

static void lead(jack_transport_state_t state, jack_nframes_t frames, jack_position_t *position, int is_new,
                 void *unused) {
    (void)state, (void)frames, (void)is_new, (void)unused;
    position->valid = JackPositionBBT;
    position->bar = (int32_t)(position->frame / 1000) + 1;
    position->beat = 1;
    position->tick = (int32_t)(position->frame % 1000);
    position->bar_start_tick = position->frame - position->frame % 1000;
    position->beats_per_bar = 1;
    position->beat_type = 4;
    position->ticks_per_beat = 1000;
    position->beats_per_minute = 2880;
}
