/* What player.c needs of libpulse.so.0. Its headers are in a package that only who builds against it has; these types
 * and numbers have been the library's binary interface for as long as it has had this name. */
#ifndef BENCH_PULSE_H
#define BENCH_PULSE_H

#include <stddef.h>
#include <stdint.h>

typedef struct pa_threaded_mainloop pa_threaded_mainloop;
typedef struct pa_mainloop_api pa_mainloop_api;
typedef struct pa_context pa_context;
typedef struct pa_stream pa_stream;
typedef struct pa_operation pa_operation;

enum { PA_CONTEXT_READY = 4, PA_CONTEXT_FAILED = 5, PA_CONTEXT_NOAUTOSPAWN = 1 };
enum { PA_STREAM_READY = 2, PA_STREAM_FAILED = 3, PA_STREAM_TERMINATED = 4, PA_STREAM_ADJUST_LATENCY = 0x2000 };
enum { PA_SAMPLE_S16LE = 3, PA_CHANNELS_MAX = 32, PA_VOLUME_NORM = 0x10000 };

typedef struct {
    int format;
    uint32_t rate;
    uint8_t channels;
} pa_sample_spec;

typedef struct {
    uint32_t maxlength, tlength, prebuf, minreq, fragsize;
} pa_buffer_attr;

typedef struct {
    uint8_t channels;
    uint32_t values[PA_CHANNELS_MAX];
} pa_cvolume;

typedef void (*pa_stream_notify_cb_t)(pa_stream *, void *);
typedef void (*pa_stream_request_cb_t)(pa_stream *, size_t, void *);
typedef void (*pa_stream_success_cb_t)(pa_stream *, int, void *);
typedef void (*pa_context_success_cb_t)(pa_context *, int, void *);

pa_threaded_mainloop *pa_threaded_mainloop_new(void);
int pa_threaded_mainloop_start(pa_threaded_mainloop *);
void pa_threaded_mainloop_lock(pa_threaded_mainloop *);
void pa_threaded_mainloop_unlock(pa_threaded_mainloop *);
pa_mainloop_api *pa_threaded_mainloop_get_api(pa_threaded_mainloop *);

pa_context *pa_context_new(pa_mainloop_api *, const char *);
int pa_context_connect(pa_context *, const char *, int, const void *);
void pa_context_disconnect(pa_context *);
int pa_context_get_state(const pa_context *);
pa_operation *pa_context_set_sink_input_volume(pa_context *, uint32_t, const pa_cvolume *, pa_context_success_cb_t,
                                               void *);
pa_operation *pa_context_set_sink_input_mute(pa_context *, uint32_t, int, pa_context_success_cb_t, void *);

pa_stream *pa_stream_new(pa_context *, const char *, const pa_sample_spec *, const void *);
int pa_stream_connect_playback(pa_stream *, const char *, const pa_buffer_attr *, int, const pa_cvolume *, pa_stream *);
int pa_stream_connect_record(pa_stream *, const char *, const pa_buffer_attr *, int);
int pa_stream_disconnect(pa_stream *);
int pa_stream_get_state(const pa_stream *);
uint32_t pa_stream_get_index(const pa_stream *);
size_t pa_stream_writable_size(pa_stream *);
int pa_stream_write(pa_stream *, const void *, size_t, void (*)(void *), int64_t, int);
int pa_stream_peek(pa_stream *, const void **, size_t *);
int pa_stream_drop(pa_stream *);
pa_operation *pa_stream_cork(pa_stream *, int, pa_stream_success_cb_t, void *);
pa_operation *pa_stream_flush(pa_stream *, pa_stream_success_cb_t, void *);
pa_operation *pa_stream_update_timing_info(pa_stream *, pa_stream_success_cb_t, void *);
int pa_stream_get_time(pa_stream *, uint64_t *);
int pa_stream_get_latency(pa_stream *, uint64_t *, int *);
void pa_stream_set_write_callback(pa_stream *, pa_stream_request_cb_t, void *);
void pa_stream_set_read_callback(pa_stream *, pa_stream_request_cb_t, void *);
void pa_stream_set_underflow_callback(pa_stream *, pa_stream_notify_cb_t, void *);

#endif
