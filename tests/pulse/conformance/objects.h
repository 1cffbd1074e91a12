/* What the server says about itself, its devices, modules, programs and streams. */
#include "report.h"

static void on_server(pa_context *c, const pa_server_info *info, void *argument) {
    (void)c, (void)argument;
    text("name", info->server_name);
    text("version", info->server_version);
    yes("user", info->user_name && *info->user_name);
    text("host", info->host_name);
    text("default-sink", info->default_sink_name);
    text("default-source", info->default_source_name);
    yes("cookie", info->cookie != 0);
    spec_and_map(&info->sample_spec, &info->channel_map);
}

/* Prints of devices and streams nothing but their volumes. */
static int only_volumes;

static void on_sink(pa_context *c, const pa_sink_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (end)
        return;
    if (only_volumes) {
        volume("volume", &info->volume);
        yes("mute", info->mute);
        return;
    }
    text("name", info->name);
    text("description", info->description);
    index_of("index", info->index);
    index_of("module", info->owner_module);
    spec_and_map(&info->sample_spec, &info->channel_map);
    volume("volume", &info->volume);
    number("base-volume", info->base_volume);
    number("volume-steps", info->n_volume_steps);
    yes("mute", info->mute);
    index_of("monitor", info->monitor_source);
    text("monitor-name", info->monitor_source_name);
    text("driver", info->driver);
    field("flags", "%x", info->flags);
    number("state", info->state);
    index_of("card", info->card);
    number("ports", info->n_ports);
    text("active-port", info->active_port ? info->active_port->name : NULL);
    yes("configured-latency-0", info->configured_latency == 0);
    number("formats", info->n_formats);
    for (int i = 0; i < info->n_formats; i++)
        format_info("format", info->formats[i]);
    properties(info->proplist);
}

static void on_source(pa_context *c, const pa_source_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (end)
        return;
    if (only_volumes) {
        volume("volume", &info->volume);
        yes("mute", info->mute);
        return;
    }
    text("name", info->name);
    text("description", info->description);
    index_of("index", info->index);
    index_of("module", info->owner_module);
    spec_and_map(&info->sample_spec, &info->channel_map);
    volume("volume", &info->volume);
    number("base-volume", info->base_volume);
    number("volume-steps", info->n_volume_steps);
    yes("mute", info->mute);
    index_of("monitored", info->monitor_of_sink);
    text("monitored-name", info->monitor_of_sink_name);
    text("driver", info->driver);
    field("flags", "%x", info->flags);
    number("state", info->state);
    index_of("card", info->card);
    number("ports", info->n_ports);
    text("active-port", info->active_port ? info->active_port->name : NULL);
    yes("configured-latency-0", info->configured_latency == 0);
    number("formats", info->n_formats);
    for (int i = 0; i < info->n_formats; i++)
        format_info("format", info->formats[i]);
    properties(info->proplist);
}

static void on_module(pa_context *c, const pa_module_info *info, int end, void *argument) {
    (void)c;
    succeeded = end >= 0;
    if (end)
        return;
    if (argument) {
        text("listed", info->name);
        return;
    }
    text("name", info->name);
    text("argument", info->argument);
    number("used", (int)info->n_used);
    properties(info->proplist);
}

static void on_client(pa_context *c, const pa_client_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (end)
        return;
    text("name", info->name);
    index_of("module", info->owner_module);
    text("driver", info->driver);
    properties(info->proplist);
}

static void on_card(pa_context *c, const pa_card_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (!end)
        text("listed", info->name);
}

static void on_sink_input(pa_context *c, const pa_sink_input_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (end)
        return;
    if (only_volumes) {
        volume("volume", &info->volume);
        yes("mute", info->mute);
        return;
    }
    text("name", info->name);
    index_of("index", info->index);
    index_of("module", info->owner_module);
    index_of("client", info->client);
    index_of("sink", info->sink);
    spec_and_map(&info->sample_spec, &info->channel_map);
    volume("volume", &info->volume);
    yes("mute", info->mute);
    yes("corked", info->corked);
    yes("has-volume", info->has_volume);
    yes("volume-writable", info->volume_writable);
    text("resample-method", info->resample_method);
    text("driver", info->driver);
    format_info("format", info->format);
    properties(info->proplist);
}

static void on_source_output(pa_context *c, const pa_source_output_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (end)
        return;
    if (only_volumes) {
        volume("volume", &info->volume);
        yes("mute", info->mute);
        return;
    }
    text("name", info->name);
    index_of("index", info->index);
    index_of("module", info->owner_module);
    index_of("client", info->client);
    index_of("source", info->source);
    spec_and_map(&info->sample_spec, &info->channel_map);
    volume("volume", &info->volume);
    yes("mute", info->mute);
    yes("corked", info->corked);
    yes("has-volume", info->has_volume);
    yes("volume-writable", info->volume_writable);
    text("resample-method", info->resample_method);
    text("driver", info->driver);
    format_info("format", info->format);
    properties(info->proplist);
}

static void on_sample(pa_context *c, const pa_sample_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (end)
        return;
    text("name", info->name);
    volume("volume", &info->volume);
    spec_and_map(&info->sample_spec, &info->channel_map);
    number("duration", (long long)info->duration);
    number("bytes", info->bytes);
    yes("lazy", info->lazy);
    text("file", info->filename);
    properties(info->proplist);
}

static void on_stat(pa_context *c, const pa_stat_info *info, void *argument) {
    (void)c, (void)argument;
    number("sample-cache", info->scache_size);
}

/* `TESTED` is a null sink that both servers load for us. */
#define TESTED "tested"

static uint32_t load_tested(void) {
    at("module.load");
    OUTCOME("null-sink", pa_context_load_module(context, "module-null-sink",
                                                "sink_name=" TESTED " format=float32le rate=48000 channels=2 "
                                                "sink_properties=device.description=Tested",
                                                on_index, NULL));
    return answered_index;
}

static void objects(uint32_t module) {
    at("context");
    number("protocol", pa_context_get_protocol_version(context));
    number("server-protocol", pa_context_get_server_protocol_version(context));
    number("local", pa_context_is_local(context));
    pa_sample_spec stereo = {PA_SAMPLE_S16LE, 44100, 2};
    number("tile-frames-whole", pa_context_get_tile_size(context, &stereo) % 4);
    at("server");
    finish(pa_context_get_server_info(context, on_server, NULL));
    at("sink.default");
    finish(pa_context_get_sink_info_by_name(context, NULL, on_sink, NULL));
    at("sink.by-name");
    finish(pa_context_get_sink_info_by_name(context, TESTED, on_sink, NULL));
    at("source.default");
    finish(pa_context_get_source_info_by_name(context, NULL, on_source, NULL));
    at("source.by-name");
    finish(pa_context_get_source_info_by_name(context, TESTED ".monitor", on_source, NULL));
    at("module");
    finish(pa_context_get_module_info_list(context, on_module, path));
    at("module.own");
    finish(pa_context_get_module_info(context, module, on_module, NULL));
    at("client");
    finish(pa_context_get_client_info(context, pa_context_get_index(context), on_client, NULL));
    at("card");
    finish(pa_context_get_card_info_list(context, on_card, NULL));
    at("stat");
    finish(pa_context_stat(context, on_stat, NULL));
}
