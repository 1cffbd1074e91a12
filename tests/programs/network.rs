//! Audio over the network, by programs that are clients of the server.

use harness::{Server, Sound, tone};

/// A port of this machine that the system has not given to any program.
fn free_port() -> String {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("its address").port().to_string()
}

#[test]
fn a_tone_arrives_through_zitas_network_bridge() {
    const HZ: f64 = 997.0;
    let sent = Sound::of(48_000, &[tone(HZ, 48_000, 8 * 48_000)]);
    let server = Server::playing(&sent, &["--quantum", "256", "--playback", "1"]);
    let port = free_port();
    let receiver = server.spawn("zita-n2j", &["--chan", "1", "127.0.0.1", &port]);
    let sender = server.spawn("zita-j2n", &["--chan", "1", "--float", "127.0.0.1", &port]);
    server.await_active("zita-n2j");
    server.await_active("zita-j2n");
    server.run("jack_connect", &["zita-n2j:out_1", "system:playback_1"]).expect_success();
    // The server begins now.
    server.run("jack_connect", &["system:capture_1", "zita-j2n:in_1"]).expect_success();
    let recorded = server.played();
    drop((receiver, sender));
    // The receiver's clock settles first.
    let heard = recorded.sounding(0);
    assert!(heard.channels[0].len() > 48_000, "{} frames", heard.channels[0].len());
    let frequency_hz = heard.frequency_hz(0);
    assert!((frequency_hz - HZ).abs() < 1.0, "{frequency_hz} Hz");
}
