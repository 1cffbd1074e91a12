//! Modules that process sound: what they ask of the server.

use super::FAILED;
use super::*;
use crate::output::{Devices, Heard, NewLink, NewLoopback};
use crate::processing::{NewEcho, NewPlugin, NewSpeex, Processing};

const LADSPA: &str = "module-ladspa-sink";
const ECHO: &str = "module-echo-cancel";
/// What is done without arguments.
const SPEEX: NewSpeex = NewSpeex {
    filter_ms: 200,
    agc: true,
    denoise: true,
    suppress: true,
    suppress_db: None,
    suppress_active_db: None,
};

fn map(text: &str) -> convert::ChannelMap {
    text.parse().expect("a map")
}

impl Scene {
    fn processed(&mut self, index: u32) -> (NewLoopback, Processing) {
        match self.links().get(&index) {
            Some(NewLink::Processed(loopback, processing)) => {
                (loopback.clone(), (**processing).clone())
            }
            other => panic!("{other:?}"),
        }
    }

    fn echo(&mut self, index: u32) -> (NewLoopback, NewEcho) {
        match self.processed(index) {
            (loopback, Processing::Echo(echo)) => (loopback, echo),
            other => panic!("{other:?}"),
        }
    }

    /// A sink that plays, and another one whose monitor is the microphone.
    fn room(&mut self) -> u32 {
        let client = self.admitted();
        for name in ["speaker", "microphone"] {
            let arguments = format!("sink_name={name}");
            self.load_named(client, "module-null-sink", &arguments).expect("loaded");
        }
        client
    }

    fn device_names(&mut self) -> Vec<String> {
        let devices = &self.front_end.devices_mut().devices;
        devices.iter().filter_map(|device| device.name.clone()).collect()
    }
}

#[test]
fn a_ladspa_sink_is_heard_on_its_master_through_the_plug_in() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let surround = "sink_name=four channel_map=surround-40 rate=44100";
    scene.load_named(client, "module-null-sink", surround).expect("loaded");
    let arguments = "sink_master=four plugin=amp label=amp_mono control=0.5 channels=2 \
                     input_ladspaport_map=Input output_ladspaport_map=Output";
    let index = scene.load_named(client, LADSPA, arguments).expect("loaded");
    let (loopback, processing) = scene.processed(index);
    let expected = NewLoopback {
        from: Heard { device: Some("four.ladspa".into()), captures: false },
        from_map: map("front-left,front-right"),
        via: None,
        to: vec![(Some("four".into()), map("surround-40"))],
        mixed: true,
        latency_ms: 100,
    };
    assert_eq!(loopback, expected);
    let plugin = NewPlugin {
        plugin: "amp".into(),
        label: "amp_mono".into(),
        control: Some("0.5".into()),
        inputs: Some("Input".into()),
        outputs: Some("Output".into()),
    };
    assert_eq!(processing, Processing::Ladspa(plugin));
    let sink = scene.sink_named(client, "four.ladspa").expect("a sink");
    assert_eq!((sink.sample_spec.sample_rate, sink.sample_spec.channels), (44_100, 2));
    assert_eq!(sink.description.as_deref(), Some(c"LADSPA Plugin amp_mono on Null Output"));
    // Without more, it is like the default sink.
    let index = scene.load_named(client, LADSPA, "plugin=a label=b").expect("loaded");
    let (loopback, _) = scene.processed(index);
    assert_eq!(loopback.from.device.as_deref(), Some("consort.ladspa"));
    assert_eq!(loopback.to, [(None, map("front-left,front-right"))]);
}

#[test]
fn an_echo_cancel_has_a_source_and_a_sink_and_knows_what_is_heard_when() {
    let mut scene = Scene::new();
    let client = scene.room();
    let masters = "source_master=microphone.monitor sink_master=speaker";
    let index = scene.load_named(client, ECHO, masters).expect("loaded");
    let (loopback, echo) = scene.echo(index);
    let expected = NewLoopback {
        from: Heard { device: Some("microphone".into()), captures: false },
        from_map: map("front-left,front-right"),
        via: None,
        to: vec![(Some("microphone.monitor.echo-cancel".into()), map("mono"))],
        mixed: true,
        // A block more than the sink's.
        latency_ms: 120,
    };
    assert_eq!(loopback, expected);
    let expected = NewEcho {
        of: "speaker.echo-cancel".into(),
        of_map: map("mono"),
        heard_on: (Some("speaker".into()), map("front-left,front-right")),
        latency_ms: 100,
        speex: Some(SPEEX),
        frame_ms: 20,
    };
    assert_eq!(echo, expected);
    let sink = scene.sink_named(client, "speaker.echo-cancel").expect("a sink");
    assert_eq!((sink.sample_spec.sample_rate, sink.sample_spec.channels), (32_000, 1));
    let description = c"Null Output (echo cancelled with Monitor of Null Output)";
    assert_eq!(sink.description.as_deref(), Some(description));
    assert_eq!(sink.owner_module_index, Some(index));
    let source = scene.source_named(client, "microphone.monitor.echo-cancel").expect("a source");
    assert_eq!((source.owner_module_index, source.monitor_of_sink_index), (Some(index), None));
    assert!(scene.sink_named(client, "microphone.monitor.echo-cancel").is_none());
    scene.tell(client, &Command::UnloadModule(index)).expect("unloaded");
    assert_eq!(scene.device_names(), ["speaker", "microphone"]);
    assert!(scene.links().is_empty());
}

#[test]
fn an_echo_cancel_is_as_its_arguments_say() {
    let mut scene = Scene::new();
    let client = scene.room();
    let masters = "source_master=microphone.monitor sink_master=speaker";
    let load = |scene: &mut Scene, arguments: &str| {
        let index = scene.load_named(client, ECHO, &format!("{masters} {arguments}"));
        let index = index.expect(arguments);
        let (loopback, echo) = scene.echo(index);
        scene.tell(client, &Command::UnloadModule(index)).expect("unloaded");
        (loopback, echo)
    };
    let arguments = "aec_method=speex aec_args='frame_size_ms=50 filter_size_ms=400 agc=0 \
                     denoise=no echo_suppress_attenuation=-40 echo_suppress_attenuation_active=0'";
    let (loopback, echo) = load(&mut scene, arguments);
    let suppress_db = Some(-40);
    let expected = NewSpeex { filter_ms: 400, agc: false, denoise: false, suppress_db, ..SPEEX };
    assert_eq!((echo.speex, echo.frame_ms, loopback.latency_ms), (Some(expected), 50, 150));
    let (loopback, echo) = load(&mut scene, "aec_method=null use_master_format=yes");
    assert_eq!(echo.speex, None);
    assert_eq!(loopback.to[0].1, map("front-left,front-right"));
    let plain = "source_name=ears sink_name=mouth aec_args='agc=0 denoise=0 echo_suppress=0' \
                 channels=2 rate=16000";
    let (loopback, echo) = load(&mut scene, plain);
    assert_eq!(loopback.to, [(Some("ears".into()), map("front-left,front-right"))]);
    assert_eq!(echo.of, "mouth");
    // One name is enough for PulseAudio as well, which numbers the second of that name.
    let (loopback, echo) = load(&mut scene, "source_name=both sink_name=both");
    assert_eq!((&*echo.of, loopback.to[0].0.as_deref()), ("both", Some("both.2")));
}

#[test]
fn a_module_whose_second_device_cannot_be_added_leaves_no_first_one() {
    let mut scene = Scene::new();
    let client = scene.room();
    // All but one that the server has.
    for name in ["c", "d", "e", "f", "g"] {
        let arguments = format!("sink_name={name}");
        scene.load_named(client, "module-null-sink", &arguments).expect("loaded");
    }
    let masters = "source_master=microphone.monitor sink_master=speaker";
    assert_eq!(scene.load_named(client, ECHO, masters), Err(FAILED));
    assert_eq!(scene.device_names(), ["speaker", "microphone", "c", "d", "e", "f", "g"]);
    assert!(scene.sink_named(client, "speaker.echo-cancel").is_none());
}

#[test]
fn a_module_with_two_devices_goes_with_either_of_them() {
    for gone in ["speaker.echo-cancel", "microphone.monitor.echo-cancel"] {
        let mut scene = Scene::new();
        let client = scene.room();
        let masters = "source_master=microphone.monitor sink_master=speaker";
        scene.load_named(client, ECHO, masters).expect("loaded");
        scene.front_end.devices_mut().remove(gone);
        scene.front_end.devices_changed(0);
        assert_eq!(scene.device_names(), ["speaker", "microphone"], "{gone}");
        assert!(scene.links().is_empty() && !scene.module_names(client).contains(&ECHO.into()));
    }
}

#[test]
fn modules_that_cannot_process_are_refused_with_a_reason() {
    let mut scene = Scene::new();
    let client = scene.room();
    let room = "source_master=microphone.monitor sink_master=speaker";
    for (name, arguments, reason) in [
        (LADSPA, "label=a", "plugin is needed"),
        (LADSPA, "plugin=a", "label is needed"),
        (LADSPA, "plugin=a label=b master=none", "there is no sink 'none'"),
        (LADSPA, "plugin=a label=b format=s16le", "format is that of plug-ins"),
        (ECHO, "source_master=none", "there is no source 'none'"),
        (ECHO, "source_master=speaker.monitor sink_master=speaker", "is the monitor of speaker"),
        (ECHO, &format!("{room} aec_method=webrtc"), "there is no aec_method 'webrtc'"),
        (ECHO, &format!("{room} aec_args=agc=perhaps"), "agc is 'perhaps'"),
        (ECHO, &format!("{room} aec_args=x=1"), "aec_args: there is no argument 'x'"),
        (ECHO, &format!("{room} aec_args=frame_size_ms=201"), "takes 1 to 200"),
        (ECHO, &format!("{room} aec_args=filter_size_ms=0"), "takes 1 to 2000"),
        (ECHO, &format!("{room} aec_args=echo_suppress_attenuation=3"), "takes -120 to 0"),
        (ECHO, &format!("{room} channels=2"), "are for channels=1"),
        (ECHO, &format!("{room} save_aec=yes"), "no files are written"),
        (ECHO, &format!("{room} adjust_threshold=0"), "adjust_threshold is '0'"),
    ] {
        scene.reported();
        assert_eq!(scene.load_named(client, name, arguments), Err(FAILED), "{arguments}");
        let reported = scene.reported();
        assert!(reported[0].contains(reason), "{reported:?}");
        assert_eq!(scene.device_names(), ["speaker", "microphone"]);
    }
}
