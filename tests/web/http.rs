//! As much of HTTP as the tests need, and requests that no browser would send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use harness::PATIENCE;
use serde_json::Value;

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The status line and the headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The first header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// The first header of that name, in the head of an answer.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// A connection on which nothing has been sent.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the page listens");
    stream.set_read_timeout(Some(4 * PATIENCE)).expect("a positive time");
    stream.set_write_timeout(Some(PATIENCE)).expect("a positive time");
    stream
}

/// Sends a request; returns the answer. Version 1.0: the answer ends with the connection, in one
/// piece.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = connect(address);
    stream.write_all(request(method, path, address, headers, body).as_bytes()).expect("sent");
    read_answer(stream).expect("an answer")
}

/// A page.
pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, "GET", path, &[], "")
}

/// A command, as our own page sends it.
pub(crate) fn order(address: SocketAddr, order: &Value) -> Answer {
    ask(address, "POST", "/order", &[("Content-Type", "application/json")], &order.to_string())
}

/// The bytes of a request. The host is that of the address, unless one of `headers` is.
pub(crate) fn request(
    method: &str,
    path: &str,
    address: SocketAddr,
    headers: &[(&str, &str)],
    body: &str,
) -> String {
    let mut text = format!("{method} {path} HTTP/1.0\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str(&format!("Host: {address}\r\n"));
    }
    headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    text
}

/// Reads to the end of an answer; `None` if the connection ends without one.
pub(crate) fn read_answer(stream: TcpStream) -> Option<Answer> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    let mut body = Vec::new();
    match length {
        Some(bytes) => reader.take(bytes).read_to_end(&mut body).ok()?,
        None => reader.read_to_end(&mut body).ok()?,
    };
    Some(Answer { status, head, body: String::from_utf8_lossy(&body).into_owned() })
}

/// The stream of events that the page shows.
#[derive(Debug)]
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
}

impl Events {
    /// Subscribes to the stream.
    pub(crate) fn of(address: SocketAddr) -> Self {
        let mut stream = connect(address);
        stream.write_all(request("GET", "/events", address, &[], "").as_bytes()).expect("sent");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        assert!(line.contains(" 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).expect("headers");
        }
        Self { reader }
    }

    /// The next event: its name and its data; `None`: the stream has ended.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
        let mut lines = [String::new(), String::new(), String::new()];
        for line in &mut lines {
            if self.reader.read_line(line).ok()? == 0 {
                return None;
            }
        }
        let [name, data, _] = lines;
        let name = name.strip_prefix("event: ").expect("an event's name").trim_end().to_owned();
        let data = data.strip_prefix("data: ").expect("an event's data");
        Some((name, serde_json::from_str(data).expect("JSON")))
    }

    /// The next event of this name of which `is_wanted` holds.
    pub(crate) fn await_event(
        &mut self,
        name: &str,
        what: &str,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let end = std::time::Instant::now() + PATIENCE;
        while let Some((found, data)) = self.next() {
            if found == name && is_wanted(&data) {
                return data;
            }
            assert!(std::time::Instant::now() < end, "never received: {what}; but {found}: {data}");
        }
        panic!("the stream has ended before: {what}");
    }

    /// Ends it at once.
    pub(crate) fn end(self) {
        let _ = self.reader.get_ref().shutdown(Shutdown::Both);
    }
}
