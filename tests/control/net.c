/* Every function of jack/net.h answers its error, and never a made-up success. */
#include <jack/net.h>
#include <stdio.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int failures;

static void check(int is_so, int line, const char *condition) {
    if (is_so)
        return;
    fprintf(stderr, "line %d: not true: %s\n", line, condition);
    failures++;
}
#define CHECK(condition) check(condition, __LINE__, #condition)

int main(void) {
    jack_slave_t slave = {.audio_input = 2};
    jack_master_t master = {.buffer_size = 64};
    CHECK(!jack_net_slave_open(DEFAULT_MULTICAST_IP, DEFAULT_PORT, "net", &slave, &master));
    CHECK(jack_net_slave_close(NULL) == -1);
    CHECK(jack_set_net_slave_process_callback(NULL, NULL, NULL) == -1);
    CHECK(jack_net_slave_activate(NULL) == -1 && jack_net_slave_deactivate(NULL) == -1);
    CHECK(jack_net_slave_is_active(NULL) == 0);
    CHECK(jack_set_net_slave_buffer_size_callback(NULL, NULL, NULL) == -1);
    CHECK(jack_set_net_slave_sample_rate_callback(NULL, NULL, NULL) == -1);
    CHECK(jack_set_net_slave_shutdown_callback(NULL, NULL, NULL) == -1);
    CHECK(jack_set_net_slave_restart_callback(NULL, NULL, NULL) == -1);
    CHECK(jack_set_net_slave_error_callback(NULL, NULL, NULL) == -1);
    CHECK(!jack_net_master_open(DEFAULT_MULTICAST_IP, DEFAULT_PORT, &master, &slave));
    CHECK(jack_net_master_close(NULL) == -1);
    CHECK(jack_net_master_recv(NULL, 0, NULL, 0, NULL) == -1);
    CHECK(jack_net_master_recv_slice(NULL, 0, NULL, 0, NULL, 0) == -1);
    CHECK(jack_net_master_send(NULL, 0, NULL, 0, NULL) == -1);
    CHECK(jack_net_master_send_slice(NULL, 0, NULL, 0, NULL, 0) == -1);
    CHECK(!jack_create_adapter(2, 2, 64, 48000, 64, 44100));
    CHECK(jack_destroy_adapter(NULL) == -1);
    jack_flush_adapter(NULL);
    CHECK(jack_adapter_push_and_pull(NULL, NULL, NULL, 0) == -1);
    CHECK(jack_adapter_pull_and_push(NULL, NULL, NULL, 0) == -1);
    return failures != 0;
}
