//! Audacity plays a file, by commands of a script.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use harness::{PATIENCE, Program, Sound, Stretch, eventually, in_three_attempts, noise};

use crate::programs::screen;
use crate::{RATE_HZ, Scene, is_installed, path};

/// The module that takes commands from a script.
const MODULE: &str = "/usr/lib/audacity/modules/mod-script-pipe.so";

/// Editors that one process of tests can tell apart by their FIFOs.
const MOST_EDITORS: u32 = 16;

/// Its settings: no greeting, ALSA's default device, and the module enabled as
/// by a user who has been asked. `TIME` is when the module's file was written, `LATENCY` the length
/// of its buffer in ms.
const SETTINGS: &str = "\
PrefsVersion=1.1.1r1
[Version]
Major=3
Minor=2
Micro=4
[GUI]
ShowSplashScreen=0
[Update]
UpdateNoticeShown=1
DefaultUpdatesChecking=0
[Locale]
Language=en
[AudioIO]
Host=ALSA
PlaybackDevice=default
LatencyDuration=LATENCY
[SamplingRate]
DefaultProjectSampleRate=48000
[Module]
mod-script-pipe=1
[ModulePath]
mod-script-pipe=/usr/lib/audacity/modules/mod-script-pipe.so
[ModuleDateTime]
mod-script-pipe=TIME
";

/// Makes its settings.
fn prepare(scene: &Scene, latency_ms: u32) {
    let home = scene.server.directory();
    let (settings, temporary) = (home.join(".config/audacity"), home.join("temporary"));
    for directory in [&settings, &temporary] {
        std::fs::create_dir_all(directory).expect("a directory");
    }
    let written = scene.run("date", &["-r", MODULE, "+%Y-%m-%dT%H:%M:%S"]).expect_success();
    let text = SETTINGS.replace("TIME", written.stdout.trim());
    let text = text.replace("LATENCY", &latency_ms.to_string());
    let text = format!("{text}[Directories]\nTempDir={}\n", path(&temporary));
    std::fs::write(settings.join("audacity.cfg"), text).expect("written");
}

/// Returns whether a window covers the lower left corner of the screen, which is black else.
fn is_drawn(scene: &Scene, display: &str) -> bool {
    let dot = format!("{display}+20,590");
    let input = ["-loglevel", "error", "-nostdin", "-f", "x11grab", "-video_size", "2x2"];
    let output = ["-i", &dot, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "gray", "-"];
    let finished = scene.run("ffmpeg", &[&input[..], &output].concat()).expect_success();
    finished.stdout.bytes().any(|byte| byte != 0)
}

/// Waits until a process needs less than a twentieth of a CPU for a second.
fn await_rest(process: u32) {
    let ran_ns = || {
        let text = std::fs::read_to_string(format!("/proc/{process}/schedstat"));
        let text = text.expect("a process");
        let ran = text.split(' ').next().and_then(|ran| ran.parse::<u64>().ok());
        ran.expect("a number of the main thread")
    };
    eventually("it rests", || {
        let before = ran_ns();
        std::thread::sleep(Duration::from_secs(1));
        (ran_ns() - before < 50_000_000).then_some(())
    });
}

/// Audacity, and the FIFOs through which it takes commands.
struct Editor {
    _program: Program,
    commands: File,
    answers: Program,
    pipes: [PathBuf; 2],
}

impl Editor {
    fn start(scene: &Scene, display: &str, latency_ms: u32) -> Self {
        // The FIFOs are named by the user's number. One that nobody has keeps them from those of
        // other tests, and of a user at this machine.
        static EDITORS: AtomicU32 = AtomicU32::new(0);
        let number = EDITORS.fetch_add(1, Relaxed) % MOST_EDITORS;
        let user = 1_000_000 + std::process::id() * MOST_EDITORS + number;
        let pipes = ["to", "from"]
            .map(|way| PathBuf::from(format!("/tmp/audacity_script_pipe.{way}.{user}")));
        let map = [format!("--map-user={user}"), format!("--map-group={user}")];
        prepare(scene, latency_ms);
        let arguments = ["--user", &map[0], &map[1], "audacity"];
        let mut command = scene.command("unshare", &arguments);
        command.env("DISPLAY", display).env("GDK_BACKEND", "x11").env("NO_AT_BRIDGE", "1");
        command.env("DBUS_SESSION_BUS_ADDRESS", "disabled:");
        let mut program = Program::start(command);
        // At once: a process that looks for plug-ins has the module as well, and replaces them.
        eventually("it has made the FIFOs", || {
            assert!(program.is_running(), "{}", program.stderr());
            pipes.iter().all(|pipe| pipe.exists()).then_some(())
        });
        // For both, so that nothing waits for the other side.
        let commands = File::options().read(true).write(true).open(&pipes[0]).expect("a FIFO");
        let answers = scene.spawn("cat", &[path(&pipes[1])]);
        eventually("it has a window", || {
            assert!(program.is_running(), "{}", program.stderr());
            is_drawn(scene, display).then_some(())
        });
        await_rest(program.id());
        Self { _program: program, commands, answers, pipes }
    }

    /// Has a command done. One that comes before its window is ready is never answered.
    fn order(&mut self, command: &str) -> Result<(), String> {
        let before = self.answers.stdout().len();
        self.commands.write_all(format!("{command}\n").as_bytes()).expect("written");
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let answer = &self.answers.stdout()[before..];
            if answer.contains("finished: ") {
                return if answer.contains("finished: OK") { Ok(()) } else { Err(answer.into()) };
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("{command} is not answered"))
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        for pipe in &self.pipes {
            let _ = std::fs::remove_file(pipe);
        }
    }
}

/// Has it play with a buffer of this length.
fn plays_sample_for_sample(latency_ms: u32) {
    if !is_installed("audacity") || !is_installed("Xvfb") {
        return;
    }
    let frames = 3 * RATE_HZ as usize;
    let sound = Sound::of(RATE_HZ, &[noise(1, frames), noise(2, frames)]);
    in_three_attempts(|| {
        let scene = Scene::new();
        let (_screen, display) = screen(&scene);
        let file = scene.file("played.wav", &sound);
        let mut editor = Editor::start(&scene, &display, latency_ms);
        editor.order(&format!("Import2: Filename=\"{}\"", path(&file)))?;
        // It answers once it has played.
        editor.order("Play:")?;
        drop(editor);
        // It begins with a gap of its own, and leaves before the end is heard.
        let heard = scene.recorded();
        let stretch = Stretch::longest(&sound.channels[0], &heard.channels[0]);
        let least = 5 * RATE_HZ as usize / 2;
        if stretch.frames > least { Ok(()) } else { Err(format!("{stretch:?}")) }
    });
}

#[test]
fn audacity_plays_an_imported_file_sample_for_sample() {
    plays_sample_for_sample(100);
}

/// It has less ready at once than such a buffer takes.
#[test]
fn audacity_plays_with_a_long_buffer_sample_for_sample() {
    plays_sample_for_sample(300);
}
