//! External sync: the transport follows MIDI clock, MIDI time code and linear time code, and other
//! programs understand what is sent.
#![forbid(unsafe_code)]

mod ltc;

use harness::{Program, Server, binary, c_program, eventually};
use rustix::process::Signal;
use serde_json::Value;

/// Starts `consort sync` with these arguments and waits for its port.
fn sync(server: &Server, words: &[&str]) -> Program {
    let mut command = server.command(&binary("consort").to_string_lossy());
    command.arg("sync").args(words);
    let mut program = Program::start(command);
    eventually(&format!("sync {words:?} is a client"), || {
        assert!(program.is_running(), "{}", program.stderr());
        server.has_ports("sync").then_some(())
    });
    program
}

/// Starts the MIDI machine of `player.c`.
fn player(server: &Server, words: &[&str]) -> Program {
    let program = c_program("sync/player.c");
    let mut player = server.spawn(&program, words);
    eventually("the player is ready", || {
        assert!(player.is_running(), "{}", player.stderr());
        player.stdout().contains("ready").then_some(())
    });
    player
}

fn transport(server: &Server) -> Value {
    let shown = server.consort(&["transport", "show", "--json"]).expect_success().stdout;
    serde_json::from_str(&shown).expect("JSON")
}

fn await_transport(server: &Server, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(what, || Some(transport(server)).filter(|transport| is_so(transport)))
}

#[test]
fn the_transport_follows_midi_clock() {
    let server = Server::timer(256);
    let player = player(&server, &["clock", "90"]);
    let _sync = sync(&server, &["follow", "clock", "--from", "player:out"]);
    server.await_connection("sync:in", "player:out");
    let tempo = |transport: &Value| transport["bbt"]["beats_per_minute"].as_f64().unwrap_or(0.0);
    assert_eq!(transport(&server)["state"], "stopped", "clocks alone start nothing");
    player.signal(Signal::USR1);
    await_transport(&server, "it rolls", |transport| {
        transport["state"] == "rolling" && transport["timebase"] == "sync"
    });
    await_transport(&server, "beats pass at the clock's tempo", |transport| {
        transport["bbt"]["beat"].as_i64() >= Some(3) && (tempo(transport) - 90.0).abs() < 2.0
    });
    player.signal(Signal::USR1);
    await_transport(&server, "it stops", |transport| transport["state"] == "stopped");
    player.signal(Signal::USR1);
    // Eight sixteenths are two beats: 1 1/3 s at that tempo.
    let place = await_transport(&server, "it is where the position says", |transport| {
        let frame = transport["frame"].as_f64().unwrap_or(0.0);
        transport["bbt"]["beat"] == 3
            && transport["bbt"]["bar"] == 1
            && (frame - 64_000.0).abs() < 2_000.0
    });
    assert_eq!(place["state"], "stopped");
    let frame = place["frame"].as_f64().expect("a number");
    player.signal(Signal::USR1);
    await_transport(&server, "it goes on from there", |transport| {
        transport["state"] == "rolling" && transport["frame"].as_f64() > Some(frame)
    });
}

#[test]
fn the_transport_follows_midi_time_code() {
    let server = Server::timer(256);
    let mut player = player(&server, &["mtc", "1"]);
    let _sync = sync(&server, &["follow", "mtc", "--from", "player:out"]);
    server.await_connection("sync:in", "player:out");
    player.signal(Signal::USR1);
    eventually("the transport is where the time code is", || {
        player.stdout().contains("locked").then_some(())
    });
    assert!(transport(&server)["frame"].as_u64() > Some(48_000 * 3600));
    player.signal(Signal::USR1);
    await_transport(&server, "it stops", |transport| transport["state"] == "stopped");
    player.signal(Signal::USR1);
    let place = await_transport(&server, "it is where the full frame says", |transport| {
        transport["frame"] == 480_000
    });
    assert_eq!(place["state"], "stopped");
}

#[test]
fn clocks_of_jack_midi_clock_give_their_tempo() {
    let server = Server::timer(256);
    let _sync = sync(&server, &["follow", "clock"]);
    // Without its starts and positions: it takes them from the transport that the follower moves.
    let _clock = server.spawn("jack_midi_clock", &["-T", "-P", "-B", "-b", "75", "sync:in"]);
    eventually("they are connected", || {
        server
            .lsp(&["-c"])
            .lines()
            .any(|line| line.trim() == "jack_midi_clock:mclk_out")
            .then_some(())
    });
    server.consort(&["transport", "start"]).expect_success();
    await_transport(&server, "the tempo is heard", |transport| {
        transport["bbt"]["beats_per_minute"]
            .as_f64()
            .is_some_and(|tempo| (tempo - 75.0).abs() < 1.0)
    });
}

#[test]
fn jack_mclk_dump_reads_the_tempo_of_the_clock_that_is_sent() {
    let server = Server::timer(256);
    let _sync = sync(&server, &["send", "clock", "--tempo", "100"]);
    let mut dump = server.spawn("jack_mclk_dump", &["-n", "sync:out"]);
    eventually("they are connected", || {
        server
            .lsp(&["-c"])
            .lines()
            .any(|line| line.trim() == "jack_mclk_dump:mclk_in")
            .then_some(())
    });
    server.consort(&["transport", "start"]).expect_success();
    eventually("the tempo is read", || {
        let printed = dump.stdout();
        let tempos =
            printed.split(|character: char| !character.is_ascii_digit() && character != '.');
        let found = tempos
            .filter_map(|word| word.parse::<f64>().ok())
            .any(|tempo| (tempo - 100.0).abs() < 1.0);
        (printed.contains("START") || found).then_some(()).filter(|()| found)
    });
}

/// What `jack_midi_dump` prints of each event: its bytes.
fn bytes_of(line: &str) -> Option<Vec<u8>> {
    let (_, bytes) = line.split_once(':')?;
    bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}

#[test]
fn jack_midi_dump_sees_every_piece_of_the_time_code_that_is_sent() {
    let server = Server::timer(256);
    let mut dump = server.spawn("jack_midi_dump", &[]);
    eventually("jack_midi_dump is there", || {
        let listed = server.lsp(&[]);
        listed.lines().any(|line| line == "midi-monitor:input").then_some(())
    });
    let _sync = sync(&server, &["send", "mtc", "--rate", "25", "--to", "midi-monitor:input"]);
    server.await_connection("sync:out", "midi-monitor:input");
    server.consort(&["transport", "start"]).expect_success();
    let codes = eventually("whole codes", || {
        // The last line may have come in part.
        let whole = dump.stdout().rsplit_once('\n').map_or("", |(whole, _)| whole);
        let pieces = whole.lines().filter_map(|line| match bytes_of(line)?[..] {
            [0xF1, piece] => Some(piece),
            _ => None,
        });
        let pieces: Vec<u8> = pieces.collect();
        let codes = pieces.chunk_by(|before, after| before >> 4 < after >> 4);
        let codes: Vec<Vec<u8>> =
            codes.filter(|code| code.len() == 8).map(<[u8]>::to_vec).collect();
        (codes.len() >= 20).then_some(codes)
    });
    for code in &codes {
        assert_eq!(code[7] & 0xF, 1 << 1, "25 frames a second, in the first hours: {code:x?}");
        assert!((code[0] & 0xF | (code[1] & 0xF) << 4) < 25, "{code:x?}");
    }
    let seconds = |code: &[u8]| code[2] & 0xF | (code[3] & 0xF) << 4;
    assert!(codes.windows(2).all(|pair| seconds(&pair[0]) <= seconds(&pair[1])), "{codes:x?}");
}
