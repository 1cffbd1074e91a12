//! What one program may have, and how much there is for all.

use harness::eventually;

use crate::Scene;

#[test]
fn each_program_has_streams_of_its_own_beside_those_of_others() {
    // More than one program may have.
    const PLAYERS: usize = 80;
    let scene = Scene::new();
    let players: Vec<_> = (0..PLAYERS).map(|_| scene.spawn("pacat", &["/dev/zero"])).collect();
    eventually("each plays", || {
        let short = scene.pactl(&["list", "short", "sink-inputs"]);
        (short.lines().count() == PLAYERS).then_some(())
    });
    for player in players {
        player.terminate();
    }
    scene.await_no_stream();
}
