//! The modules of PulseAudio that programs can load here.

use std::ffi::CStr;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::front_end) enum Kind {
    NullSink,
    NullSource,
    Loopback,
    CombineSink,
    RemapSink,
    RemapSource,
    PipeSink,
    PipeSource,
    NativeProtocolTcp,
    AlwaysSink,
    SwitchOnConnect,
    RescueStreams,
    SuspendOnIdle,
    StreamRestore,
    DeviceRestore,
    DeviceManager,
    RoleCork,
    RoleDucking,
    TunnelSink,
    TunnelSource,
    SimpleProtocolTcp,
    LadspaSink,
    EchoCancel,
    RtpSend,
    RtpReceive,
    ZeroconfPublish,
    ZeroconfDiscover,
    X11Bell,
}

/// What programs see of a kind, and the arguments that it takes: PulseAudio 16.1's.
struct Facts {
    kind: Kind,
    name: &'static CStr,
    description: &'static str,
    keys: &'static [&'static str],
}

const ALL: [Facts; 28] = [
    Facts {
        kind: Kind::NullSink,
        name: c"module-null-sink",
        description: "A device without hardware",
        keys: &[
            "sink_name",
            "sink_properties",
            "format",
            "rate",
            "channels",
            "channel_map",
            "formats",
            "norewinds",
        ],
    },
    Facts {
        kind: Kind::NullSource,
        name: c"module-null-source",
        description: "A source of silence",
        keys: &[
            "source_name",
            "description",
            "format",
            "rate",
            "channels",
            "channel_map",
            "max_latency_msec",
        ],
    },
    Facts {
        kind: Kind::Loopback,
        name: c"module-loopback",
        description: "Plays on a sink what a source records",
        keys: &[
            "source",
            "sink",
            "adjust_time",
            "latency_msec",
            "max_latency_msec",
            "log_interval",
            "fast_adjust_threshold_msec",
            "adjust_threshold_usec",
            "format",
            "rate",
            "channels",
            "channel_map",
            "sink_input_properties",
            "source_output_properties",
            "source_dont_move",
            "sink_dont_move",
            "remix",
        ],
    },
    Facts {
        kind: Kind::CombineSink,
        name: c"module-combine-sink",
        description: "A sink that is heard on several others in step",
        keys: &[
            "sink_name",
            "sink_properties",
            "slaves",
            "adjust_time",
            "resample_method",
            "format",
            "rate",
            "channels",
            "channel_map",
            "remix",
        ],
    },
    Facts {
        kind: Kind::RemapSink,
        name: c"module-remap-sink",
        description: "A sink that is heard on channels of another",
        keys: &[
            "sink_name",
            "sink_properties",
            "master",
            "master_channel_map",
            "format",
            "rate",
            "channels",
            "channel_map",
            "resample_method",
            "remix",
        ],
    },
    Facts {
        kind: Kind::RemapSource,
        name: c"module-remap-source",
        description: "A source that has channels of another",
        keys: &[
            "source_name",
            "source_properties",
            "master",
            "master_channel_map",
            "format",
            "rate",
            "channels",
            "channel_map",
            "resample_method",
            "remix",
        ],
    },
    Facts {
        kind: Kind::PipeSink,
        name: c"module-pipe-sink",
        description: "A sink that is written to a FIFO",
        keys: &[
            "sink_name",
            "sink_properties",
            "file",
            "format",
            "rate",
            "channels",
            "channel_map",
            "use_system_clock_for_timing",
        ],
    },
    Facts {
        kind: Kind::PipeSource,
        name: c"module-pipe-source",
        description: "A source that is read from a FIFO",
        keys: &[
            "source_name",
            "source_properties",
            "file",
            "format",
            "rate",
            "channels",
            "channel_map",
        ],
    },
    Facts {
        kind: Kind::NativeProtocolTcp,
        name: c"module-native-protocol-tcp",
        description: "Programs over TCP",
        keys: &[
            "auth-anonymous",
            "auth-cookie",
            "auth-cookie-enabled",
            "auth-ip-acl",
            "port",
            "listen",
        ],
    },
    Facts {
        kind: Kind::AlwaysSink,
        name: c"module-always-sink",
        description: "A silent sink while there is no other",
        keys: &["sink_name"],
    },
    Facts {
        kind: Kind::SwitchOnConnect,
        name: c"module-switch-on-connect",
        description: "A new device becomes the default",
        keys: &["only_from_unavailable", "ignore_virtual", "blacklist"],
    },
    Facts {
        kind: Kind::RescueStreams,
        name: c"module-rescue-streams",
        description: "Streams of a device that goes move to the default (always)",
        keys: &[],
    },
    Facts {
        kind: Kind::SuspendOnIdle,
        name: c"module-suspend-on-idle",
        description: "Devices sleep when nothing uses them (always)",
        keys: &["timeout"],
    },
    Facts {
        kind: Kind::StreamRestore,
        name: c"module-stream-restore",
        description: "Volume, mute and device of streams are remembered (always)",
        keys: &[
            "restore_device",
            "restore_volume",
            "restore_muted",
            "on_hotplug",
            "on_rescue",
            "fallback_table",
        ],
    },
    Facts {
        kind: Kind::DeviceRestore,
        name: c"module-device-restore",
        description: "Volume and mute of devices are remembered (always)",
        keys: &["restore_port", "restore_volume", "restore_muted", "restore_formats"],
    },
    Facts {
        kind: Kind::DeviceManager,
        name: c"module-device-manager",
        description: "Devices have names that users give them, and an order for each role",
        keys: &["do_routing", "on_hotplug", "on_rescue"],
    },
    Facts {
        kind: Kind::RoleCork,
        name: c"module-role-cork",
        description: "Streams of some roles hold others while they are heard",
        keys: &["trigger_roles", "cork_roles", "global", "use_source_trigger"],
    },
    Facts {
        kind: Kind::RoleDucking,
        name: c"module-role-ducking",
        description: "Streams of some roles turn others down while they are heard",
        keys: &["trigger_roles", "ducking_roles", "global", "volume", "use_source_trigger"],
    },
    Facts {
        kind: Kind::TunnelSink,
        name: c"module-tunnel-sink",
        description: "A sink that is heard at another server",
        keys: &[
            "sink_name",
            "sink_properties",
            "auto",
            "server",
            "sink",
            "reconnect_interval_ms",
            "cookie",
            "auth-cookie-enabled",
            "format",
            "channels",
            "rate",
            "latency_msec",
            "channel_map",
        ],
    },
    Facts {
        kind: Kind::TunnelSource,
        name: c"module-tunnel-source",
        description: "A source of what is recorded at another server",
        keys: &[
            "source_name",
            "source_properties",
            "auto",
            "server",
            "source",
            "reconnect_interval_ms",
            "cookie",
            "auth-cookie-enabled",
            "format",
            "channels",
            "rate",
            "latency_msec",
            "channel_map",
        ],
    },
    Facts {
        kind: Kind::SimpleProtocolTcp,
        name: c"module-simple-protocol-tcp",
        description: "Raw samples over TCP",
        keys: &[
            "rate", "format", "channels", "sink", "source", "playback", "record", "port", "listen",
        ],
    },
    Facts {
        kind: Kind::LadspaSink,
        name: c"module-ladspa-sink",
        description: "A sink that is heard on another through a LADSPA plug-in",
        keys: &[
            "sink_name",
            "sink_properties",
            "sink_input_properties",
            "master",
            "sink_master",
            "format",
            "rate",
            "channels",
            "channel_map",
            "plugin",
            "label",
            "control",
            "input_ladspaport_map",
            "output_ladspaport_map",
            "autoloaded",
        ],
    },
    Facts {
        kind: Kind::EchoCancel,
        name: c"module-echo-cancel",
        description: "A source without the echo of a sink",
        keys: &[
            "source_name",
            "source_properties",
            "source_master",
            "sink_name",
            "sink_properties",
            "sink_master",
            "adjust_time",
            "adjust_threshold",
            "format",
            "rate",
            "channels",
            "channel_map",
            "aec_method",
            "aec_args",
            "save_aec",
            "autoloaded",
            "use_volume_sharing",
            "use_master_format",
        ],
    },
    Facts {
        kind: Kind::RtpSend,
        name: c"module-rtp-send",
        description: "Sends what a source records, by RTP",
        keys: &[
            "source",
            "format",
            "channels",
            "rate",
            "destination",
            "destination_ip",
            "source_ip",
            "port",
            "mtu",
            "loop",
            "ttl",
            "inhibit_auto_suspend",
            "stream_name",
            "enable_opus",
        ],
    },
    Facts {
        kind: Kind::RtpReceive,
        name: c"module-rtp-recv",
        description: "Plays what is sent by RTP",
        keys: &["sink", "sap_address", "latency_msec"],
    },
    Facts {
        kind: Kind::ZeroconfPublish,
        name: c"module-zeroconf-publish",
        description: "Other machines learn of the sinks and sources here, through Avahi",
        keys: &[],
    },
    Facts {
        kind: Kind::ZeroconfDiscover,
        name: c"module-zeroconf-discover",
        description: "Tunnels to the sinks and sources of other machines, through Avahi",
        keys: &["latency_msec"],
    },
    Facts {
        kind: Kind::X11Bell,
        name: c"module-x11-bell",
        description: "Plays a sample when an X server rings its bell",
        keys: &["sink", "sample", "display", "xauthority"],
    },
];

impl Kind {
    /// Returns the kind of this name.
    pub fn named(name: &CStr) -> Option<Self> {
        ALL.iter().find(|facts| facts.name == name).map(|facts| facts.kind)
    }

    fn facts(self) -> &'static Facts {
        // Each kind is in the table: a test looks.
        ALL.iter().find(|facts| facts.kind == self).unwrap_or(&ALL[0])
    }

    pub fn name(self) -> &'static CStr {
        self.facts().name
    }

    pub fn description(self) -> &'static str {
        self.facts().description
    }

    /// Returns whether there is one of it at most, as in PulseAudio.
    pub fn is_once(self) -> bool {
        matches!(
            self,
            Self::AlwaysSink
                | Self::SwitchOnConnect
                | Self::SuspendOnIdle
                | Self::StreamRestore
                | Self::DeviceRestore
                | Self::DeviceManager
                | Self::ZeroconfPublish
                | Self::ZeroconfDiscover
        )
    }

    /// Returns whether it opens something that is not sound: files, code, or a way in or out. What
    /// streams do to each other is no such thing: a program that may load modules may as well mute
    /// every stream itself.
    pub fn reaches_outside(self) -> bool {
        matches!(
            self,
            Self::PipeSink
                | Self::PipeSource
                | Self::NativeProtocolTcp
                | Self::TunnelSink
                | Self::TunnelSource
                | Self::SimpleProtocolTcp
                | Self::LadspaSink
                | Self::RtpSend
                | Self::RtpReceive
                | Self::ZeroconfPublish
                | Self::ZeroconfDiscover
                | Self::X11Bell
        )
    }

    /// Returns the keys of its arguments.
    pub fn keys(self) -> &'static [&'static str] {
        self.facts().keys
    }
}
