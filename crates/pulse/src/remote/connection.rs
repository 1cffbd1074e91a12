//! A connection to another server, with one stream: its two ends, one to write and one to read.

use std::collections::VecDeque;
use std::ffi::CString;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow, bail, ensure};
use convert::{ChannelMap, ProgramFormat, SampleFormat};
use pulseaudio::protocol::stream::{BufferAttr, StreamFlags};
use pulseaudio::protocol::{
    AuthParams, Command, CorkStreamParams, DEFAULT_SOURCE, GetSourceInfo, LatencyParams,
    MAX_VERSION, PlaybackStreamParams, Prop, Props, PulseError, RecordStreamParams,
};
use sys::clock::now_ns;

use super::address::{Address, RemoteSocket};
use super::incoming::{
    AUTH, CORK, CREATE, Direction, FIRST_DRAIN, Incoming, IncomingReader, NAME, Opening,
    RemoteEvent, SOURCE, TIMING,
};
use crate::cookie_file::CookieFile;
use crate::front_end::{COOKIE_BYTES, Cookie, codec_map, codec_spec};
use crate::wire;

/// The oldest version of the protocol that has all that is needed, from 2009: PulseAudio 0.9.16.
const MIN_VERSION: u16 = 16;
/// How long the other server may take for each answer on the way to a stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Longest frame of samples that is sent, bytes.
const MAX_FRAME_BYTES: usize = 64 << 10;
/// A buffer of the other server holds this multiple of the latency, so that nothing is lost when it
/// comes at once.
const ROOM: u64 = 4;

/// The samples of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteFormat {
    /// How a sample is written.
    pub format: SampleFormat,
    /// Hz.
    pub rate_hz: u32,
    /// The positions of the channels.
    pub map: ChannelMap,
}

impl RemoteFormat {
    /// Returns the bytes of a frame.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.format.bytes_per_sample() * self.map.channels()
    }

    fn bytes_in(&self, time: Duration) -> u64 {
        let frames = time.as_micros() * u128::from(self.rate_hz) / 1_000_000;
        u64::try_from(frames).unwrap_or(u64::MAX).max(1).saturating_mul(self.frame_bytes() as u64)
    }

    fn program(&self) -> ProgramFormat {
        let Self { format, rate_hz, map } = *self;
        ProgramFormat { format, rate_hz, map }
    }
}

/// What is shown to another server to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteCookie {
    /// The user's own cookie. Zeros if there is none: the server may let this user in without.
    OfUser,
    /// That of this file.
    File(PathBuf),
    /// Zeros: a machine that publishes a server must not learn this user's cookie.
    Zeros,
}

/// A stream at another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Where the server listens, in PulseAudio's words.
    pub server: String,
    /// What is shown to be let in.
    pub cookie: RemoteCookie,
    /// The name of the sink or the source there; `None`: the default one.
    pub device: Option<String>,
    /// Name of the program, for users of that server.
    pub program: String,
    /// Name of the stream, for users of that server.
    pub name: String,
    /// Its samples.
    pub format: RemoteFormat,
    /// How much of it is to wait there, with what its device needs; `None`: as the server likes.
    pub buffer: Option<Duration>,
    /// It begins silent, until it is [uncorked](RemoteWriter::cork).
    pub corked: bool,
}

/// The end of a stream at another server to which requests and samples are written.
#[derive(Debug)]
pub struct RemoteWriter {
    socket: RemoteSocket,
    version: u16,
    direction: Direction,
    channel: u32,
    next_drain: u32,
    bytes: Vec<u8>,
}

/// The end from which is read what the server says.
#[derive(Debug)]
pub struct RemoteReader {
    socket: RemoteSocket,
    incoming: IncomingReader,
    ready: VecDeque<Incoming>,
}

/// Plays at another server.
///
/// # Errors
/// A sentence: it cannot be reached, does not answer, or refuses.
pub fn play(options: &RemoteOptions) -> anyhow::Result<(RemoteWriter, RemoteReader)> {
    let mut opening = Begun::connect(options, Direction::Playback)?;
    let (spec, map) = (codec_spec(&options.format.program()), codec_map(&options.format.map));
    let params = PlaybackStreamParams {
        sample_spec: spec,
        channel_map: map,
        sink_name: name(options.device.as_deref())?,
        buffer_attr: playback_buffer(options),
        props: stream_props(options),
        flags: flags(options, false),
        ..PlaybackStreamParams::default()
    };
    let device = options.device.as_deref().unwrap_or("the default sink");
    let answer = opening.ask(CREATE, &Command::CreatePlaybackStream(params));
    let answer = answer.with_context(|| format!("cannot play on {device} there"))?;
    let Opening::Playback(reply) = answer else { bail!("it answers another question") };
    ensure!(
        reply.sample_spec == spec,
        "the other server plays another sample format than requested"
    );
    if let Some(buffer) = options.buffer {
        let device_us = u128::from(reply.stream_latency);
        ensure!(
            device_us <= buffer.as_micros() * 3 / 2,
            "the other server's sink needs {} ms: ask for more latency",
            device_us / 1000
        );
    }
    let (writer, mut reader) = opening.opened(reply.channel)?;
    let wanted = RemoteEvent::Wanted(reply.requested_bytes.into());
    reader.ready.push_front(Incoming::Event(wanted));
    Ok((writer, reader))
}

/// Records at another server.
///
/// # Errors
/// A sentence: it cannot be reached, does not answer, or refuses.
pub fn record(options: &RemoteOptions) -> anyhow::Result<(RemoteWriter, RemoteReader)> {
    let mut opening = Begun::connect(options, Direction::Record)?;
    let (spec, map) = (codec_spec(&options.format.program()), codec_map(&options.format.map));
    let source_name = name(options.device.as_deref())?;
    let device = options.device.as_deref().unwrap_or("the default source");
    let about = GetSourceInfo {
        index: None,
        name: Some(source_name.clone().unwrap_or_else(|| DEFAULT_SOURCE.into())),
    };
    let answer = opening.ask(SOURCE, &Command::GetSourceInfo(about));
    let answer = answer.with_context(|| format!("cannot record {device} there"))?;
    let Opening::Source { is_monitor } = answer else { bail!("it answers another question") };
    let params = RecordStreamParams {
        sample_spec: spec,
        channel_map: map,
        source_name,
        buffer_attr: record_buffer(options),
        props: stream_props(options),
        // A sink may sleep although somebody listens to it.
        flags: flags(options, is_monitor),
        ..RecordStreamParams::default()
    };
    let answer = opening.ask(CREATE, &Command::CreateRecordStream(params));
    let answer = answer.with_context(|| format!("cannot record {device} there"))?;
    let Opening::Record(reply) = answer else { bail!("it answers another question") };
    ensure!(
        reply.sample_spec == spec,
        "the other server records another sample format than requested"
    );
    opening.opened(reply.channel)
}

fn name(device: Option<&str>) -> anyhow::Result<Option<CString>> {
    device.map(CString::new).transpose().context("a name has no zero byte")
}

fn bytes(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn playback_buffer(options: &RemoteOptions) -> BufferAttr {
    let Some(buffer) = options.buffer else { return BufferAttr::default() };
    let of = |time| options.format.bytes_in(time);
    BufferAttr {
        max_length: bytes(of(buffer).saturating_mul(ROOM)),
        target_length: bytes(of(buffer)),
        pre_buffering: bytes(of(buffer / 4)),
        minimum_request_length: bytes(of(buffer / 8)),
        ..BufferAttr::default()
    }
}

fn record_buffer(options: &RemoteOptions) -> BufferAttr {
    let Some(buffer) = options.buffer else { return BufferAttr::default() };
    let fragment_size = bytes(options.format.bytes_in(buffer));
    BufferAttr { fragment_size, ..BufferAttr::default() }
}

fn flags(options: &RemoteOptions, no_inhibit_auto_suspend: bool) -> StreamFlags {
    StreamFlags {
        start_corked: options.corked,
        adjust_latency: options.buffer.is_some(),
        no_inhibit_auto_suspend,
        ..StreamFlags::default()
    }
}

fn set(props: &mut Props, prop: Prop, text: &str) {
    if let Ok(text) = CString::new(text) {
        props.set(prop, text);
    }
}

fn stream_props(options: &RemoteOptions) -> Props {
    let mut props = Props::new();
    set(&mut props, Prop::MediaName, &options.name);
    props
}

fn program_props(program: &str) -> Props {
    let mut props = Props::new();
    set(&mut props, Prop::ApplicationName, program);
    set(&mut props, Prop::ApplicationProcessId, &std::process::id().to_string());
    props
}

/// Returns the cookie to show.
fn cookie(of: &RemoteCookie) -> anyhow::Result<Cookie> {
    const ZEROS: Cookie = Cookie([0; COOKIE_BYTES]);
    match of {
        RemoteCookie::OfUser => Ok(CookieFile::of_user()?.existing()?.unwrap_or(ZEROS)),
        RemoteCookie::File(path) => {
            let file = CookieFile::at(path.clone());
            let missing = || anyhow!("there is no cookie {}", file.shown().display());
            file.existing()?.ok_or_else(missing)
        }
        RemoteCookie::Zeros => Ok(ZEROS),
    }
}

/// A connection without a stream, or on the way to one.
#[derive(Debug)]
pub(super) struct Begun {
    socket: RemoteSocket,
    incoming: IncomingReader,
    ready: VecDeque<Incoming>,
    version: u16,
    direction: Direction,
    /// Devices have changed since somebody waited for that.
    changed: bool,
}

impl Begun {
    fn connect(options: &RemoteOptions, direction: Direction) -> anyhow::Result<Self> {
        let RemoteOptions { server, program, .. } = options;
        Self::connect_as(server, cookie(&options.cookie)?, program, direction)
    }

    /// Connects without a stream.
    ///
    /// # Errors
    /// A sentence: it cannot be reached, does not answer, or refuses.
    pub(super) fn connect_to(server: &str, program: &str) -> anyhow::Result<Self> {
        Self::connect_as(server, cookie(&RemoteCookie::OfUser)?, program, Direction::Playback)
    }

    fn connect_as(
        server: &str,
        cookie: Cookie,
        program: &str,
        direction: Direction,
    ) -> anyhow::Result<Self> {
        let socket = Address::read(server)?.connect()?;
        let incoming = IncomingReader::new(direction, MAX_VERSION);
        let ready = VecDeque::new();
        let (version, changed) = (MAX_VERSION, false);
        let mut begun = Self { socket, incoming, ready, version, direction, changed };
        let auth = AuthParams {
            version: MAX_VERSION,
            supports_shm: false,
            supports_memfd: false,
            cookie: cookie.0.to_vec(),
        };
        let answer = begun.ask(AUTH, &Command::Auth(auth));
        let answer = answer.with_context(|| format!("{server} does not let us in"))?;
        let Opening::Version(version) = answer else { bail!("it answers another question") };
        ensure!(version >= MIN_VERSION, "the other server is too old: it speaks version {version}");
        begun.version = version;
        begun.ask(NAME, &Command::SetClientName(program_props(program)))?;
        Ok(begun)
    }

    /// Asks, and waits for the answer.
    fn ask(&mut self, number: u32, command: &Command) -> anyhow::Result<Opening> {
        self.ask_within(number, command, ANSWER_TIMEOUT)
    }

    /// Asks, and waits no longer than this for the answer.
    ///
    /// # Errors
    /// It is refused, or does not come.
    pub(super) fn ask_within(
        &mut self,
        number: u32,
        command: &Command,
        time: Duration,
    ) -> anyhow::Result<Opening> {
        self.offer_within(number, command, time)?.map_err(|error| anyhow!(refusal(error)))
    }

    /// The same, of what may be refused without harm.
    ///
    /// # Errors
    /// The answer does not come.
    pub(super) fn offer_within(
        &mut self,
        number: u32,
        command: &Command,
        time: Duration,
    ) -> anyhow::Result<Result<Opening, PulseError>> {
        let request = wire::request(number, command, self.version);
        (&self.socket).write_all(&request).context("cannot write to it")?;
        let deadline = std::time::Instant::now() + time;
        loop {
            match self.ready.pop_front() {
                Some(Incoming::Opening(opening)) => return Ok(Ok(opening)),
                Some(Incoming::Refused(of, error)) if of == number => return Ok(Err(error)),
                Some(Incoming::Changed) => {
                    self.changed = true;
                    continue;
                }
                Some(_) => continue,
                None => {}
            }
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            ensure!(!left.is_zero(), "it does not answer");
            self.socket.set_read_timeout(Some(left))?;
            receive(&self.socket, &mut self.incoming, &mut self.ready)?;
        }
    }

    /// Waits until devices have changed, without a bound.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn await_change(&mut self) -> anyhow::Result<()> {
        self.socket.set_read_timeout(None)?;
        while !std::mem::take(&mut self.changed) {
            match self.ready.pop_front() {
                Some(Incoming::Changed) => self.changed = true,
                Some(_) => {}
                None => receive(&self.socket, &mut self.incoming, &mut self.ready)?,
            }
        }
        Ok(())
    }

    fn opened(self, channel: u32) -> anyhow::Result<(RemoteWriter, RemoteReader)> {
        let Self { socket, incoming, ready, version, direction, changed: _ } = self;
        socket.set_read_timeout(None)?;
        let reader = RemoteReader { socket: socket.again()?, incoming, ready };
        let (next_drain, bytes) = (FIRST_DRAIN, Vec::new());
        Ok((RemoteWriter { socket, version, direction, channel, next_drain, bytes }, reader))
    }
}

fn refusal(error: PulseError) -> String {
    match error {
        PulseError::AccessDenied => "access denied: it has another cookie".into(),
        PulseError::NoEntity => "it has none of that name".into(),
        error => error.to_string(),
    }
}

/// Reads once, for as long as the socket's timeout is.
fn receive(
    mut socket: &RemoteSocket,
    incoming: &mut IncomingReader,
    ready: &mut VecDeque<Incoming>,
) -> anyhow::Result<()> {
    let mut bytes = [0; READ_BYTES];
    match socket.read(&mut bytes) {
        Ok(0) => bail!("the other server has closed the connection"),
        Ok(count) => {
            let pushed = incoming.push(&bytes[..count], now_ns(), |said| ready.push_back(said));
            pushed.context("the other server sends messages that cannot be understood")
        }
        Err(error) => match error.kind() {
            ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(()),
            _ => Err(error).context("the connection to the other server has ended"),
        },
    }
}

impl RemoteReader {
    /// Waits for what the server says next, without a bound: the end of the connection, also by
    /// [`RemoteWriter::end`], is the last that comes.
    pub fn listen(&mut self) -> RemoteEvent {
        loop {
            match self.ready.pop_front() {
                Some(Incoming::Event(event)) => return event,
                // The stream is not there, or not any more.
                Some(Incoming::Refused(_, error)) => return RemoteEvent::Ended(refusal(error)),
                Some(Incoming::Opening(_) | Incoming::Changed) => continue,
                None => {}
            }
            if let Err(error) = receive(&self.socket, &mut self.incoming, &mut self.ready) {
                return RemoteEvent::Ended(cli::error_chain(&error));
            }
        }
    }
}

impl RemoteWriter {
    /// Adds samples to what is sent next, in whole frames.
    pub fn push(&mut self, samples: &[u8]) {
        for piece in samples.chunks(MAX_FRAME_BYTES) {
            self.bytes.extend(wire::samples(self.channel, piece));
        }
    }

    fn request(&mut self, number: u32, command: &Command) {
        self.bytes.extend(wire::request(number, command, self.version));
    }

    /// Asks when what is heard.
    pub fn ask_timing(&mut self) {
        let params = LatencyParams { channel: self.channel, now: SystemTime::UNIX_EPOCH };
        let command = match self.direction {
            Direction::Playback => Command::GetPlaybackLatency(params),
            Direction::Record => Command::GetRecordLatency(params),
        };
        self.request(TIMING, &command);
    }

    /// Has the stream wait, or go on.
    pub fn cork(&mut self, cork: bool) {
        let params = CorkStreamParams { channel: self.channel, cork };
        let command = match self.direction {
            Direction::Playback => Command::CorkPlaybackStream(params),
            Direction::Record => Command::CorkRecordStream(params),
        };
        self.request(CORK, &command);
    }

    /// Asks for [`RemoteEvent::Drained`] with the number that is returned, once all that was pushed
    /// has been heard.
    pub fn drain(&mut self) -> u32 {
        let number = self.next_drain;
        self.next_drain = self.next_drain.checked_add(1).unwrap_or(FIRST_DRAIN);
        self.request(number, &Command::DrainPlaybackStream(self.channel));
        number
    }

    /// Sends what was pushed and asked. Waits some seconds for room.
    ///
    /// # Errors
    /// The connection has ended, or the server does not read.
    pub fn send(&mut self) -> anyhow::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let sent = (&self.socket).write_all(&self.bytes);
        self.bytes.clear();
        sent.context("the other server accepts no more data")
    }

    /// Ends the connection.
    pub fn end(&self) {
        self.socket.shut_down();
    }
}

impl Drop for RemoteWriter {
    fn drop(&mut self) {
        self.end();
    }
}
