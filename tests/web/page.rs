//! The page in a real browser.

use std::path::PathBuf;
use std::process::Command;

use harness::{Program, Server, eventually};
use serde_json::Value;

use crate::browser::{Browser, DELETE, DOWN, END, ENTER, LEFT, TAB};
use crate::served::served;
use crate::streams::play;

/// A name that would be markup if it were not escaped.
const EVIL: &str = "<i id=evil>";

/// A directory named here gets pictures of the page, for the documentation and for a developer who
/// wants to look.
const PICTURES: &str = "CONSORT_PICTURES";

fn keep_picture(browser: &Browser, name: &str) {
    let picture = browser.picture();
    assert!(
        picture.starts_with("iVBORw0KGgo") && picture.len() > 10_000,
        "a PNG with something on it"
    );
    let Some(directory) = std::env::var_os(PICTURES).map(PathBuf::from) else { return };
    std::fs::create_dir_all(&directory).expect("a directory");
    let encoded = directory.join(format!("{name}.base64"));
    std::fs::write(&encoded, picture).expect("written");
    let png = std::fs::File::create(directory.join(name)).expect("a file");
    let status = Command::new("base64").arg("--decode").arg(&encoded).stdout(png).status();
    assert!(status.expect("base64 runs").success());
    std::fs::remove_file(encoded).expect("removed");
}

fn transport(server: &Server) -> Value {
    let printed = server.consort(&["transport", "show", "--json"]).expect_success().stdout;
    serde_json::from_str(&printed).expect("JSON")
}

/// Whether the source is connected with the checker.
fn is_connected(server: &Server) -> bool {
    let listed = server.lsp(&["-c"]);
    let mut lines = listed.lines().skip_while(|line| *line != "first:out").skip(1);
    lines.by_ref().map_while(|line| line.strip_prefix("   ")).any(|peer| peer == "second:in")
}

struct Scenario {
    browser: Browser,
    url: String,
    _programs: [Program; 3],
    server: Server,
}

impl Scenario {
    fn new() -> Self {
        Self::of(&["--quantum", "1024"])
    }

    /// On a device that plays streams.
    fn with_streams() -> Self {
        Self::of(&["--quantum", "1024", "--driver", "timer"])
    }

    fn of(options: &[&str]) -> Self {
        let (server, address) = served(options);
        let programs = [
            server.probe(&["source", "first"]),
            server.probe(&["check", "second", "--from", "first:out"]),
            server.probe(&["source", EVIL]),
        ];
        let browser = Browser::start(server.directory());
        let url = format!("http://{address}/");
        browser.open(&url, (1280, 800));
        browser.await_true("the page is live", "document.querySelector('#link.up')");
        Self { browser, url, _programs: programs, server }
    }

    fn await_connected(&self, wanted: bool) {
        eventually("the server's graph follows", || {
            (is_connected(&self.server) == wanted).then_some(())
        });
        let wire = format!("Boolean(document.querySelector('.wire')) === {wanted}");
        self.browser.await_true("the drawing follows", &wire);
    }

    /// The selector of a port's box.
    fn port(&self, name: &str) -> String {
        format!(".port[aria-label^=\"{name},\"]")
    }

    fn focus(&self, selector: &str) {
        let selector = serde_json::to_string(selector).expect("text");
        self.browser.await_true("it takes the focus", &format!(
            "(() => {{ const it = document.querySelector({selector}); it?.focus(); return it && document.activeElement === it; }})()"
        ));
    }
}

#[test]
fn the_page_fits_a_desktop_and_a_phone() {
    let scenario = Scenario::new();
    let browser = &scenario.browser;
    for name in ["driver", "first", "second", EVIL] {
        let name = serde_json::to_string(name).expect("text");
        let row = format!(
            "[...document.querySelectorAll('#rows tr')].find((row) => row.cells[0].textContent === {name})"
        );
        browser.await_true(
            "a line with a bar",
            &format!("{row}?.querySelector('b.run, b.over')?.offsetWidth > 0"),
        );
    }
    assert_eq!(
        browser.run("return document.getElementById('evil');"),
        Value::Null,
        "names are text"
    );
    browser.await_true(
        "each of the five plots has points",
        "[...document.querySelectorAll('figure canvas')].filter((canvas) => {
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            // Brighter than the words of the axes, denser than the period's line.
            for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 150 && Math.max(data[at], data[at + 1], data[at + 2]) > 180) return true;
            return false;
        }).length === 5",
    );
    browser.await_true("all ports are drawn", "document.querySelectorAll('.port').length === 7");
    browser
        .await_true("the connection is drawn", "document.querySelectorAll('.wire').length === 1");
    browser.await_true(
        "xruns are listed, or that there are none",
        "document.querySelector('#list li')",
    );
    browser.await_true(
        "the load is shown",
        "/^DSP \\d/.test(document.querySelector('#load b').textContent)",
    );
    let overflow =
        "return [document.documentElement.scrollWidth, document.documentElement.scrollHeight];";
    assert_eq!(
        browser.run(overflow),
        serde_json::json!([1280, 800]),
        "everything is seen without scrolling"
    );
    keep_picture(browser, "web-desk.png");
    browser.resize(390, 844);
    browser.await_true(
        "nothing is wider than a phone",
        "document.documentElement.scrollWidth === 390",
    );
    keep_picture(browser, "web-phone.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_graph_and_the_transport_are_edited_by_mouse() {
    let scenario = Scenario::new();
    scenario.await_connected(true);
    // Two connected ports one after the other, and again.
    for wanted in [false, true] {
        scenario.browser.click(&scenario.port("first:out"));
        scenario.browser.await_true("it is chosen", "document.querySelector('.port.chosen')");
        scenario.browser.click(&scenario.port("second:in"));
        scenario.await_connected(wanted);
    }
    scenario.browser.click("#roll");
    scenario
        .browser
        .await_true("the button says so", "document.querySelector('#roll').ariaPressed === 'true'");
    assert_ne!(transport(&scenario.server)["state"], "stopped");
    scenario.browser.click("#roll");
    scenario.browser.await_true(
        "the button says so",
        "document.querySelector('#roll').ariaPressed === 'false'",
    );
    // A refusal of the server is reported.
    scenario.browser.run("document.querySelector('#seconds').value = 'soon';");
    scenario.browser.click("#transport button:not([type])");
    scenario.browser.await_true("it is explained", "!document.querySelector('#error').hidden");
    assert_eq!(scenario.browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_state_is_saved_to_a_file_and_restored_from_one() {
    let scenario = Scenario::new();
    let browser = &scenario.browser;
    scenario.await_connected(true);
    let downloads = scenario.server.directory().join("downloads");
    browser.keep_downloads_in(&downloads);
    browser.click("#save");
    let file = eventually("the file is there", || {
        let mut files = std::fs::read_dir(&downloads).ok()?.filter_map(Result::ok);
        let path = files.next()?.path();
        (path.extension()? == "json").then_some(path)
    });
    let saved = std::fs::read_to_string(&file).expect("read");
    assert_eq!(saved, scenario.server.consort(&["save", "-"]).expect_success().stdout);
    scenario.server.run("jack_disconnect", &["first:out", "second:in"]).expect_success();
    scenario.await_connected(false);
    browser.choose("#file", &file);
    scenario.await_connected(true);
    browser.await_true(
        "it is reported",
        "/ is restored\\.$/.test(document.querySelector('#done').textContent)",
    );
    keep_picture(browser, "web-restored.png");

    // A file that names missing ports.
    let other = scenario.server.directory().join("other.json");
    let state = saved.replace("\"first:out\"", "\"<i>gone:out\"");
    std::fs::write(&other, state).expect("written");
    browser.choose("#file", &other);
    browser.await_true("a report", "document.querySelector('#report').open");
    let lines = browser.run(
        "return [...document.querySelectorAll('#failures li')].map((line) => line.textContent);",
    );
    let by_command = scenario.server.consort(&["restore", &other.to_string_lossy()]).stderr;
    let by_command: Vec<&str> =
        by_command.lines().filter_map(|line| line.strip_prefix("consort: ")).collect();
    assert_eq!(lines, serde_json::json!(by_command));
    assert!(
        by_command.iter().any(|line| line.contains("there is no port '<i>gone:out'")),
        "{by_command:?}"
    );
    keep_picture(browser, "web-report.png");
    browser.click("#close");
    browser.await_true("it is closed", "!document.querySelector('#report').open");

    // A file that is no state.
    let picture = scenario.server.directory().join("picture.json");
    std::fs::write(&picture, [0x89, b'P', b'N', b'G']).expect("written");
    browser.choose("#file", &picture);
    browser.await_true(
        "it is explained",
        "document.querySelector('#error').textContent.includes('not a state of consort')",
    );
    let refusals = browser.complaints();
    assert!(
        refusals.len() == 1 && refusals[0].contains("400"),
        "but for the refusal: {refusals:?}"
    );
}

/// The selector of a stream's controls, or of a device's.
fn row(key: &str, control: &str) -> String {
    format!("[data-key=\"{key}\"] {control}")
}

#[test]
fn volumes_and_devices_of_streams_are_set_by_keyboard_and_mouse() {
    let scenario = Scenario::with_streams();
    let Scenario { browser, server, .. } = &scenario;
    server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
    let _player = play(server, &[]);
    let stream = |control: &str| row("stream 1 playback", control);
    let await_status = |what: &str, is_wanted: &dyn Fn(&Value) -> bool| {
        eventually(what, || is_wanted(&server.consort_json(&["status"])).then_some(()));
    };
    scenario.focus(&stream("input"));
    browser.press(END);
    browser.press(LEFT);
    await_status("the slider's end, and a step back: 149 % to the third", &|status| {
        let volume = status["streams"][0]["volume"].as_f64().unwrap_or_default();
        (volume - 1.49_f64.powi(3)).abs() < 1e-5
    });
    browser.await_true(
        "it says so to a screen reader",
        &format!(
            "document.querySelector('{}').getAttribute('aria-valuetext') === '330.8 % (10.4 dB)'",
            stream("input")
        ),
    );
    browser.click(&stream("button"));
    await_status("it is muted", &|status| status["streams"][0]["muted"] == true);
    browser.click(&row("device system", "button"));
    await_status("the device is muted", &|status| status["device_muted"] == true);
    scenario.focus(&stream("select"));
    browser.press(DOWN);
    await_status("it is on the other device", &|status| status["streams"][0]["device"] == "other");
    keep_picture(browser, "web-streams.png");
    // What others change is shown, also where the page has just changed it.
    server.consort(&["volume", "1", "12.5%"]).expect_success();
    server.consort(&["unmute", "1"]).expect_success();
    browser.await_true(
        "another program's changes",
        &format!(
            "(() => {{ const at = (selector) => document.querySelector(selector);
                return at('{}').value === '50' && at('{}').ariaPressed === 'false'; }})()",
            stream("input"),
            stream("button")
        ),
    );
    server.consort(&["move", "1", "system"]).expect_success();
    browser.await_true(
        "it is back",
        &format!("document.querySelector('{}').value === 'system'", stream("select")),
    );
    browser.resize(390, 844);
    browser.await_true(
        "nothing is wider than a phone",
        "document.documentElement.scrollWidth === 390",
    );
    browser.run("document.getElementById('streams').scrollIntoView();");
    keep_picture(browser, "web-streams-phone.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn of_a_dragged_slider_the_last_value_is_sent_in_few_requests() {
    let scenario = Scenario::with_streams();
    let Scenario { browser, server, .. } = &scenario;
    let _player = play(server, &[]);
    let slider = row("stream 1 playback", "input");
    browser.await_true("it has a slider", &format!("document.querySelector('{slider}')"));
    browser.run(
        "const send = window.fetch; window.orders = 0;
         window.fetch = (...what) => { window.orders += 1; return send(...what); };",
    );
    browser.run(&format!(
        "const slider = document.querySelector('{slider}');
         for (let value = 1; value <= 80; value += 1) {{
           slider.value = value;
           slider.dispatchEvent(new Event('input', {{ bubbles: true }}));
         }}"
    ));
    eventually("the last one is in force", || {
        let volume = server.consort_json(&["status"])["streams"][0]["volume"].as_f64()?;
        ((volume - 0.512).abs() < 1e-6).then_some(())
    });
    assert_eq!(browser.run("return window.orders;"), 2, "the first one, and the last one");
    assert_eq!(browser.run(&format!("return document.querySelector('{slider}').value;")), "80");
}

#[test]
fn the_whole_page_can_be_used_by_keyboard() {
    let scenario = Scenario::new();
    scenario.await_connected(true);
    scenario.focus(".wire");
    scenario.browser.press(DELETE);
    scenario.await_connected(false);
    scenario.focus(&scenario.port("first:out"));
    scenario.browser.press(ENTER);
    scenario.browser.await_true(
        "it is chosen, and has the focus",
        "document.activeElement.matches('.port.chosen')",
    );
    scenario.focus(&scenario.port("second:in"));
    scenario.browser.press(ENTER);
    scenario.await_connected(true);

    scenario.browser.open(&scenario.url, (1280, 800));
    scenario
        .browser
        .await_true("the graph is drawn", "document.querySelectorAll('.port').length === 7");
    let mut missing = vec![
        "rewind", "roll", "seconds", "save", "restore", "latest", "slowest", "pause", "port",
        "wire", "BUTTON", "INPUT",
    ];
    for _ in 0..60 {
        scenario.browser.press(TAB);
        let at = scenario.browser.run(
            "const it = document.activeElement; return it.id || (it.closest('.port, .wire')?.classList[0] ?? it.tagName);",
        );
        missing.retain(|name| at != *name);
        if missing.is_empty() {
            break;
        }
    }
    assert_eq!(missing, Vec::<&str>::new(), "not reached by the tab key");
    assert_eq!(scenario.browser.complaints(), Vec::<String>::new());
}
