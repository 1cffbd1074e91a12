//! A page for browsers, and what it reports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use harness::{PATIENCE, eventually_within};

/// Serves one page and the files of a directory, to the browser of one test.
pub struct Pages {
    address: SocketAddr,
    reports: Receiver<(String, Vec<u8>)>,
    /// A browser has asked for the page.
    is_asked_for: Arc<AtomicBool>,
}

impl Pages {
    /// Serves `page`, and the files in `directory` by their names.
    pub fn serve(page: PathBuf, directory: &Path) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let directory = directory.to_owned();
        let (sender, reports) = channel();
        let is_asked_for = Arc::new(AtomicBool::new(false));
        let of_server = Arc::clone(&is_asked_for);
        // Ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (page, directory, sender) = (page.clone(), directory.clone(), sender.clone());
                let is_asked_for = Arc::clone(&of_server);
                std::thread::spawn(move || {
                    serve(&stream, (&page, &is_asked_for), &directory, &sender)
                });
            }
        });
        Self { address, reports, is_asked_for }
    }

    /// The address of the page that acts as `asked`.
    pub fn url(&self, asked: &str) -> String {
        format!("http://{}/?{asked}", self.address)
    }

    /// Waits until a browser has started and asks for the page.
    pub fn await_browser(&self) {
        eventually_within(2 * PATIENCE, "a browser asks for the page", || {
            self.is_asked_for.load(Ordering::Relaxed).then_some(())
        });
    }

    /// Waits for the page's next report, which is `what`.
    pub fn await_report(&self, what: &str) -> Vec<u8> {
        let body = self.report_within(2 * PATIENCE, what);
        body.unwrap_or_else(|| panic!("the page never reports '{what}'"))
    }

    /// Waits as long for the page's next report, which is `what` if it comes.
    pub fn report_within(&self, patience: Duration, what: &str) -> Option<Vec<u8>> {
        let (found, body) = self.reports.recv_timeout(patience).ok()?;
        assert_eq!(found, what, "{}", String::from_utf8_lossy(&body[..body.len().min(2000)]));
        Some(body)
    }
}

/// Answers one request.
fn serve(
    stream: &TcpStream,
    (page, is_asked_for): (&Path, &AtomicBool),
    directory: &Path,
    sender: &Sender<(String, Vec<u8>)>,
) {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !reader.read_line(&mut head).is_ok_and(|bytes| bytes > 0) {
            return;
        }
    }
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or("/"));
    let name = path.split('?').next().unwrap_or("").trim_start_matches('/');
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    if reader.take(length).read_to_end(&mut body).is_err() {
        return;
    }
    let (kind, content) = match (method, name) {
        ("POST", _) => {
            let _ = sender.send((name.to_owned(), body));
            ("text/plain", Vec::new())
        }
        (_, "") => {
            is_asked_for.store(true, Ordering::Relaxed);
            ("text/html", std::fs::read(page).unwrap_or_default())
        }
        _ => ("audio/wav", std::fs::read(directory.join(name)).unwrap_or_default()),
    };
    let status = if method != "POST" && content.is_empty() { "404 Not Found" } else { "200 OK" };
    let length = content.len();
    let head = format!("HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}");
    let mut writer = stream;
    let _ = writer.write_all(format!("{head}\r\n\r\n").as_bytes());
    let _ = writer.write_all(&content);
}
