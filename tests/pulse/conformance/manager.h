/* The extension of module-device-manager: names of devices, their order for a role, and streams that follow it. */
#include "requests.h"

static uint32_t extension_version;
static int is_notified;

static void on_manager_version(pa_context *c, uint32_t version, void *argument) {
    (void)c, (void)argument;
    succeeded = version != PA_INVALID_INDEX;
    extension_version = version;
}

static void on_manager_event(pa_context *c, void *argument) {
    (void)c, (void)argument;
    is_notified = 1;
}

static void on_known(pa_context *c, const pa_ext_device_manager_info *info, int end, void *argument) {
    (void)c;
    succeeded = end >= 0;
    if (end)
        return;
    at("manager.%s.%s", (const char *)argument, info->name);
    text("description", info->description);
    text("icon", info->icon);
    index_of("index", info->index);
    char order[256] = "";
    for (uint32_t i = 0; i < info->n_role_priorities; i++)
        sprintf(order + strlen(order), "%s%s=%u", i ? " " : "", info->role_priorities[i].role,
                info->role_priorities[i].priority);
    text("order", order);
}

static void on_name(pa_context *c, const pa_sink_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (!end)
        text("description", info->description);
}

static void on_source_name(pa_context *c, const pa_source_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (!end)
        text("monitor", info->description);
}

/* What is known of all devices, whether the program was notified, and what the tested sink is called. */
static void known(const char *step) {
    settle();
    at("manager.%s", step);
    yes("notified", is_notified);
    is_notified = 0;
    finish(pa_context_get_sink_info_by_name(context, TESTED, on_name, NULL));
    finish(pa_context_get_source_info_by_name(context, TESTED ".monitor", on_source_name, NULL));
    finish(pa_ext_device_manager_read(context, on_known, (void *)step));
}

/* A stream of a role, which is where it is put. */
static pa_stream *of_role(const char *role, const char *sink, int flags) {
    pa_sample_spec spec = {PA_SAMPLE_S16LE, 48000, 2};
    pa_proplist *properties = pa_proplist_new();
    if (role)
        pa_proplist_sets(properties, PA_PROP_MEDIA_ROLE, role);
    pa_stream *stream = pa_stream_new_with_proplist(context, "routed", &spec, NULL, properties);
    pa_proplist_free(properties);
    play_on(stream, sink, NULL, flags | PA_STREAM_START_CORKED);
    return stream;
}

static void routed(uint32_t *module) {
    const char *tested_first[] = {"sink:" TESTED, NULL};
    finish(pa_ext_device_manager_enable_role_device_priority_routing(context, 1, on_success, NULL));
    finish(pa_ext_device_manager_reorder_devices_for_role(context, "game", tested_first, on_success, NULL));
    struct {
        const char *name, *role, *sink;
        int flags;
        pa_stream *stream;
    } all[] = {
        {"game", "game", NULL, 0, NULL},
        {"no-role", NULL, NULL, 0, NULL},
        {"other-role", "alarm", NULL, 0, NULL},
        {"named", "game", "consort", 0, NULL},
        {"moved", "game", NULL, 0, NULL},
    };
    at("manager.routing");
    for (int i = 0; i < COUNT(all); i++)
        all[i].stream = of_role(all[i].role, all[i].sink, all[i].flags);
#define WHERE(step)                                                                                                    \
    settle();                                                                                                          \
    at("manager.routing.%s", step);                                                                                    \
    for (int i = 0; i < COUNT(all); i++)                                                                               \
    text(all[i].name, pa_stream_get_device_name(all[i].stream))
    WHERE("begun");
    finish(pa_context_set_default_sink(context, TESTED, on_success, NULL));
    uint32_t moved = pa_stream_get_index(all[4].stream);
    finish(pa_context_move_sink_input_by_name(context, moved, "consort", on_success, NULL));
    WHERE("moved-from-default");
    finish(pa_context_set_default_sink(context, "consort", on_success, NULL));
    WHERE("default-back");
    finish(pa_context_unload_module(context, *module, on_success, NULL));
    WHERE("gone");
    *module = load_tested();
    WHERE("back");
    finish(pa_ext_device_manager_enable_role_device_priority_routing(context, 0, on_success, NULL));
    WHERE("off");
#undef WHERE
    for (int i = 0; i < COUNT(all); i++)
        close_stream(all[i].stream);
}

static void device_manager(uint32_t *module) {
    const char *tested_first[] = {"sink:" TESTED, NULL}, *unknown[] = {"sink:nowhere", NULL};
    at("manager");
    OUTCOME("load-wrong-argument", pa_context_load_module(context, "module-device-manager", "wrong=1", on_index, NULL));
    OUTCOME("load-no-flag", pa_context_load_module(context, "module-device-manager", "do_routing=x", on_index, NULL));
    OUTCOME("load", pa_context_load_module(context, "module-device-manager", "do_routing=0", on_index, NULL));
    uint32_t manager = answered_index;
    OUTCOME("load-again", pa_context_load_module(context, "module-device-manager", "", on_index, NULL));
    OUTCOME("test", pa_ext_device_manager_test(context, on_manager_version, NULL));
    number("version", extension_version);
    pa_ext_device_manager_set_subscribe_cb(context, on_manager_event, NULL);
    OUTCOME("subscribe", pa_ext_device_manager_subscribe(context, 1, on_success, NULL));
    known("begun");
    at("manager");
    OUTCOME("rename", pa_ext_device_manager_set_device_description(context, "sink:" TESTED, "Kitchen", on_success,
                                                                   NULL));
    known("renamed");
    at("manager");
    OUTCOME("rename-unknown", pa_ext_device_manager_set_device_description(context, "sink:nowhere", "x", on_success,
                                                                           NULL));
    OUTCOME("rename-empty", pa_ext_device_manager_set_device_description(context, "sink:" TESTED, "", on_success,
                                                                         NULL));
    OUTCOME("delete-unknown", pa_ext_device_manager_delete(context, unknown, on_success, NULL));
    settle();
    is_notified = 0;
    OUTCOME("reorder", pa_ext_device_manager_reorder_devices_for_role(context, "music", tested_first, on_success,
                                                                      NULL));
    known("reordered");
    finish(pa_context_unload_module(context, *module, on_success, NULL));
    known("gone");
    *module = load_tested();
    known("back");
    at("manager");
    OUTCOME("delete", pa_ext_device_manager_delete(context, tested_first, on_success, NULL));
    known("deleted");
    finish(pa_context_unload_module(context, *module, on_success, NULL));
    settle();
    *module = load_tested();
    known("back-again");
    routed(module);
    at("manager");
    OUTCOME("unsubscribe", pa_ext_device_manager_subscribe(context, 0, on_success, NULL));
    settle();
    is_notified = 0;
    finish(pa_ext_device_manager_set_device_description(context, "sink:" TESTED, "Other", on_success, NULL));
    known("unsubscribed");
    at("manager");
    OUTCOME("unload", pa_context_unload_module(context, manager, on_success, NULL));
    /* PulseAudio unloads a moment after it has answered. */
    settle();
    OUTCOME("test-unloaded", pa_ext_device_manager_test(context, on_manager_version, NULL));
}
