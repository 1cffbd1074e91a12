//! One direction of one device, and its position.

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::time::Duration;

use alsa_sys as ffi;

use crate::configure::Setup;
use crate::definition::sound_server;
use crate::error::{Fault, OpenError};
use crate::messages;

/// The direction of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the device.
    Capture,
    /// To the device.
    Playback,
}

/// The position of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Frames that can be read, or written.
    pub avail_frames: u32,
    /// Time of that position, ns: when the device last reported it.
    pub at_ns: u64,
}

/// An open device, in one direction. Closed on drop.
#[derive(Debug)]
pub struct Pcm {
    pub(crate) handle: NonNull<ffi::snd_pcm_t>,
    pub(crate) direction: Direction,
    /// The current configuration.
    pub(crate) setup: Option<Setup>,
    /// Interleaved frames between the graph and a device whose memory cannot be mapped.
    pub(crate) staging: Vec<u8>,
    /// For each channel: how many of the last frames were silence. A device whose whole memory is
    /// silent continues to play silence.
    pub(crate) silent_frames: Vec<u32>,
    poll_fd: Option<i32>,
    status: Status,
}

/// A record of the library's, which it fills when a device is asked for its status.
#[derive(Debug)]
struct Status(NonNull<ffi::snd_pcm_status_t>);

impl Status {
    fn new() -> Option<Self> {
        let mut record = null_mut();
        // SAFETY: `record` outlives the call, which fills it with a new record or fails.
        let result = unsafe { ffi::snd_pcm_status_malloc(&mut record) };
        NonNull::new(record).filter(|_| result >= 0).map(Self)
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: the record came from the library, and this is the last use of it.
        unsafe { ffi::snd_pcm_status_free(self.0.as_ptr()) };
    }
}

// SAFETY: the library ties a handle to no thread; `Pcm` is its only owner, and `&mut` or `&` calls
// of one handle come from one thread at a time, since `Pcm` is not `Sync`.
unsafe impl Send for Pcm {}

/// How often it is looked whether other threads have ended, a millisecond apart.
const LOOKS: u32 = 100;

/// Tells the library that each handle is used by one thread at a time, so that it takes no lock in
/// a cycle (`LIBASOUND_THREAD_SAFE`). Does nothing if the process has a second thread already. One
/// that was joined is waited for: the kernel lists it for a moment longer.
pub fn disable_library_locks() {
    let is_alone =
        || std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    let becomes_alone = (0..LOOKS).any(|_| {
        let is_alone = is_alone();
        if !is_alone {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_alone
    });
    if becomes_alone {
        // SAFETY: this is the process's only thread, so no other one reads the environment
        // meanwhile.
        unsafe { std::env::set_var("LIBASOUND_THREAD_SAFE", "0") };
    }
}

/// A timestamp that differs by more than this from the current time is not of `CLOCK_MONOTONIC`.
const TIMESTAMP_RANGE_NS: u64 = 1_000_000_000;

impl Pcm {
    /// Opens the device that ALSA's configuration calls `name`, without waiting for one that is in
    /// use.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(name: &str, direction: Direction) -> Result<Self, OpenError> {
        // Not opened: its plug-in would wait for a server that may be the one that starts here.
        if let Some(kind) = sound_server(name) {
            return Err(OpenError::SoundServer(kind));
        }
        let name = CString::new(name).map_err(|_| OpenError::Missing)?;
        let status = Status::new().ok_or(OpenError::Other(libc::ENOMEM))?;
        let stream = match direction {
            Direction::Capture => ffi::SND_PCM_STREAM_CAPTURE,
            Direction::Playback => ffi::SND_PCM_STREAM_PLAYBACK,
        };
        messages::report();
        let mut handle = null_mut();
        // SAFETY: `handle` outlives the call, `name` is zero-terminated.
        let result = unsafe {
            ffi::snd_pcm_open(&mut handle, name.as_ptr(), stream, ffi::SND_PCM_NONBLOCK as i32)
        };
        let handle = NonNull::new(handle).filter(|_| result >= 0);
        let handle = handle.ok_or_else(|| OpenError::from_errno(-result))?;
        Ok(Self {
            handle,
            direction,
            setup: None,
            staging: Vec::new(),
            silent_frames: Vec::new(),
            poll_fd: None,
            status,
        })
    }

    /// Returns the direction.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the current configuration.
    #[must_use]
    pub fn setup(&self) -> Option<Setup> {
        self.setup
    }

    /// Returns the pointer for the library.
    pub(crate) fn raw(&self) -> *mut ffi::snd_pcm_t {
        self.handle.as_ptr()
    }

    /// Returns whether it is a device of the kernel, not one that the library builds from others.
    #[must_use]
    pub fn is_hardware(&self) -> bool {
        // SAFETY: the handle is open.
        (unsafe { ffi::snd_pcm_type(self.raw()) }) == ffi::SND_PCM_TYPE_HW
    }

    /// Returns the numbers of its card and device; `None` if it belongs to no card.
    #[must_use]
    pub fn card_and_device(&self) -> Option<(u32, u32)> {
        let mut info = null_mut();
        // SAFETY: `info` outlives the call, which fills it with a new record or fails.
        if unsafe { ffi::snd_pcm_info_malloc(&mut info) } < 0 {
            return None;
        }
        // SAFETY: handle and record are valid, and the record is freed once, after its last use.
        let (result, card, device) = unsafe {
            let result = ffi::snd_pcm_info(self.raw(), info);
            let found = (ffi::snd_pcm_info_get_card(info), ffi::snd_pcm_info_get_device(info));
            ffi::snd_pcm_info_free(info);
            (result, found.0, found.1)
        };
        u32::try_from(card).ok().filter(|_| result >= 0).map(|card| (card, device))
    }

    /// Links `other` with this device, so that both start and stop at the same sample. Not all
    /// devices can be linked.
    ///
    /// # Errors
    /// [`Fault`]: they start one after the other.
    pub fn link(&self, other: &Self) -> Result<(), Fault> {
        // SAFETY: both handles are open.
        check(unsafe { ffi::snd_pcm_link(self.raw(), other.raw()) }.into()).map(drop)
    }

    /// Undoes [`link`](Self::link), while both go on. Thread: cycle.
    pub fn unlink(&self) {
        // SAFETY: the handle is open. The call fails for a device that is not linked.
        let _ = unsafe { ffi::snd_pcm_unlink(self.raw()) };
    }

    /// Prepares it to be filled and started. Thread: cycle.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn prepare(&mut self) -> Result<(), Fault> {
        // SAFETY: the handle is open.
        check(unsafe { ffi::snd_pcm_prepare(self.raw()) }.into())?;
        // The device begins at the start of its memory again.
        self.silent_frames.fill(0);
        Ok(())
    }

    /// Starts it, and the devices that are linked with it. Thread: cycle.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn start(&mut self) -> Result<(), Fault> {
        // SAFETY: the handle is open.
        check(unsafe { ffi::snd_pcm_start(self.raw()) }.into()).map(drop)
    }

    /// Stops it at once, and the devices that are linked with it. Thread: cycle.
    pub fn stop(&mut self) {
        // SAFETY: the handle is open. The call fails for a device that is not running, which has
        // nothing to stop.
        let _ = unsafe { ffi::snd_pcm_drop(self.raw()) };
    }

    /// Takes back the last `frames` frames that were written; returns how many the device has given
    /// back, which may be none. Thread: cycle.
    pub fn rewind(&mut self, frames: u32) -> u32 {
        // SAFETY: the handle is open.
        let taken = unsafe { ffi::snd_pcm_rewind(self.raw(), frames.into()) };
        // What was counted as silent may be written again.
        self.silent_frames.fill(0);
        // Negative: it gives nothing back.
        u32::try_from(taken).map_or(0, |taken| taken.min(frames))
    }

    /// Stores the descriptor that becomes ready with the device, once it is configured.
    pub(crate) fn note_poll_fd(&mut self) {
        let mut fds = [libc::pollfd { fd: -1, events: 0, revents: 0 }; 1];
        // SAFETY: the handle is open, the array has room for the one record that is asked for.
        let count = unsafe { ffi::snd_pcm_poll_descriptors(self.raw(), fds.as_mut_ptr(), 1) };
        self.poll_fd = (count == 1).then_some(fds[0].fd);
    }

    /// Sleeps until the device is ready as configured, has a fault, or `deadline_ns` has passed;
    /// returns false for the last. Thread: cycle.
    #[must_use]
    pub fn sleep_until_ready(&self, deadline_ns: u64) -> bool {
        let Some(fd) = self.poll_fd else {
            sys::clock::sleep_until(deadline_ns);
            return false;
        };
        // SAFETY: the descriptor belongs to the handle, which is open as long as `self` is
        // borrowed.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let events = match self.direction {
            Direction::Capture => rustix::event::PollFlags::IN,
            Direction::Playback => rustix::event::PollFlags::OUT,
        };
        sys::poll::wait_for(fd, events, Some(deadline_ns)).unwrap_or(true)
    }

    /// Checks that it runs. Thread: cycle.
    ///
    /// # Errors
    /// [`Fault`]: why it does not run.
    pub fn check_runs(&self) -> Result<(), Fault> {
        // SAFETY: the handle is open.
        match unsafe { ffi::snd_pcm_state(self.raw()) } {
            ffi::SND_PCM_STATE_RUNNING => Ok(()),
            ffi::SND_PCM_STATE_XRUN => Err(Fault::Xrun),
            ffi::SND_PCM_STATE_SUSPENDED => Err(Fault::Suspended),
            ffi::SND_PCM_STATE_DISCONNECTED => Err(Fault::Gone),
            _ => Err(Fault::Stalled),
        }
    }

    /// Returns when it was started or has stopped, whichever was last: `CLOCK_MONOTONIC` ns, or a
    /// time of another clock if the device has no timestamps of that one. `None`: it does not say.
    /// Thread: cycle.
    #[must_use]
    pub fn triggered_ns(&self) -> Option<u64> {
        let record = self.status.0.as_ptr();
        // SAFETY: the handle is open; the record is the library's own and used by this call alone.
        check(unsafe { ffi::snd_pcm_status(self.raw(), record) }.into()).ok()?;
        let mut stamp = ffi::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the record was filled, and the result outlives the call.
        unsafe { ffi::snd_pcm_status_get_trigger_htstamp(record, &mut stamp) };
        Some(ns(stamp))
    }

    /// Returns the position: the current one if `ask` is set, or else that of the last interrupt.
    /// Thread: cycle.
    ///
    /// # Errors
    /// [`Fault`]: why it does not run.
    pub fn position(&self, ask: bool) -> Result<Position, Fault> {
        self.check_runs()?;
        // SAFETY: the handle is open.
        let avail = check(unsafe {
            if ask { ffi::snd_pcm_avail(self.raw()) } else { ffi::snd_pcm_avail_update(self.raw()) }
        })?;
        let (mut stamped, mut stamp) = (0, ffi::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: the handle is open, both results outlive the call.
        let result = unsafe { ffi::snd_pcm_htimestamp(self.raw(), &mut stamped, &mut stamp) };
        let now_ns = sys::clock::now_ns();
        let stamp_ns = ns(stamp);
        let is_monotonic =
            result >= 0 && stamp_ns <= now_ns && stamp_ns + TIMESTAMP_RANGE_NS > now_ns;
        let (avail, at_ns) =
            if is_monotonic { (stamped as i64, stamp_ns) } else { (avail, now_ns) };
        Ok(Position { avail_frames: u32::try_from(avail).unwrap_or(0), at_ns })
    }
}

impl Drop for Pcm {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and this is the last use of it.
        unsafe { ffi::snd_pcm_close(self.raw()) };
    }
}

/// Returns a time of the library's in nanoseconds.
fn ns(time: ffi::timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000) + u64::try_from(time.tv_nsec).unwrap_or_default()
}

/// Converts a result of the library: negative is an error.
pub(crate) fn check(result: i64) -> Result<i64, Fault> {
    if result < 0 { Err(Fault::from_result(result)) } else { Ok(result) }
}
