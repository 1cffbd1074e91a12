//! Audio over the network, by programs that are clients of the server.

use harness::{Server, Sound, in_three_attempts, tone};

const RATE_HZ: u32 = 48_000;
/// The piece of a recording whose frequency is judged by itself: gaps, for which a network on a
/// busy machine is known, spoil the pieces that they are in.
const PIECE_FRAMES: usize = RATE_HZ as usize / 10;

/// A port of this machine that the system has not given to any program.
fn free_port() -> String {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("its address").port().to_string()
}

/// Frequencies of the pieces of what a server's output plays while a tone on its input goes through
/// sender and receiver.
fn frequencies_after_the_bridge(hz: f64) -> Vec<f64> {
    let sent = Sound::of(RATE_HZ, &[tone(hz, RATE_HZ, 8 * RATE_HZ as usize)]);
    let server = Server::playing(&sent, &["--quantum", "256", "--playback", "1"]);
    let port = free_port();
    let receive = ["--chan", "1", "--buff", "100", "127.0.0.1", &port];
    let receiver = server.spawn("zita-n2j", &receive);
    let sender = server.spawn("zita-j2n", &["--chan", "1", "--float", "127.0.0.1", &port]);
    // Both register their ports after they are active.
    server.await_port("zita-n2j:out_1");
    server.await_port("zita-j2n:in_1");
    server.run("jack_connect", &["zita-n2j:out_1", "system:playback_1"]).expect_success();
    // The server begins now.
    server.run("jack_connect", &["system:capture_1", "zita-j2n:in_1"]).expect_success();
    let recorded = server.played();
    drop((receiver, sender));
    let pieces = recorded.channels[0].chunks_exact(PIECE_FRAMES);
    pieces.map(|piece| Sound::of(RATE_HZ, &[piece.to_vec()]).frequency_hz(0)).collect()
}

#[test]
fn a_tone_arrives_through_zitas_network_bridge() {
    const HZ: f64 = 997.0;
    in_three_attempts(|| {
        let frequencies = frequencies_after_the_bridge(HZ);
        // A second of 8: the receiver's clock settles first.
        let right = frequencies.iter().filter(|found| (**found - HZ).abs() < 5.0).count();
        if right >= 10 { Ok(()) } else { Err(format!("{right} right of {frequencies:.0?}")) }
    });
}
