/* Calls of libpulse that wait for their answers, and lines of what was answered: "PATH VALUE". */
#ifndef REPORT_H
#define REPORT_H

#include <pulse/ext-device-manager.h>
#include <pulse/ext-device-restore.h>
#include <pulse/ext-stream-restore.h>
#include <pulse/pulseaudio.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pa_mainloop *loop;
static pa_context *context;

/* The first part of the names of all fields until it changes. */
static char path[256];

__attribute__((format(printf, 1, 2))) static void at(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
}

/* Prints a field. */
__attribute__((format(printf, 2, 3))) static void field(const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s.%s ", path, name);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

static void number(const char *name, long long value) { field(name, "%lld", value); }

static void yes(const char *name, int value) { field(name, "%s", value ? "yes" : "no"); }

static void text(const char *name, const char *value) { field(name, "%s", value ? value : "(none)"); }

/* An index that is another one in each run: whether there is one. */
static void index_of(const char *name, uint32_t index) {
    text(name, index == PA_INVALID_INDEX ? "none" : "some");
}

static void spec_and_map(const pa_sample_spec *spec, const pa_channel_map *map) {
    char buffer[PA_CHANNEL_MAP_SNPRINT_MAX];
    field("spec", "%s %u %u", pa_sample_format_to_string(spec->format), spec->channels, spec->rate);
    text("map", map ? pa_channel_map_snprint(buffer, sizeof buffer, map) : NULL);
}

static void volume(const char *name, const pa_cvolume *volume) {
    char values[PA_CHANNELS_MAX * 11 + 1] = "";
    for (int i = 0; i < volume->channels; i++)
        sprintf(values + strlen(values), "%s%u", i ? "," : "", volume->values[i]);
    text(name, values);
}

static int by_name(const void *one, const void *other) { return strcmp(*(char *const *)one, *(char *const *)other); }

/* The keys of a list, sorted; returns how many there are. */
static size_t keys_of(const pa_proplist *list, const char *names[64]) {
    size_t count = 0;
    void *state = NULL;
    for (const char *key; count < 64 && (key = pa_proplist_iterate(list, &state));)
        names[count++] = key;
    qsort(names, count, sizeof *names, by_name);
    return count;
}

static void format_info(const char *name, const pa_format_info *info) {
    if (!info) {
        text(name, NULL);
        return;
    }
    char line[1024];
    snprintf(line, sizeof line, "%s", pa_encoding_to_string(info->encoding));
    const char *names[64];
    size_t count = keys_of(info->plist, names);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(line);
        const char *key = strncmp(names[i], "format.", 7) ? names[i] : names[i] + 7;
        snprintf(line + used, sizeof line - used, " %s=%s", key, pa_proplist_gets(info->plist, names[i]));
    }
    text(name, line);
}

/* Prints each property, sorted; of those that differ from run to run, whether they are there. */
static void properties(const pa_proplist *list) {
    static const char *const OWN[] = {"application.process.id", "application.process.session_id",
                                      "application.process.machine_id", "native-protocol.peer"};
    const char *names[64];
    size_t count = keys_of(list, names);
    for (size_t i = 0; i < count; i++) {
        const char *value = pa_proplist_gets(list, names[i]);
        for (size_t own = 0; own < sizeof OWN / sizeof *OWN; own++)
            if (!strcmp(names[i], OWN[own]))
                value = "some";
        char name[160];
        snprintf(name, sizeof name, "property.%s", names[i]);
        text(name, value ? value : "(not a text)");
    }
}

/* Ends this program when the server has not answered for so long. */
static void on_timeout(pa_mainloop_api *api, pa_time_event *event, const struct timeval *tv, void *argument) {
    (void)api, (void)event, (void)tv, (void)argument;
    printf("%s never answered\n", path);
    exit(1);
}

static void iterate(void) {
    if (pa_mainloop_iterate(loop, 1, NULL) < 0) {
        printf("%s loop ended\n", path);
        exit(1);
    }
}

static void pause_over(pa_mainloop_api *api, pa_time_event *event, const struct timeval *tv, void *argument) {
    (void)api, (void)event, (void)tv;
    *(int *)argument = 1;
}

static pa_time_event *after_ms(int ms, pa_time_event_cb_t callback, void *argument) {
    return pa_context_rttime_new(context, pa_rtclock_now() + (pa_usec_t)ms * 1000, callback, argument);
}

static void wait_ms(int ms) {
    int is_over = 0;
    pa_time_event *event = after_ms(ms, pause_over, &is_over);
    while (!is_over)
        iterate();
    pa_mainloop_get_api(loop)->time_free(event);
}

/* Waits for an operation; returns whether there was one. */
static int finish(pa_operation *operation) {
    if (!operation)
        return 0;
    pa_time_event *event = after_ms(20000, on_timeout, NULL);
    while (pa_operation_get_state(operation) == PA_OPERATION_RUNNING)
        iterate();
    pa_mainloop_get_api(loop)->time_free(event);
    pa_operation_unref(operation);
    return 1;
}

/* What the last answer was: callbacks of every kind note it here. */
static int succeeded;
static uint32_t answered_index;
static const char *error_text(void) { return pa_strerror(pa_context_errno(context)); }

static void on_success(pa_context *c, int success, void *argument) {
    (void)c, (void)argument;
    succeeded = success;
}

static void on_stream_success(pa_stream *s, int success, void *argument) {
    (void)s, (void)argument;
    succeeded = success;
}

static void on_index(pa_context *c, uint32_t index, void *argument) {
    (void)c, (void)argument;
    answered_index = index;
    succeeded = index != PA_INVALID_INDEX;
}

static void on_response(pa_context *c, int success, char *response, void *argument) {
    (void)c, (void)response, (void)argument;
    succeeded = success;
}

static void on_version(pa_context *c, uint32_t version, void *argument) {
    (void)c, (void)argument;
    succeeded = version != PA_INVALID_INDEX;
}

/* Waits for an operation and says how it ended. */
static const char *outcome(pa_operation *operation) {
    if (!operation) {
        static char refused[128];
        snprintf(refused, sizeof refused, "libpulse: %s", error_text());
        return refused;
    }
    succeeded = 0;
    finish(operation);
    return succeeded ? "OK" : error_text();
}

/* `call` is made by `name`: prints how it ended. */
#define OUTCOME(name, operation) text(name, outcome(operation))

static void on_server_info(pa_context *c, const pa_server_info *info, void *argument) {
    (void)c, (void)info, (void)argument;
}

/* Everything that the server has sent until now has been taken. */
static void settle(void) {
    for (int i = 0; i < 2; i++)
        finish(pa_context_get_server_info(context, on_server_info, NULL));
    wait_ms(60);
}

#endif
