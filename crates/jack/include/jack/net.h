/* consort: sound over the network (libjacknet.so.0), which this release does not have. Every function says so: null, or
 * -1.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_NET_H
#define CONSORT_JACK_NET_H

#include <jack/systemdeps.h>
#include <jack/types.h>
#include <jack/weakmacros.h>

#define DEFAULT_MULTICAST_IP "225.3.19.154"
#define DEFAULT_PORT 19000
#define DEFAULT_MTU 1500
#define MASTER_NAME_SIZE 256

#define NO_ERROR 0
#define SOCKET_ERROR -1
#define SYNC_PACKET_ERROR -2
#define DATA_PACKET_ERROR -3

#define RESTART_CB_API 1

#ifdef __cplusplus
extern "C" {
#endif

/** How samples travel. */
enum JackNetEncoder {
    JackFloatEncoder = 0,
    JackIntEncoder = 1,
    JackCeltEncoder = 2,
    JackOpusEncoder = 3
};

/** What a slave asks for; a number of -1 takes the master's. */
typedef struct {
    int audio_input;
    int audio_output;
    int midi_input;
    int midi_output;
    int mtu;      /**< bytes */
    int time_out; /**< seconds; -1: none */
    int encoder;  /**< enum JackNetEncoder */
    int kbps;
    int latency; /**< cycles */
} jack_slave_t;

/** What a master asks for; a number of -1 takes the slave's. */
typedef struct {
    int audio_input;
    int audio_output;
    int midi_input;
    int midi_output;
    jack_nframes_t buffer_size;
    jack_nframes_t sample_rate;
    char master_name[MASTER_NAME_SIZE];
    int time_out; /**< seconds; -1: none */
    int partial_cycle;
} jack_master_t;

typedef struct _jack_net_slave jack_net_slave_t;
typedef struct _jack_net_master jack_net_master_t;
typedef struct _jack_adapter jack_adapter_t;

typedef int (*JackNetSlaveProcessCallback)(jack_nframes_t buffer_size, int audio_input, float **audio_input_buffer,
                                           int midi_input, void **midi_input_buffer, int audio_output,
                                           float **audio_output_buffer, int midi_output, void **midi_output_buffer,
                                           void *data);
typedef int (*JackNetSlaveBufferSizeCallback)(jack_nframes_t nframes, void *arg);
typedef int (*JackNetSlaveSampleRateCallback)(jack_nframes_t nframes, void *arg);
typedef void (*JackNetSlaveShutdownCallback)(void *arg);
typedef int (*JackNetSlaveRestartCallback)(void *arg);
typedef void (*JackNetSlaveErrorCallback)(int error_code, void *arg);

jack_net_slave_t *jack_net_slave_open(const char *ip, int port, const char *name, jack_slave_t *request,
                                      jack_master_t *result);
int jack_net_slave_close(jack_net_slave_t *net);
int jack_set_net_slave_process_callback(jack_net_slave_t *net, JackNetSlaveProcessCallback net_callback, void *arg);
int jack_net_slave_activate(jack_net_slave_t *net);
int jack_net_slave_deactivate(jack_net_slave_t *net);
int jack_net_slave_is_active(jack_net_slave_t *net);
int jack_set_net_slave_buffer_size_callback(jack_net_slave_t *net, JackNetSlaveBufferSizeCallback bufsize_callback,
                                            void *arg);
int jack_set_net_slave_sample_rate_callback(jack_net_slave_t *net, JackNetSlaveSampleRateCallback samplerate_callback,
                                            void *arg);
int jack_set_net_slave_shutdown_callback(jack_net_slave_t *net, JackNetSlaveShutdownCallback shutdown_callback,
                                         void *arg) JACK_OPTIONAL_WEAK_DEPRECATED_EXPORT;
int jack_set_net_slave_restart_callback(jack_net_slave_t *net, JackNetSlaveRestartCallback restart_callback,
                                        void *arg) JACK_OPTIONAL_WEAK_EXPORT;
int jack_set_net_slave_error_callback(jack_net_slave_t *net, JackNetSlaveErrorCallback error_callback,
                                      void *arg) JACK_OPTIONAL_WEAK_EXPORT;

jack_net_master_t *jack_net_master_open(const char *ip, int port, jack_master_t *request, jack_slave_t *result);
int jack_net_master_close(jack_net_master_t *net);
int jack_net_master_recv(jack_net_master_t *net, int audio_input, float **audio_input_buffer, int midi_input,
                         void **midi_input_buffer);
int jack_net_master_recv_slice(jack_net_master_t *net, int audio_input, float **audio_input_buffer, int midi_input,
                               void **midi_input_buffer, int frames);
int jack_net_master_send(jack_net_master_t *net, int audio_output, float **audio_output_buffer, int midi_output,
                         void **midi_output_buffer);
int jack_net_master_send_slice(jack_net_master_t *net, int audio_output, float **audio_output_buffer, int midi_output,
                               void **midi_output_buffer, int frames);

jack_adapter_t *jack_create_adapter(int input, int output, jack_nframes_t host_buffer_size,
                                    jack_nframes_t host_sample_rate, jack_nframes_t adapted_buffer_size,
                                    jack_nframes_t adapted_sample_rate);
int jack_destroy_adapter(jack_adapter_t *adapter);
void jack_flush_adapter(jack_adapter_t *adapter);
int jack_adapter_push_and_pull(jack_adapter_t *adapter, float **input, float **output, unsigned int frames);
int jack_adapter_pull_and_push(jack_adapter_t *adapter, float **input, float **output, unsigned int frames);

#ifdef __cplusplus
}
#endif

#endif
