/* consort: control of a server (libjackserver.so.0). The server is a process of its own, and ends with the program.
 * Not to be called in the process thread. What is no server, driver, internal client or parameter is answered with
 * false, 0 or null. Lists and texts live as long as the server that they belong to.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_CONTROL_H
#define CONSORT_JACK_CONTROL_H

#include <jack/jslist.h>
#include <jack/systemdeps.h>
#include <jack/types.h>
#include <stdbool.h>

/** Types of parameters. */
typedef enum {
    JackParamInt = 1, /**< member `i` */
    JackParamUInt,    /**< member `ui` */
    JackParamChar,    /**< member `c` */
    JackParamString,  /**< member `str` */
    JackParamBool     /**< member `b` */
} jackctl_param_type_t;

/** What a driver is for. */
typedef enum {
    JackMaster = 1, /**< it starts the cycles */
    JackSlave       /**< it has ports beside those of the one that does */
} jackctl_driver_type_t;

#define JACK_PARAM_MAX (JackParamBool + 1)

/** Longest text, in bytes without the 0 at its end. */
#define JACK_PARAM_STRING_MAX 127

/** A value: which member is meant is the parameter's type. */
union jackctl_parameter_value {
    uint32_t ui;
    int32_t i;
    char c;
    char str[JACK_PARAM_STRING_MAX + 1];
    bool b;
};

typedef struct jackctl_server jackctl_server_t;
typedef struct jackctl_driver jackctl_driver_t;
typedef struct jackctl_internal jackctl_internal_t;
typedef struct jackctl_parameter jackctl_parameter_t;
typedef struct jackctl_sigmask jackctl_sigmask_t;

#ifdef __cplusplus
extern "C" {
#endif

/** Blocks the signals that end programs, for jackctl_wait_signals(). To be called before there are other threads. */
jackctl_sigmask_t *jackctl_setup_signals(unsigned int flags);
/** Waits until one of them comes. */
void jackctl_wait_signals(jackctl_sigmask_t *signals);

/** Use jackctl_server_create2(). */
jackctl_server_t *jackctl_server_create(bool (*on_device_acquire)(const char *device_name),
                                        void (*on_device_release)(const char *device_name));
/** A server that is not open. The callbacks may be null: the first is asked for the right to use a card ("Audio0"), the
 * second told that it is used no more, the third is never called. */
jackctl_server_t *jackctl_server_create2(bool (*on_device_acquire)(const char *device_name),
                                         void (*on_device_release)(const char *device_name),
                                         void (*on_device_reservation_loop)(void));
/** Closes it, and forgets all that belongs to it. */
void jackctl_server_destroy(jackctl_server_t *server);
/** Starts the server's process and its cycles, and waits until it takes programs in. */
bool jackctl_server_open(jackctl_server_t *server, jackctl_driver_t *driver);
/** Has an open server run: it does, unless it was stopped. */
bool jackctl_server_start(jackctl_server_t *server);
/** Stops it: its clients are told. */
bool jackctl_server_stop(jackctl_server_t *server);
/** Stops it if it runs, and lets go of its driver. */
bool jackctl_server_close(jackctl_server_t *server);
const JSList *jackctl_server_get_drivers_list(jackctl_server_t *server);
const JSList *jackctl_server_get_parameters(jackctl_server_t *server);
const JSList *jackctl_server_get_internals_list(jackctl_server_t *server);
bool jackctl_server_load_internal(jackctl_server_t *server, jackctl_internal_t *internal);
bool jackctl_server_unload_internal(jackctl_server_t *server, jackctl_internal_t *internal);
/** Loads internal clients (`l NAME OBJECT PARAMETERS`) and makes connections (`c SOURCE DESTINATION`). */
bool jackctl_server_load_session_file(jackctl_server_t *server, const char *file);
/** Adds a further card (driver "alsa", resampled) or MIDI ("alsarawmidi"), with the parameters that are set now: at once if
 * the server runs, else from its start on until it is closed. */
bool jackctl_server_add_slave(jackctl_server_t *server, jackctl_driver_t *driver);
/** Of several of this driver, the oldest. */
bool jackctl_server_remove_slave(jackctl_server_t *server, jackctl_driver_t *driver);
/** Has another driver start the cycles: clients keep their ports and connections, unless it has another sample rate or
 * more ports; internal clients end. */
bool jackctl_server_switch_master(jackctl_server_t *server, jackctl_driver_t *driver);

const char *jackctl_driver_get_name(jackctl_driver_t *driver);
jackctl_driver_type_t jackctl_driver_get_type(jackctl_driver_t *driver);
const JSList *jackctl_driver_get_parameters(jackctl_driver_t *driver);
/** Sets parameters as a command line says; the first word is not looked at. Returns 0, or 1. */
int jackctl_driver_params_parse(jackctl_driver_t *driver, int argc, char *argv[]);

const char *jackctl_internal_get_name(jackctl_internal_t *internal);
const JSList *jackctl_internal_get_parameters(jackctl_internal_t *internal);

const char *jackctl_parameter_get_name(jackctl_parameter_t *parameter);
const char *jackctl_parameter_get_short_description(jackctl_parameter_t *parameter);
const char *jackctl_parameter_get_long_description(jackctl_parameter_t *parameter);
jackctl_param_type_t jackctl_parameter_get_type(jackctl_parameter_t *parameter);
char jackctl_parameter_get_id(jackctl_parameter_t *parameter);
bool jackctl_parameter_is_set(jackctl_parameter_t *parameter);
bool jackctl_parameter_reset(jackctl_parameter_t *parameter);
union jackctl_parameter_value jackctl_parameter_get_value(jackctl_parameter_t *parameter);
/** False, and nothing is changed, if it may not be that. */
bool jackctl_parameter_set_value(jackctl_parameter_t *parameter, const union jackctl_parameter_value *value_ptr);
union jackctl_parameter_value jackctl_parameter_get_default_value(jackctl_parameter_t *parameter);
bool jackctl_parameter_has_range_constraint(jackctl_parameter_t *parameter);
bool jackctl_parameter_has_enum_constraint(jackctl_parameter_t *parameter);
uint32_t jackctl_parameter_get_enum_constraints_count(jackctl_parameter_t *parameter);
union jackctl_parameter_value jackctl_parameter_get_enum_constraint_value(jackctl_parameter_t *parameter,
                                                                          uint32_t index);
const char *jackctl_parameter_get_enum_constraint_description(jackctl_parameter_t *parameter, uint32_t index);
void jackctl_parameter_get_range_constraint(jackctl_parameter_t *parameter, union jackctl_parameter_value *min_ptr,
                                            union jackctl_parameter_value *max_ptr);
bool jackctl_parameter_constraint_is_strict(jackctl_parameter_t *parameter);
bool jackctl_parameter_constraint_is_fake_value(jackctl_parameter_t *parameter);

/** Tell the program of an error, of something worth knowing, and of what only who looks for a fault wants to know. */
void jack_error(const char *format, ...);
void jack_info(const char *format, ...);
void jack_log(const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
