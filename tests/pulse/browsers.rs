//! Browsers that play, record and list devices.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use harness::{PATIENCE, Program, Sound, Stretch, eventually_within, in_three_attempts, noise};
use serde_json::Value;

use crate::pages::Pages;
use crate::programs::{await_streams, source};
use crate::{RATE_HZ, Scene, compare, is_installed, path, ramps};

/// Whether a page may do what a user would otherwise be asked for, and what a new profile would do
/// besides showing the page.
const FIREFOX: &str = r#"
user_pref("media.navigator.permission.disabled", true);
user_pref("media.autoplay.default", 0);
user_pref("media.autoplay.blocking_policy", 0);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("app.normandy.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,#remote-settings-dummy/v1");
user_pref("extensions.update.enabled", false);
"#;

const CHROMIUM: [&str; 7] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-ui-for-media-stream",
];

/// A browser that shows a page.
#[derive(Debug, Clone, Copy)]
enum Browser {
    Firefox,
    Chromium,
}

impl Browser {
    fn program(self) -> &'static str {
        match self {
            Self::Firefox => "firefox-esr",
            Self::Chromium => "chromium",
        }
    }

    /// A command that opens a page, in a profile of its own.
    fn command(self, scene: &Scene, url: &str) -> Command {
        let profile = scene.server.directory().join(self.program());
        std::fs::create_dir_all(&profile).expect("a directory");
        match self {
            Self::Firefox => {
                std::fs::write(profile.join("user.js"), FIREFOX).expect("written");
                let profile = ["--profile", path(&profile)];
                scene.command(
                    "firefox-esr",
                    &[&["--headless", "--no-remote"], &profile[..], &[url]].concat(),
                )
            }
            Self::Chromium => {
                let profile = format!("--user-data-dir={}", path(&profile));
                scene.command("chromium", &[&CHROMIUM[..], &[&profile, url]].concat())
            }
        }
    }

    fn open(self, scene: &Scene, url: &str) -> Program {
        Program::start(self.command(scene, url))
    }

    /// Opens a page that plays with another latency than the browser asks for, ms.
    fn open_with_latency(self, scene: &Scene, url: &str, latency_ms: &str) -> Program {
        let mut command = self.command(scene, url);
        command.env("PULSE_LATENCY_MSEC", latency_ms);
        Program::start(command)
    }
}

/// The page that acts as its address says.
fn pages(scene: &Scene) -> Pages {
    Pages::serve(source("clients/browser.html"), scene.server.directory())
}

/// What is heard of a page; `show` opens it and waits for its end.
fn heard(show: impl Fn(&Scene) -> Program) -> Sound {
    let scene = Scene::new();
    let browser = show(&scene);
    await_streams(&scene, "sink-inputs", 0);
    browser.terminate();
    scene.recorded()
}

#[test]
fn firefox_plays_web_audio_sample_for_sample() {
    if !is_installed("firefox-esr") {
        return;
    }
    let page = format!("file://{}", path(&source("clients/player.html")));
    let sound = ramps(2 * RATE_HZ as usize);
    in_three_attempts(|| {
        let heard = heard(|scene| {
            // So much that a busy machine does not matter.
            let browser = Browser::Firefox.open_with_latency(scene, &page, "300");
            await_streams(scene, "sink-inputs", 1);
            browser
        });
        compare(&heard, &sound.channels)
    });
}

#[test]
fn firefox_plays_an_audio_element_sample_for_sample() {
    if !is_installed("firefox-esr") {
        return;
    }
    let sound = ramps(2 * RATE_HZ as usize);
    in_three_attempts(|| {
        let heard = heard(|scene| {
            let pages = pages(scene);
            scene.file("played.wav", &sound);
            let url = pages.url("do=play&file=played.wav");
            // It decodes 200 ms before it begins; what is missing would be silence.
            let browser = Browser::Firefox.open_with_latency(scene, &url, "150");
            pages.await_report("played");
            browser
        });
        compare(&heard, &sound.channels)
    });
}

/// Two channels that never repeat and are never silent.
fn noises() -> Sound {
    let frames = 3 * RATE_HZ as usize / 2;
    Sound::of(RATE_HZ, &[noise(1, frames), noise(2, frames)])
}

/// Compares what a page records of a source of this description with what `play` plays there.
fn compare_recording(
    browser: Browser,
    (scene, device): (&Scene, &str),
    play: impl Fn(&Sound),
) -> Result<(), String> {
    let sound = noises();
    let pages = pages(scene);
    let device = device.replace(' ', "%20");
    let asked = format!("do=record&frames={}&device={device}", sound.channels[0].len());
    let browser = browser.open(scene, &pages.url(&asked));
    pages.await_report("records");
    play(&sound);
    let bytes = pages.await_report("recorded");
    browser.terminate();
    let samples = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    // The largest sample of 16 bits is 1 in Chromium.
    let samples: Vec<f32> = samples.map(|sample| (sample * 32_768.0).round() / 32_768.0).collect();
    let channel = |number| samples.iter().skip(number).step_by(2).copied().collect::<Vec<_>>();
    let [left, right] =
        [0, 1].map(|number| Stretch::longest(&sound.channels[number], &channel(number)));
    // A browser that is late leaves out frames.
    let is_long = left.frames > RATE_HZ as usize / 4;
    if is_long && left == right { Ok(()) } else { Err(format!("{left:?}, {right:?}")) }
}

/// Adds a source that has what is written to a FIFO; returns that.
fn add_microphone(scene: &Scene) -> PathBuf {
    let fifo = scene.server.directory().join("microphone");
    let file = format!("file={}", path(&fifo));
    let properties = "source_properties=device.description=Microphone";
    scene.pactl(&["load-module", "module-pipe-source", "source_name=mic", &file, properties]);
    fifo
}

/// Writes a sound to such a FIFO.
fn speak(fifo: &Path, sound: &Sound) {
    let frames = sound.channels[0].iter().zip(&sound.channels[1]);
    let bytes: Vec<u8> = frames
        .flat_map(|(left, right)| [*left, *right])
        .flat_map(|sample| ((sample * 32_768.0) as i16).to_le_bytes())
        .collect();
    let mut writer = std::fs::File::options().write(true).open(fifo).expect("a FIFO");
    writer.write_all(&bytes).expect("written");
}

#[test]
fn firefox_records_the_monitor_sample_for_sample() {
    if !is_installed("firefox-esr") {
        return;
    }
    in_three_attempts(|| {
        let scene = Scene::new();
        compare_recording(Browser::Firefox, (&scene, "Monitor of consort"), |sound| {
            let file = scene.file("played.wav", sound);
            scene.run("paplay", &[path(&file)]).expect_success();
        })
    });
}

#[test]
fn chromium_records_a_microphone_sample_for_sample() {
    if !is_installed("chromium") {
        return;
    }
    in_three_attempts(|| {
        let scene = Scene::new();
        let fifo = add_microphone(&scene);
        let device = (&scene, "Microphone");
        compare_recording(Browser::Chromium, device, |sound| speak(&fifo, sound))
    });
}

/// The names of the devices that a page reports, each after its kind.
fn reported_devices(pages: &Pages) -> BTreeSet<String> {
    let devices: Value = serde_json::from_slice(&pages.await_report("devices")).expect("JSON");
    let devices = devices.as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    devices.map(|one| format!("{} {}", text(&one["kind"]), text(&one["label"]))).collect()
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn firefox_lists_sinks_and_sources_and_is_notified_of_new_ones() {
    if !is_installed("firefox-esr") {
        return;
    }
    let scene = Scene::new();
    add_microphone(&scene);
    let pages = pages(&scene);
    let browser = Browser::Firefox.open(&scene, &pages.url("do=devices"));
    let mut expected =
        names(["audioinput Microphone", "audioinput Monitor of consort", "audiooutput consort"]);
    assert_eq!(reported_devices(&pages), expected);
    add_sink(&scene, "other");
    expected.extend(names(["audioinput Monitor of other", "audiooutput other"]));
    assert_eq!(reported_devices(&pages), expected);
    browser.terminate();
}

#[test]
fn chromium_lists_sinks_and_sources_that_are_no_monitors() {
    if !is_installed("chromium") {
        return;
    }
    let scene = Scene::new();
    add_microphone(&scene);
    add_sink(&scene, "other");
    let pages = pages(&scene);
    let browser = Browser::Chromium.open(&scene, &pages.url("do=devices"));
    let expected = names([
        "audioinput Default",
        "audioinput Microphone",
        "audiooutput Default",
        "audiooutput consort",
        "audiooutput other",
    ]);
    assert_eq!(reported_devices(&pages), expected);
    browser.terminate();
}

/// Adds a sink that is described by its name.
fn add_sink(scene: &Scene, name: &str) {
    let properties = format!("sink_properties=device.description={name}");
    let name = format!("sink_name={name}");
    scene.pactl(&["load-module", "module-null-sink", &name, &properties]);
}

/// Asserts that a page plays on the sink that it chooses.
fn assert_plays_where_it_chooses(browser: Browser) {
    if !is_installed(browser.program()) {
        return;
    }
    let scene = Scene::new();
    add_microphone(&scene);
    add_sink(&scene, "other");
    let pages = pages(&scene);
    scene.file("played.wav", &ramps(4 * RATE_HZ as usize));
    let browser = browser.open(&scene, &pages.url("do=play&file=played.wav&device=other"));
    let sinks = scene.pactl(&["list", "short", "sinks"]);
    let sink = sinks.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let sink = sink.filter(|line| line[1] == "other").map(|line| line[0].to_owned()).next();
    eventually_within(2 * PATIENCE, "it plays on the other sink", || {
        let list = scene.pactl(&["list", "short", "sink-inputs"]);
        list.lines().any(|line| line.split('\t').nth(1) == sink.as_deref()).then_some(())
    });
    browser.terminate();
}

#[test]
fn firefox_plays_on_the_sink_that_a_page_chooses() {
    assert_plays_where_it_chooses(Browser::Firefox);
}

#[test]
fn chromium_plays_on_the_sink_that_a_page_chooses() {
    assert_plays_where_it_chooses(Browser::Chromium);
}

/// Checks the latency that a page sees while it plays.
fn check_latency(browser: Browser) {
    if !is_installed(browser.program()) {
        return;
    }
    in_three_attempts(|| {
        let scene = Scene::new();
        let pages = pages(&scene);
        let browser = browser.open_with_latency(&scene, &pages.url("do=latency"), "300");
        pages.await_browser();
        // Firefox may hang where a page asks for it: it waits for the thread that plays while it
        // holds a lock that this one waits for.
        let reported = pages.report_within(Duration::from_secs(20), "latency");
        let reported = reported.ok_or("the page reports none")?;
        browser.terminate();
        let text = String::from_utf8(reported).expect("a text");
        let seconds: f64 = text.parse().expect("a number");
        // All of it, or less at the end of what was requested last.
        if (0.1..0.35).contains(&seconds) { Ok(()) } else { Err(format!("{seconds} s")) }
    });
}

#[test]
fn pages_in_firefox_see_the_latency_of_their_sound() {
    check_latency(Browser::Firefox);
}

#[test]
fn pages_in_chromium_see_the_latency_of_their_sound() {
    check_latency(Browser::Chromium);
}
