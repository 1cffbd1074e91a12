//! Writes the seeds: a few real packets for each decoder. `cargo run --example seeds`, after a
//! change of the protocol.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use proto::driver::{DriverChoice, DriverSwitch};
use proto::encode;
use proto::event::{Answer, Event};
use proto::hello::{Hello, Returning, Role, TransportSnapshot, Welcome, encode_first};
use proto::names::NameError;
use proto::request::{
    Activation, Interests, NewPort, Numbered, PortType, Reply, Request, RequestError,
    ReturningConnection, ReturningPort, SlabSlot,
};
use proto::status::{ClientStatus, Place, Placement, Status, Timing};
use rt::record::{ClientRecord, CycleRecord, Record};
use rt::shm::{AssignmentWriter, Edges, FollowerEdge, InputSource, LAYOUT_VERSION, WISHES};
use rt::stream::{Gains, WISH_WORDS, Wish};
use serde::Serialize;

fn main() -> io::Result<()> {
    let client = |name: &str, exact| Hello {
        layout: LAYOUT_VERSION,
        role: Role::Client { name: name.into(), exact, session: None },
    };
    let observer = Hello { layout: LAYOUT_VERSION, role: Role::Observer };
    write(
        "hello",
        [client("metro", false), client("PulseAudio JACK Sink", true), observer, returning()]
            .map(|m| encode_first(&m)),
    )?;
    write("welcome", welcomes().map(|welcome| encode_first(&welcome)))?;
    write("request", requests().map(numbered))?;
    write("reply", replies().map(numbered))?;
    write("event", events().map(|event| encode(&event)))?;
    let answers = [
        Answer::Mapped { token: 1 },
        Answer::NotMapped { token: 300 },
        Answer::Called { token: u64::MAX },
    ];
    write("answer", answers.map(|answer| encode(&answer)))?;
    write("assignments", [assignments()])?;
    write("registry", [registry()])?;
    write("stream", [stream()])?;
    write("conversion", conversions())?;
    write("datagrams", [datagrams()])?;
    write("recording", [recording()])?;
    let lines = [
        "-R\n-P70\n-n\nstudio\n-d\ndummy\n-r48000\n-p64",
        "-RTS\n--name=x\n--driver\nfile\n-i\nin.wav\n-o\nout.wav\n-f",
        "--port-max=512\n-t\n500\n-a\nE\n-d\nalsa\n-d\nhw:0\n-n3",
        "-h",
        "--vers",
    ];
    write("jackd", lines.map(|line| line.as_bytes().to_vec()))?;
    write("state", [STATE.as_bytes().to_vec()])
}

const STATE: &str = r#"{
  "consort_state": 1,
  "buffer_size": 256,
  "transport": {"rolling": true, "frame": 48000},
  "connections": [{"source": "synth:left", "destination": "system:playback_1"}],
  "aliases": {"synth:left": ["main"]},
  "properties": [
    {"owner": {"client": "synth"}, "key": "k", "value": "v", "type": "text/plain"},
    {"owner": {"port": "synth:left"}, "key": "k", "value": "v"}
  ]
}
"#;

fn write<const N: usize>(target: &str, seeds: [Vec<u8>; N]) -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    std::fs::create_dir_all(&directory)?;
    seeds
        .iter()
        .enumerate()
        .try_for_each(|(number, seed)| std::fs::write(directory.join(format!("{number:02}")), seed))
}

fn numbered<M: Serialize>(message: M) -> Vec<u8> {
    encode(&Numbered { number: 7, message })
}

fn returning() -> Hello {
    let role = Role::Returning(Returning {
        client: 2,
        uuid: 2 << 32 | 7,
        name: "metro".into(),
        instance: 1 << 40,
        frames: 48_000,
        at_ns: 1_000_000_000,
        quantum: 64,
        sample_rate_hz: 48_000,
        last_client: 5,
        last_port: 20,
        transport: Some(TransportSnapshot {
            rolls: true,
            position: [1 << 36 | 48_000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        }),
    });
    Hello { layout: LAYOUT_VERSION, role }
}

fn welcomes() -> [Welcome; 3] {
    [
        Welcome::Client { client: 2, name: "metro-01".into(), server_name: "default".into() },
        Welcome::Observer,
        Welcome::Refused(RequestError::Name(NameError::TooLong { found: 65, limit: 64 })),
    ]
}

fn requests() -> [Request; 16] {
    let (source, destination) = ("system:capture_1".into(), "metro:in".into());
    let slot = Some(SlabSlot { slab: 0, slot: 3 });
    [
        Request::RegisterPort(NewPort {
            name: "out".into(),
            port_type: PortType::Midi,
            flags: 2,
            number: 0,
            slot,
        }),
        Request::AddSlab,
        Request::Activate(Activation {
            process_thread: Some(4711),
            latency_callback: true,
            quantum_callback: false,
            freewheel_callback: true,
            session_callback: false,
            interests: Interests::ALL,
        }),
        Request::Connect { source, destination },
        Request::SetAlias { port: 5, alias: "hw:1".into() },
        Request::SetLatency { port: 5, capture: true, min: 64, max: 128 },
        Request::SetQuantum { frames: 64 },
        Request::SetFreewheel { on: true },
        Request::SwitchDriver(Box::new(DriverSwitch {
            driver: DriverChoice::Alsa(Box::default()),
            quantum: Some(64),
        })),
        Request::Transport {
            roll: Some(true),
            position: Some([1; 11]),
            sync_timeout_us: Some(2_000_000),
        },
        Request::TakeTimebase { conditional: true },
        Request::Status,
        Request::Clients { after: 3 },
        Request::Close,
        Request::ReturnPort(ReturningPort {
            id: 7,
            port: NewPort {
                name: "out".into(),
                port_type: PortType::Audio,
                flags: 2,
                number: 0,
                slot,
            },
            aliases: vec!["hw:1".into()],
            capture_latency: (64, 128),
            playback_latency: (0, 64),
        }),
        Request::ReturnConnections(vec![ReturningConnection {
            source: "metro:out".into(),
            destination: "system:playback_1".into(),
            age: 40,
        }]),
    ]
}

fn replies() -> [Reply; 6] {
    let timing = Timing {
        cycles: 1024,
        scheduling_median_ns: 5_000,
        scheduling_max_ns: 90_000,
        duration_median_ns: 30_000,
        duration_max_ns: 400_000,
    };
    let client = ClientStatus {
        id: 2,
        name: "metro".into(),
        process: 4711,
        active: true,
        bypassed: false,
        bypasses: 1,
        late_cycles: 3,
        cpu: Some(1),
        place: Some(Place::After { cpu: 1, waker: Some("synth".into()) }),
        timing: Some(timing),
    };
    let placement = Placement {
        cpus: vec![0, 1],
        hop_ns: 5_000,
        cross_hop_ns: 25_000,
        expected_ns: 90_000,
        alone_ns: 95_000,
    };
    let status = Status {
        name: "default".into(),
        version: "0.1.0".into(),
        process: 42,
        driver: "timer".into(),
        sample_rate_hz: 48_000,
        quantum: 64,
        sync: false,
        freewheel: false,
        realtime_priority: Some(10),
        cycles: 1 << 40,
        xruns: 1,
        load: 0.25,
        placement: Some(placement),
        clients: vec![client.clone()],
        ports: (7, 2048),
        connections: 3,
    };
    let unknown =
        RequestError::UnknownPort { name: "systm:in".into(), nearest: Some("system:in".into()) };
    let mismatch =
        RequestError::TypeMismatch { source_port: "a:b".into(), destination: "c:d".into() };
    [
        Reply::Done,
        Reply::Port(5),
        Reply::Status(Box::new(status)),
        Reply::Clients(vec![client]),
        Reply::Error(unknown),
        Reply::Error(mismatch),
    ]
}

fn events() -> [Event; 6] {
    [
        Event::MapSlab { slab: 70_000, token: 9 },
        Event::ClientRegistration { name: "metro".into(), registered: true },
        Event::PortRename { port: 5, old: "metro:a".into(), new: "metro:b".into() },
        Event::Connection { source: 3, destination: 5, connected: false },
        Event::Quantum { frames: 128, token: 10 },
        Event::Shutdown { reason: "signal Terminate".into() },
    ]
}

fn assignments() -> Vec<u8> {
    let mut words = [0; 64];
    let mut writer =
        AssignmentWriter::new(&mut words, Some(1), Edges::new(3).unwrap_or(Edges::NONE), true);
    writer.follower(FollowerEdge { page: 4, edge: 5, edges: 6 });
    let source = InputSource { slab: 2, slot: 15, feedback: true, own: false };
    writer.group(&[source, source], &[0, 9]);
    writer.group(&[source], &[1]);
    let words = writer.finish().unwrap_or_default();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What a program writes that fills its ring twice and wishes thirty times.
fn stream() -> Vec<u8> {
    const RING: u8 = 0;
    const WISH_PAGE: u8 = 1;
    /// Words of each page's header, and of the count that precedes the frames written.
    const HEADER_WORDS: u64 = 2;
    let step = |page: u8, word: u64, value: u64| {
        let word = u16::try_from(word).unwrap_or(u16::MAX);
        [&[page][..], &word.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    let written = (1..=4).map(|half| step(RING, HEADER_WORDS + 1, 512 * half));
    let entry_words = 1 + WISH_WORDS as u64;
    let wishes = (1..=30_u64).flat_map(|number| {
        let entry = HEADER_WORDS + number % WISHES as u64 * entry_words;
        let gain = Wish::Gain { gains: Gains::default(), ramp_frames: 480 };
        let splice = Wish::Splice { position: 512 * number };
        let wish = [Wish::Run, gain, Wish::Hold, splice][(number % 4) as usize];
        let words = (entry + 1..).zip(wish.to_words());
        let steps =
            words.chain([(entry, number)]).map(|(word, value)| step(WISH_PAGE, word, value));
        steps.collect::<Vec<_>>()
    });
    written.chain(wishes).flatten().collect()
}

/// An announcement, two packets of which the second comes first, the end; before each, half of its
/// length.
fn datagrams() -> Vec<u8> {
    let description = "v=0\no=- 1 0 IN IP4 10.0.0.1\ns=music\nc=IN IP4 224.0.0.56/1\nt=1 0\n\
        m=audio 46000 RTP/AVP 127\na=rtpmap:127 L16/48000/2\n";
    let announcement = |flags: u8| {
        let header = [flags, 0, 0, 1, 10, 0, 0, 1];
        [&header[..], b"application/sdp\0", description.as_bytes()].concat()
    };
    let packet = |number: u8| {
        let header = [0x80, 127, 0, number, 0, 0, 0, 4 * number, 0, 0, 0, 7];
        [&header[..], &[number; 16]].concat()
    };
    let all = [announcement(0x20), packet(0), packet(2), packet(1), announcement(0x24)];
    let with_length = |datagram: &Vec<u8>| {
        let mut datagram = datagram.clone();
        datagram.resize(datagram.len().next_multiple_of(2), b'\n');
        let half = u8::try_from(datagram.len() / 2).unwrap_or(u8::MAX);
        [vec![half], datagram].concat()
    };
    all.iter().flat_map(with_length).collect()
}

/// Its beginning, an origin, a client's name, a cycle, what the client did in it, a loss, the end.
fn recording() -> Vec<u8> {
    let cycle = CycleRecord {
        cycle: 1,
        quantum: 64,
        sample_rate_hz: 48_000,
        woken_ns: 9,
        ..CycleRecord::default()
    };
    let client = ClientRecord {
        cycle: 1,
        client: 2,
        signaled_ns: 9,
        awake_ns: 10,
        finished_ns: 12,
        ..ClientRecord::default()
    };
    let next = CycleRecord { cycle: 2, woken_ns: 1_333_342, ..cycle };
    let mut file = b"consrec\n\x01\0\0\0O\0\x07\0default\x05\0timerN\x02\0\0\0\x05\0metro".to_vec();
    for record in [Record::Cycle(cycle), Record::Client(client), Record::Cycle(next)] {
        file.push(b'R');
        file.extend(record.to_words().iter().flat_map(|word| word.to_le_bytes()));
    }
    file.extend(b"L\x02\0\0\0\0\0\0\0E\x03\0\0\0\0\0\0\0");
    file
}

/// Size less one, the header's words (magic number, kind, version, 0, ports, clients, connections,
/// 0), entries.
fn registry() -> Vec<u8> {
    let header: [u32; 16] =
        [0x434e_5354, 2, LAYOUT_VERSION, 0, 4, 2, 8, 0, 17, 0, 0, 0, 0, 0, 0, 0];
    let mut seed = u16::to_le_bytes(16 * 1024 - 1).to_vec();
    seed.extend(header.iter().flat_map(|word| word.to_le_bytes()));
    let entry: [u32; 18] =
        [2, 2, 2, 0, 1, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0x7379_733a, 0x6d65_7461, 0x3a6d_6574, 0];
    seed.extend(entry.iter().flat_map(|word| word.to_le_bytes()));
    seed
}

/// Format, mixing, filter, the length of a piece, the place of a seek, two rates, two maps; then
/// samples.
fn conversions() -> [Vec<u8>; 2] {
    // Floats of 44.1 kHz to 48 kHz, and 16 bits of 5.1 at 44,101 Hz to stereo.
    [[5, 0, 1, 99, 128, 1, 0, 3, 0, 1, 2, 1, 2], [3, 0, 0, 99, 128, 2, 0, 3, 0, 1, 6, 1, 2]].map(
        |header: [u8; 13]| {
            let samples = (0..400).flat_map(|at| (at as f32 * 0.1).sin().to_le_bytes());
            header.into_iter().chain(samples).collect()
        },
    )
}
