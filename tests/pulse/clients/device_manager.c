/* What a mixer asks the extension of module-device-manager, by libpulse.
 *
 *   device_manager read                     NAME, description, index and places of each device, with tabs
 *   device_manager rename DEVICE NAME
 *   device_manager delete DEVICE
 *   device_manager reorder ROLE DEVICE...
 *   device_manager routing 0|1
 *   device_manager follow                   a line for each change */
#include <pulse/ext-device-manager.h>
#include <pulse/pulseaudio.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pa_mainloop *loop;
static pa_context *context;
static int succeeded;

static void fail(const char *what) {
    fprintf(stderr, "device_manager: %s: %s\n", what, pa_strerror(pa_context_errno(context)));
    exit(1);
}

static void on_success(pa_context *c, int success, void *argument) {
    (void)c, (void)argument;
    succeeded = success;
}

static void on_device(pa_context *c, const pa_ext_device_manager_info *info, int end, void *argument) {
    (void)c, (void)argument;
    succeeded = end >= 0;
    if (end)
        return;
    printf("%s\t%s\t", info->name, info->description);
    if (info->index == PA_INVALID_INDEX)
        printf("-\t");
    else
        printf("%u\t", info->index);
    for (uint32_t i = 0; i < info->n_role_priorities; i++)
        printf("%s=%u ", info->role_priorities[i].role, info->role_priorities[i].priority);
    printf("\n");
}

static void on_change(pa_context *c, void *argument) {
    (void)c, (void)argument;
    printf("changed\n");
}

static void finish(const char *what, pa_operation *operation) {
    if (!operation)
        fail(what);
    while (pa_operation_get_state(operation) == PA_OPERATION_RUNNING)
        pa_mainloop_iterate(loop, 1, NULL);
    pa_operation_unref(operation);
    if (!succeeded)
        fail(what);
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 2)
        return 2;
    loop = pa_mainloop_new();
    context = pa_context_new(pa_mainloop_get_api(loop), "a mixer");
    if (pa_context_connect(context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL) != 0)
        fail("connect");
    while (PA_CONTEXT_IS_GOOD(pa_context_get_state(context)) && pa_context_get_state(context) != PA_CONTEXT_READY)
        pa_mainloop_iterate(loop, 1, NULL);
    const char *asked = arguments[1];
    pa_operation *operation = NULL;
    if (!strcmp(asked, "read")) {
        operation = pa_ext_device_manager_read(context, on_device, NULL);
    } else if (!strcmp(asked, "rename") && count == 4) {
        operation =
            pa_ext_device_manager_set_device_description(context, arguments[2], arguments[3], on_success, NULL);
    } else if (!strcmp(asked, "delete") && count == 3) {
        const char *names[] = {arguments[2], NULL};
        operation = pa_ext_device_manager_delete(context, names, on_success, NULL);
    } else if (!strcmp(asked, "reorder") && count > 3) {
        /* The arguments end with NULL. */
        const char **devices = (const char **)&arguments[3];
        operation =
            pa_ext_device_manager_reorder_devices_for_role(context, arguments[2], devices, on_success, NULL);
    } else if (!strcmp(asked, "routing") && count == 3) {
        operation = pa_ext_device_manager_enable_role_device_priority_routing(context, atoi(arguments[2]), on_success,
                                                                              NULL);
    } else if (!strcmp(asked, "follow")) {
        pa_ext_device_manager_set_subscribe_cb(context, on_change, NULL);
        operation = pa_ext_device_manager_subscribe(context, 1, on_success, NULL);
    }
    finish(asked, operation);
    if (strcmp(asked, "follow"))
        return 0;
    printf("following\n");
    while (pa_context_get_state(context) == PA_CONTEXT_READY)
        pa_mainloop_iterate(loop, 1, NULL);
    return 0;
}
