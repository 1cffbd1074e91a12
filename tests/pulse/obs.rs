//! OBS records what is heard.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Sound, eventually, in_three_attempts, tone};
use rustix::process::Signal;

use crate::programs::{await_streams, screen};
use crate::recording::loud;
use crate::tunnels::distortion_db;
use crate::{RATE_HZ, Scene, is_installed, path};

/// As if it had been started before: it asks nothing.
const GLOBAL: &str = "\
[General]
FirstRun=true
LastVersion=486539266
ConfirmOnExit=false
EnableAutoUpdates=false
";

/// Small pictures, few of them: they are drawn and encoded without a graphics card.
const PROFILE: &str = "\
[General]
Name=Untitled
[Video]
BaseCX=320
BaseCY=240
OutputCX=320
OutputCY=240
FPSType=0
FPSCommon=10
[Audio]
SampleRate=48000
ChannelSetup=Stereo
[Output]
Mode=Simple
[SimpleOutput]
RecFormat=mkv
RecQuality=Stream
StreamEncoder=x264
";

/// What it would make at its first start: one scene, and the sound of the default sink. Without
/// such a file, `--startrecording` does nothing.
const SCENES: &str = r#"{
    "name": "Untitled",
    "current_scene": "Scene",
    "current_program_scene": "Scene",
    "scene_order": [{"name": "Scene"}],
    "sources": [{"id": "scene", "name": "Scene", "settings": {"items": []}}],
    "DesktopAudioDevice1": {
        "id": "pulse_output_capture",
        "name": "Desktop Audio",
        "settings": {"device_id": "default"}
    }
}"#;

/// The file that is recorded, as soon as there is one.
fn film(scene: &Scene) -> Option<PathBuf> {
    let files = std::fs::read_dir(scene.server.directory()).expect("a directory");
    let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
    paths.find(|path| path.extension().is_some_and(|kind| kind == "mkv"))
}

/// What OBS records while a file is played, of the sink that it takes for the desktop's sound; or
/// how it ended: on a busy machine, one in ten crashes while it shuts down.
fn recorded(sound: &Sound) -> Result<Sound, String> {
    let scene = Scene::new();
    let directory = scene.server.directory();
    let (_screen, display) = screen(&scene);
    let settings = directory.join(".config/obs-studio");
    let [profile, scenes] = ["profiles/Untitled", "scenes"].map(|place| {
        let directory = settings.join("basic").join(place);
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    });
    std::fs::write(settings.join("global.ini"), GLOBAL).expect("written");
    let destination = format!("{PROFILE}FilePath={}\n", path(directory));
    std::fs::write(profile.join("basic.ini"), destination).expect("written");
    std::fs::write(scenes.join("Untitled.json"), SCENES).expect("written");
    let alone = ["--multi", "--disable-missing-files-check"];
    let arguments = [&["--startrecording", "--minimize-to-tray"], &alone[..]].concat();
    let mut command = scene.command("obs", &arguments);
    command.env("DISPLAY", display).env("LIBGL_ALWAYS_SOFTWARE", "1");
    command.env("DBUS_SESSION_BUS_ADDRESS", "disabled:");
    let mut obs = Program::start(command);
    let film = eventually("it records", || {
        assert!(obs.is_running(), "{}", obs.stderr());
        film(&scene)
    });
    await_streams(&scene, "source-outputs", 1);
    let played = scene.file("played.wav", sound);
    scene.run("paplay", &[path(&played)]).expect_success();
    // What it has is some way from the file.
    std::thread::sleep(Duration::from_secs(2));
    obs.signal(Signal::INT);
    let ended = obs.finish();
    if ended.code != Some(0) {
        return Err(format!("OBS ended with {:?}, {:?}", ended.code, ended.signal));
    }
    let heard = directory.join("heard.wav");
    let quiet = ["-loglevel", "error", "-nostdin", "-i", path(&film)];
    scene.run("ffmpeg", &[&quiet[..], &["-map", "0:a:0", path(&heard)]].concat()).expect_success();
    Ok(Sound::read(&heard))
}

#[test]
fn obs_records_the_tone_that_a_player_plays() {
    if !is_installed("obs") || !is_installed("Xvfb") {
        return;
    }
    let seconds = 4;
    let channel = tone(1_000.0, RATE_HZ, seconds * RATE_HZ as usize);
    let sound = Sound::of(RATE_HZ, &[channel.clone(), channel]);
    in_three_attempts(|| {
        // An encoder makes the ends of a tone longer, and soft.
        let film = loud(&recorded(&sound)?);
        let length = film.channels[0].len() as f64 / f64::from(RATE_HZ);
        let (frequency, rest) = (film.frequency_hz(0), distortion_db(&film.channels[0], 1_000.0));
        let seen = format!("{frequency} Hz for {length} s, the rest at {rest} dB");
        let is_right = (frequency - 1_000.0).abs() < 1.0 && (length - seconds as f64).abs() < 0.1;
        if is_right && rest < -40.0 { Ok(()) } else { Err(seen) }
    });
}
