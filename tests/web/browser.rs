//! Debian's Chromium, driven through the W3C's WebDriver protocol.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use harness::{Program, eventually};
use serde_json::{Value, json};

use crate::http::{connect, read_answer, request};

/// Keys, as WebDriver names them.
pub(crate) const ENTER: char = '\u{E007}';
pub(crate) const TAB: char = '\u{E004}';
pub(crate) const DELETE: char = '\u{E017}';
pub(crate) const END: char = '\u{E010}';
pub(crate) const LEFT: char = '\u{E012}';
pub(crate) const DOWN: char = '\u{E015}';

/// A browser with one window.
#[derive(Debug)]
pub(crate) struct Browser {
    _driver: Program,
    address: SocketAddr,
    session: String,
}

impl Browser {
    /// Starts one, with its files in `directory`.
    pub(crate) fn start(directory: &Path) -> Self {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").current_dir(directory).env("HOME", directory);
        let mut driver = Program::start(command);
        let port = eventually("chromedriver listens", || {
            assert!(driver.is_running(), "{}", driver.stderr());
            let printed = driver.stdout();
            let line = printed
                .lines()
                .find_map(|line| line.split_once("started successfully on port "))?;
            line.1.trim_end_matches('.').parse::<u16>().ok()
        });
        let mut browser = Self {
            _driver: driver,
            address: ([127, 0, 0, 1], port).into(),
            session: String::new(),
        };
        let profile = format!("--user-data-dir={}", directory.join("chromium").display());
        // As root there is no sandbox, and containers have little shared memory.
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            &profile,
        ];
        let wanted = json!({
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let session = browser.driver(
            "POST",
            "/session",
            &json!({ "capabilities": { "alwaysMatch": wanted } }),
        );
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    fn driver(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = connect(self.address);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("Content-Type", "application/json"), ("Connection", "close")];
        let request = request(method, path, self.address, &headers, &body)
            .replacen("HTTP/1.0", "HTTP/1.1", 1);
        stream.write_all(request.as_bytes()).expect("sent");
        let answer = read_answer(stream).expect("an answer of chromedriver's");
        let value: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!(answer.status, 200, "{path}: {}", value["value"]);
        value["value"].clone()
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.driver(method, &format!("/session/{}{path}", self.session), body)
    }

    /// Opens the page at this size, in pixels.
    pub(crate) fn open(&self, url: &str, (width, height): (u32, u32)) {
        self.resize(width, height);
        self.ask("POST", "/url", &json!({ "url": url }));
    }

    /// Resizes the page, in pixels.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        let set = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size });
        self.ask("POST", "/goog/cdp/execute", &set);
    }

    /// What a function body of JavaScript returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until an expression of JavaScript is true.
    pub(crate) fn await_true(&self, what: &str, expression: &str) {
        eventually(what, || {
            (self.run(&format!("return Boolean({expression});")) == true).then_some(())
        });
    }

    /// Clicks into the middle of the first element that a CSS selector finds.
    pub(crate) fn click(&self, selector: &str) {
        // Between the query and the click the page may draw it again.
        eventually(&format!("{selector} is there to be clicked"), || {
            let find = json!({ "using": "css selector", "value": selector });
            let found = self.ask("POST", "/elements", &find);
            let element = found[0].as_object()?.values().next()?.as_str()?.to_owned();
            let mut stream = connect(self.address);
            let path = format!("/session/{}/element/{element}/click", self.session);
            let headers = [("Content-Type", "application/json"), ("Connection", "close")];
            let request = request("POST", &path, self.address, &headers, "{}")
                .replacen("HTTP/1.0", "HTTP/1.1", 1);
            stream.write_all(request.as_bytes()).expect("sent");
            read_answer(stream).filter(|answer| answer.status == 200).map(drop)
        });
    }

    /// Saves downloads in `directory`.
    pub(crate) fn keep_downloads_in(&self, directory: &Path) {
        let set = json!({ "behavior": "allow", "downloadPath": directory });
        let set = json!({ "cmd": "Browser.setDownloadBehavior", "params": set });
        self.ask("POST", "/goog/cdp/execute", &set);
    }

    /// Chooses a file in the element that a CSS selector finds.
    pub(crate) fn choose(&self, selector: &str, file: &Path) {
        let found =
            self.ask("POST", "/element", &json!({ "using": "css selector", "value": selector }));
        let element = found
            .as_object()
            .and_then(|found| found.values().next()?.as_str())
            .expect("an element");
        self.ask("POST", &format!("/element/{element}/value"), &json!({ "text": file }));
    }

    /// Presses and releases a key, wherever the focus is.
    pub(crate) fn press(&self, key: char) {
        let key = key.to_string();
        let actions =
            json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.ask("POST", "/actions", &json!({ "actions": [keyboard] }));
    }

    /// Errors of the page and of the browser since the last call.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.ask("POST", "/se/log", &json!({ "type": "browser" }));
        let severe =
            log.as_array().into_iter().flatten().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }

    /// The page as PNG in base64.
    pub(crate) fn picture(&self) -> String {
        self.ask("GET", "/screenshot", &Value::Null).as_str().expect("base64").to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // chromedriver ends the browser with its session. A test that fails already is not failed
        // twice.
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", "", &Value::Null);
        } else if let Ok(mut stream) = std::net::TcpStream::connect(self.address) {
            let path = format!("/session/{}", self.session);
            let _ = stream.write_all(request("DELETE", &path, self.address, &[], "").as_bytes());
            let _ = read_answer(stream);
        }
    }
}
