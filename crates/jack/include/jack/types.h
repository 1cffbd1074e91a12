/* consort: types, options and callbacks of the JACK interface.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CONSORT_JACK_TYPES_H
#define CONSORT_JACK_TYPES_H

#include <jack/systemdeps.h>

/* Numbers. */

/** Names a client or a port for as long as the server runs; see uuid.h. */
typedef uint64_t jack_uuid_t;
/** A size in bytes inside shared memory. */
typedef int32_t jack_shmsize_t;
/** A count of frames (one sample per channel), or a time in frames, which wraps around at 2^32. */
typedef uint32_t jack_nframes_t;
/** The largest jack_nframes_t. */
#define JACK_MAX_FRAMES (4294967295U)
/** A time on the clock of jack_get_time(), in microseconds. */
typedef uint64_t jack_time_t;
/** Longest parameter string of an internal client, in bytes. */
#define JACK_LOAD_INIT_LIMIT 1024
/** Handle of an internal client; 0 is none. */
typedef uint64_t jack_intclient_t;
/** A number that is never given twice by one server: tells whether a transport snapshot is whole. */
typedef uint64_t jack_unique_t;
/** The number under which callbacks name a port. */
typedef uint32_t jack_port_id_t;
/** The number of a port type: 0 audio, 1 MIDI. */
typedef uint32_t jack_port_type_id_t;
/** One audio sample: nominally -1.0 to 1.0. */
typedef float jack_default_audio_sample_t;

/** A port. Opaque. */
typedef struct _jack_port jack_port_t;
/** A client: a program's attachment to a server. Opaque. */
typedef struct _jack_client jack_client_t;

/** Type of ports that carry jack_default_audio_sample_t, one per frame. */
#define JACK_DEFAULT_AUDIO_TYPE "32 bit float mono audio"
/** Type of ports that carry MIDI events; see midiport.h. */
#define JACK_DEFAULT_MIDI_TYPE "8 bit raw midi"

/* Opening a client. */

/** Bits of the options argument of jack_client_open() and jack_internal_client_load(). The bits that announce a
 * further argument do so in the order server name, load name, load init, session id. */
enum JackOptions {
    JackNullOption = 0,
    JackNoStartServer = 1 << 0, /**< fail rather than start a server */
    JackUseExactName = 1 << 1,  /**< fail rather than change the name when it is taken */
    JackServerName = 1 << 2,    /**< argument `const char *`: the server's name */
    JackLoadName = 1 << 3,      /**< argument `const char *`: the shared object of an internal client */
    JackLoadInit = 1 << 4,      /**< argument `const char *`: parameters of an internal client */
    JackSessionID = 1 << 5      /**< argument `const char *`: the uuid that a session has reserved */
};
typedef enum JackOptions jack_options_t;

/** The options that jack_client_open() accepts. */
#define JackOpenOptions (JackNoStartServer | JackUseExactName | JackServerName | JackSessionID)
/** The options that jack_internal_client_load() accepts. */
#define JackLoadOptions (JackUseExactName | JackLoadName | JackLoadInit)

/** Bits that say how an operation went. JackFailure is set whenever it did not succeed. */
enum JackStatus {
    JackFailure = 1 << 0,
    JackInvalidOption = 1 << 1, /**< an unknown option, or one that does not belong here */
    JackNameNotUnique = 1 << 2, /**< the name was taken; without JackFailure: another was chosen */
    JackServerStarted = 1 << 3, /**< the call has started the server */
    JackServerFailed = 1 << 4,  /**< no server answers */
    JackServerError = 1 << 5,   /**< talking to the server failed */
    JackNoSuchClient = 1 << 6,  /**< no internal client of that name or handle */
    JackLoadFailure = 1 << 7,   /**< the internal client's object cannot be loaded */
    JackInitFailure = 1 << 8,   /**< the internal client refused to start */
    JackShmFailure = 1 << 9,    /**< shared memory cannot be mapped */
    JackVersionError = 1 << 10, /**< library and server speak different versions */
    JackBackendError = 1 << 11, /**< the driver failed */
    JackClientZombie = 1 << 12  /**< the server has given the client up */
};
typedef enum JackStatus jack_status_t;

/* Ports. */

/** Bits of a port. */
enum JackPortFlags {
    JackPortIsInput = 1 << 0,    /**< the client reads from it */
    JackPortIsOutput = 1 << 1,   /**< the client writes to it */
    JackPortIsPhysical = 1 << 2, /**< it stands for a connector of a device */
    JackPortCanMonitor = 1 << 3, /**< jack_port_request_monitor() has an effect */
    JackPortIsTerminal = 1 << 4  /**< signals begin or end here: nothing is passed on from inputs to outputs */
};

/** Which way a latency is counted. */
enum JackLatencyCallbackMode {
    JackCaptureLatency, /**< from where the signal entered, up to the port */
    JackPlaybackLatency /**< from the port, to where the signal leaves */
};
typedef enum JackLatencyCallbackMode jack_latency_callback_mode_t;

/** Shortest and longest path, in frames. */
PRE_PACKED_STRUCTURE
struct _jack_latency_range {
    jack_nframes_t min;
    jack_nframes_t max;
} POST_PACKED_STRUCTURE;
typedef struct _jack_latency_range jack_latency_range_t;

/* Callbacks. Each gets back the pointer it was registered with. "Process thread" is the client's real-time thread;
 * "notification thread" is an ordinary one in which a callback may take its time. */

/** Process thread, once per cycle. Not 0 takes the client out of the graph. */
typedef int (*JackProcessCallback)(jack_nframes_t frames, void *context);
/** Process thread: its whole body; see jack_cycle_wait(). */
typedef void *(*JackThreadCallback)(void *context);
/** Each thread of the library that is going to run callbacks, before its first. */
typedef void (*JackThreadInitCallback)(void *context);
/** Notification thread, after the order of the graph has changed. */
typedef int (*JackGraphOrderCallback)(void *context);
/** Notification thread, after a cycle that missed its deadline. */
typedef int (*JackXRunCallback)(void *context);
/** Before cycles of the new length run. Audio is silent meanwhile, so memory may be allocated. */
typedef int (*JackBufferSizeCallback)(jack_nframes_t frames, void *context);
/** At registration and whenever the rate, in Hz, changes. */
typedef int (*JackSampleRateCallback)(jack_nframes_t rate_hz, void *context);
/** Notification thread: a port has come (not 0) or gone (0). */
typedef void (*JackPortRegistrationCallback)(jack_port_id_t port, int registered, void *context);
/** Notification thread: another client has come (not 0) or gone (0). */
typedef void (*JackClientRegistrationCallback)(const char *name, int registered, void *context);
/** Notification thread: two ports were connected (not 0) or disconnected (0). */
typedef void (*JackPortConnectCallback)(jack_port_id_t source, jack_port_id_t destination, int connected,
                                        void *context);
/** Notification thread: a port has another full name. */
typedef void (*JackPortRenameCallback)(jack_port_id_t port, const char *old_name, const char *new_name,
                                       void *context);
/** Notification thread: freewheeling begins (not 0) or ends (0). */
typedef void (*JackFreewheelCallback)(int starting, void *context);
/** Notification thread: recompute the latencies of the client's own ports in this mode. */
typedef void (*JackLatencyCallback)(jack_latency_callback_mode_t mode, void *context);
/** Once, when the server is gone for good. Only flags and semaphores may be touched. */
typedef void (*JackShutdownCallback)(void *context);
/** As JackShutdownCallback, with the reason, which is valid during the call. */
typedef void (*JackInfoShutdownCallback)(jack_status_t code, const char *reason, void *context);

/* Transport. */

/** What the transport is doing. */
typedef enum {
    JackTransportStopped = 0,
    JackTransportRolling = 1,
    JackTransportLooping = 2, /**< not used */
    JackTransportStarting = 3, /**< waits for slow clients */
    JackTransportNetStarting = 4 /**< waits for clients on the network */
} jack_transport_state_t;

/** Which optional members of a jack_position_t mean something. */
typedef enum {
    JackPositionBBT = 1 << 4,      /**< bar to beats_per_minute */
    JackPositionTimecode = 1 << 5, /**< frame_time and next_time */
    JackBBTFrameOffset = 1 << 6,   /**< bbt_offset */
    JackAudioVideoRatio = 1 << 7,  /**< audio_frames_per_video_frame */
    JackVideoFrameOffset = 1 << 8, /**< video_offset */
    JackTickDouble = 1 << 9        /**< tick_double */
} jack_position_bits_t;

#define JACK_POSITION_MASK (JackPositionBBT | JackPositionTimecode)
/** Says that jack_position_t has the members from frame_time to video_offset. */
#define EXTENDED_TIME_INFO
/** Says that jack_position_t has tick_double. */
#define JACK_TICK_DOUBLE

/** Where the transport stands. A snapshot is whole when unique_1 equals unique_2. */
PRE_PACKED_STRUCTURE
struct _jack_position {
    jack_unique_t unique_1;
    jack_time_t usecs;          /**< time of the cycle's start; set by the server */
    jack_nframes_t frame_rate;  /**< in Hz; set by the server */
    jack_nframes_t frame;       /**< frames from the start of the piece */
    jack_position_bits_t valid; /**< which of the members below are set */

    /* JackPositionBBT */
    int32_t bar;                /**< from 1 */
    int32_t beat;               /**< from 1 */
    int32_t tick;               /**< from 0 */
    double bar_start_tick;      /**< ticks from the start of the piece to this bar */
    float beats_per_bar;        /**< upper number of the time signature */
    float beat_type;            /**< lower number of the time signature */
    double ticks_per_beat;
    double beats_per_minute;

    /* JackPositionTimecode, in seconds */
    double frame_time;          /**< of this cycle's first frame */
    double next_time;           /**< of the next cycle's first frame, if the transport just rolls */

    jack_nframes_t bbt_offset;  /**< frames from the cycle's start to the position that bar, beat and tick give */
    float audio_frames_per_video_frame; /**< not more than 0: there is no video */
    jack_nframes_t video_offset; /**< frames from the cycle's start to the next video frame */
    double tick_double;         /**< tick with its fraction */

    int32_t padding[5];
    jack_unique_t unique_2;
} POST_PACKED_STRUCTURE;
typedef struct _jack_position jack_position_t;

/** Process thread, just before process: not 0 when the client is ready to roll from `position`. */
typedef int (*JackSyncCallback)(jack_transport_state_t state, jack_position_t *position, void *context);
/** Process thread, just after process, in the timebase master: fills the optional members for the next cycle.
 * `new_position` is not 0 after a jump, and the first time. */
typedef void (*JackTimebaseCallback)(jack_transport_state_t state, jack_nframes_t frames,
                                     jack_position_t *position, int new_position, void *context);

/* The transport interface of long ago, for old programs. */

typedef enum {
    JackTransportState = 1 << 0,
    JackTransportPosition = 1 << 1,
    JackTransportLoop = 1 << 2,
    JackTransportSMPTE = 1 << 3,
    JackTransportBBT = 1 << 4
} jack_transport_bits_t;

typedef struct {
    jack_nframes_t frame_rate;
    jack_time_t usecs;
    jack_transport_bits_t valid;
    jack_transport_state_t transport_state;
    jack_nframes_t frame;
    jack_nframes_t loop_start;
    jack_nframes_t loop_end;
    long smpte_offset;
    float smpte_frame_rate;
    int bar;
    int beat;
    int tick;
    double bar_start_tick;
    float beats_per_bar;
    float beat_type;
    double ticks_per_beat;
    double beats_per_minute;
} jack_transport_info_t;

#endif
