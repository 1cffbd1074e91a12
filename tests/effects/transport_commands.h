/* The actor's commands for the transport and freewheel. */

static const char *state_name(jack_transport_state_t state) {
    static const char *const names[] = {"stopped", "rolling", "looping", "starting"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}

/* What the process callback is to ask for in its next cycle: nothing, start, stop, or locate to `cycle_frame`. */
static atomic_int cycle_order;
static atomic_uint cycle_frame;

static void ask_in_cycle(void) {
    switch (atomic_exchange(&cycle_order, 0)) {
    case 1:
        jack_transport_start(client);
        break;
    case 2:
        jack_transport_stop(client);
        break;
    case 3:
        jack_transport_locate(client, atomic_load(&cycle_frame));
        break;
    }
}

static void on_freewheel(int starting, void *unused) {
    (void)unused;
    report_event("freewheel %d", starting);
}

/* Ready when a command says so. */
static atomic_int is_ready;
static int on_sync(jack_transport_state_t state, jack_position_t *position, void *unused) {
    static jack_transport_state_t asked_state = (jack_transport_state_t)99;
    static jack_nframes_t asked_frame;
    (void)unused;
    /* Once for each state and position, and once in all while it rolls: it is asked in each cycle. */
    if (state == JackTransportRolling && state != asked_state)
        report_event("asked while rolling");
    else if (state != JackTransportRolling && (state != asked_state || position->frame != asked_frame))
        report_event("asked while %s at %u", state_name(state), position->frame);
    asked_state = state;
    asked_frame = position->frame;
    return atomic_load(&is_ready);
}

/* Every optional member, derived from the frame. */
static void fill(jack_position_t *position) {
    jack_nframes_t frame = position->frame;
    position->valid = JackPositionBBT | JackPositionTimecode | JackBBTFrameOffset | JackAudioVideoRatio |
                      JackVideoFrameOffset | JackTickDouble;
    position->bar = (int32_t)frame + 1;
    position->beat = (int32_t)frame + 2;
    position->tick = (int32_t)frame + 3;
    position->bar_start_tick = frame + 4.5;
    position->beats_per_bar = 5;
    position->beat_type = 8;
    position->ticks_per_beat = 960.25;
    position->beats_per_minute = 121.5;
    position->frame_time = frame / 48000.0;
    position->next_time = frame / 48000.0 + 1;
    position->bbt_offset = frame + 6;
    position->audio_frames_per_video_frame = 1920.5f;
    position->video_offset = frame + 7;
    position->tick_double = frame + 3.75;
}

static void on_timebase(jack_transport_state_t state, jack_nframes_t frames, jack_position_t *position, int is_new,
                        void *unused) {
    (void)frames, (void)unused;
    if (is_new)
        report_event("new position %u while %s", position->frame, state_name(state));
    fill(position);
}

/* Whether the position has all that fill() puts there. */
static int is_full(const jack_position_t *position) {
    jack_position_t full = *position;
    fill(&full);
    return memcmp(&full, position, sizeof full) == 0;
}

COMMAND(transport_start) { UNUSED; jack_transport_start(client); answer("done"); }
COMMAND(transport_stop) { UNUSED; jack_transport_stop(client); answer("done"); }
COMMAND(transport_locate) { answer("%d", jack_transport_locate(client, (jack_nframes_t)atoi(word[1]))); }
COMMAND(reposition_full) {
    jack_position_t position = {.frame = (jack_nframes_t)atoi(word[1])};
    fill(&position);
    answer("%d", jack_transport_reposition(client, &position));
}
COMMAND(reposition_bits) {
    jack_position_t position = {.frame = 77, .valid = (jack_position_bits_t)strtoul(word[1], NULL, 0)};
    answer("%s", jack_transport_reposition(client, &position) == EINVAL ? "EINVAL" : "accepted");
}
COMMAND(in_cycle) {
    atomic_store(&cycle_frame, (unsigned)atoi(word[2]));
    atomic_store(&cycle_order, strcmp(word[1], "start") == 0 ? 1 : strcmp(word[1], "stop") == 0 ? 2 : 3);
    answer("done");
}
COMMAND(transport_query) {
    UNUSED;
    jack_position_t position;
    jack_transport_state_t state = jack_transport_query(client, &position);
    int is_whole = position.unique_1 == position.unique_2 && position.frame_rate == jack_get_sample_rate(client);
    const char *kind = is_full(&position) ? " full" : position.valid ? " partial" : "";
    answer("%s %u%s%s", state_name(state), position.frame, kind, is_whole ? "" : " torn");
}
/* Whether the position and the estimate of now grow. */
COMMAND(transport_passes) {
    UNUSED;
    jack_position_t before, after;
    jack_transport_query(client, &before);
    jack_nframes_t estimated = jack_get_current_transport_frame(client);
    for (int waits = 0; waits < 2000; waits++) {
        jack_transport_query(client, &after);
        if (after.frame != before.frame && jack_get_current_transport_frame(client) > estimated)
            break;
        usleep(10000);
    }
    int is_estimate = jack_get_current_transport_frame(client) > estimated && estimated >= before.frame;
    answer("%s%s", after.frame > before.frame ? "yes" : "no", is_estimate ? "" : ", but the estimate does not");
}
COMMAND(current_frame) { UNUSED; answer("%u", jack_get_current_transport_frame(client)); }
COMMAND(transport_info) {
    UNUSED;
    struct {
        jack_transport_info_t info;
        unsigned behind;
    } both = {.behind = 0x5a5a5a5a};
    jack_get_transport_info(client, &both.info);
    answer("%s %u bar %d, valid 0x%x%s", state_name(both.info.transport_state), both.info.frame, both.info.bar,
           (unsigned)both.info.valid, both.behind == 0x5a5a5a5a ? "" : " and too long");
}
COMMAND(takeover_timebase) { UNUSED; answer("%d", jack_engine_takeover_timebase(client)); }
COMMAND(set_sync) {
    int wanted = strcmp(word[1], "none") != 0;
    atomic_store(&is_ready, strcmp(word[1], "ready") == 0);
    answer("%d", jack_set_sync_callback(client, wanted ? on_sync : NULL, NULL));
}
COMMAND(be_ready) { UNUSED; atomic_store(&is_ready, 1); answer("done"); }
COMMAND(set_sync_timeout) { answer("%d", jack_set_sync_timeout(client, strtoull(word[1], NULL, 0))); }
COMMAND(set_timebase) {
    int result = jack_set_timebase_callback(client, strcmp(word[1], "conditional") == 0, on_timebase, NULL);
    answer("%s", result == 0 ? "0" : result == EBUSY ? "EBUSY" : "wrong");
}
COMMAND(release_timebase) {
    UNUSED;
    int result = jack_release_timebase(client);
    answer("%s", result == 0 ? "0" : result == EINVAL ? "EINVAL" : "wrong");
}
COMMAND(set_freewheel) { answer("%d", jack_set_freewheel(client, atoi(word[1]))); }

#define TRANSPORT_COMMANDS \
    {"transport_start", transport_start}, {"transport_stop", transport_stop}, \
    {"transport_locate", transport_locate}, {"transport_reposition", reposition_full}, \
    {"transport_reposition_bits", reposition_bits}, {"in_cycle", in_cycle}, {"transport_query", transport_query}, \
    {"transport_passes", transport_passes}, {"get_current_transport_frame", current_frame}, \
    {"get_transport_info", transport_info}, {"engine_takeover_timebase", takeover_timebase}, \
    {"set_sync_callback", set_sync}, {"be_ready", be_ready}, {"set_sync_timeout", set_sync_timeout}, \
    {"set_timebase_callback", set_timebase}, {"release_timebase", release_timebase}, \
    {"set_freewheel", set_freewheel}
