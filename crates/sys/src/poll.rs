//! Waits for many descriptors at once, and wakes the thread that waits.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock;

/// Events fetched by one system call; more stay queued for the next.
const BATCH: usize = 64;

/// What to wait for on a descriptor. Its end and its errors are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Something to read, or a connection to accept.
    Readable,
    /// Room to write.
    Writable,
    /// Either.
    ReadableOrWritable,
    /// Only its end.
    Closed,
    /// Written to since that was last reported, which makes it readable: an eventfd that others
    /// have, and may fill, empty or make block at any time, so that this process never reads it.
    Written,
}

/// One descriptor that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The token under which the descriptor was added.
    pub token: u64,
    /// A read will not block (it may return the end or an error).
    pub readable: bool,
    /// A write will not block.
    pub writable: bool,
    /// The other end is gone, or the descriptor has an error.
    pub closed: bool,
}

/// The token of the timer, which no descriptor may have.
const TIMER: u64 = u64::MAX;

/// An epoll instance, level-triggered but for [`Interest::Written`]. Any thread may add and remove;
/// one waits.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    /// Ends waits at their deadlines: epoll_wait(2) counts in milliseconds and rounds up,
    /// epoll_pwait2(2) is missing in older kernels, and sandboxes that do not know it end a program
    /// that calls it.
    timer: OwnedFd,
    /// When the timer fires; 0: never. Only the waiting thread uses it.
    armed_ns: AtomicU64,
}

impl Poller {
    /// Creates an empty set.
    ///
    /// # Errors
    /// The errors of `epoll_create1`: no descriptor or memory left.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        Ok(Self { epoll, timer, armed_ns: AtomicU64::new(0) })
    }

    /// Starts to watch `fd`; its events carry `token`, which must not be `u64::MAX`. The caller
    /// must remove it before closing it: a duplicate that is still open elsewhere would keep
    /// reporting.
    ///
    /// # Errors
    /// Errors of `epoll_ctl`: watched already, or of a kind that is always ready (a plain file).
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), interest.flags())?)
    }

    /// Same as [`add`](Self::add), for a descriptor that another library owns. It must be removed
    /// with [`remove_foreign`](Self::remove_foreign) before the library closes it, or stay open as
    /// long as this poller.
    ///
    /// # Errors
    /// The errors of `epoll_ctl`: `EBADF` if it is no descriptor.
    pub fn add_foreign(&self, descriptor: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        let event = libc::epoll_event { events: interest.flags().bits(), u64: token };
        self.control_foreign(libc::EPOLL_CTL_ADD, descriptor, event)
    }

    /// Stops watching a descriptor that another library owns.
    ///
    /// # Errors
    /// `NotFound` if it is not watched, `EBADF` if it is no descriptor.
    pub fn remove_foreign(&self, descriptor: RawFd) -> io::Result<()> {
        self.control_foreign(
            libc::EPOLL_CTL_DEL,
            descriptor,
            libc::epoll_event { events: 0, u64: 0 },
        )
    }

    fn control_foreign(
        &self,
        operation: i32,
        descriptor: RawFd,
        mut event: libc::epoll_event,
    ) -> io::Result<()> {
        // SAFETY: the kernel checks both descriptors and reads the event, which lives through the
        // call.
        let result = unsafe {
            libc::epoll_ctl(self.as_fd().as_raw_fd(), operation, descriptor, &raw mut event)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Changes token and interest of `fd`.
    ///
    /// # Errors
    /// `NotFound` if it is not watched.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), interest.flags())?)
    }

    /// Stops watching `fd`.
    ///
    /// # Errors
    /// `NotFound` if it is not watched.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Replaces the content of `events` by what is ready, waiting for the first until
    /// `deadline_ns`. An empty result means that the deadline has passed.
    ///
    /// # Errors
    /// The errors of `epoll_wait` and `timerfd_settime`; not an interruption.
    pub fn wait(&self, events: &mut Vec<Event>, deadline_ns: Option<u64>) -> io::Result<()> {
        events.clear();
        let at_once = clock::has_passed(deadline_ns).then(|| clock::timespec(0));
        if at_once.is_none() {
            self.arm(deadline_ns)?;
        }
        let mut batch = [MaybeUninit::<epoll::Event>::uninit(); BATCH];
        loop {
            match epoll::wait(&self.epoll, &mut batch, at_once.as_ref()) {
                Ok((ready, _)) => {
                    events.extend(
                        ready.iter().map(Event::from_epoll).filter(|event| event.token != TIMER),
                    );
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Arms the timer for `deadline_ns`; it is not ready before, even if it has fired earlier.
    fn arm(&self, deadline_ns: Option<u64>) -> io::Result<()> {
        // To the kernel, zero means never. A deadline of zero has passed.
        let deadline_ns = deadline_ns.unwrap_or(0);
        // Relaxed, here and below: only this thread uses it.
        if self.armed_ns.load(Ordering::Relaxed) == deadline_ns {
            return Ok(());
        }
        let once =
            Itimerspec { it_interval: clock::timespec(0), it_value: clock::timespec(deadline_ns) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.armed_ns.store(deadline_ns, Ordering::Relaxed);
        Ok(())
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        EventFlags::RDHUP
            | match self {
                Self::Readable => EventFlags::IN,
                Self::Writable => EventFlags::OUT,
                Self::ReadableOrWritable => EventFlags::IN | EventFlags::OUT,
                Self::Closed => EventFlags::empty(),
                Self::Written => EventFlags::IN | EventFlags::ET,
            }
    }
}

impl Event {
    fn from_epoll(event: &epoll::Event) -> Self {
        // Copied first: the kernel's record is packed.
        let (flags, data) = (event.flags, event.data);
        Self {
            token: data.u64(),
            readable: flags.contains(EventFlags::IN),
            writable: flags.contains(EventFlags::OUT),
            closed: flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
        }
    }
}

/// An eventfd, with which any thread wakes the one that polls it.
#[derive(Debug)]
pub struct Waker {
    eventfd: OwnedFd,
}

impl Waker {
    /// Creates a waker that has not been woken.
    ///
    /// # Errors
    /// The errors of `eventfd2`: no descriptor or memory left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { eventfd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Makes it readable. Several calls before the next [`Waker::reset`] count as one.
    pub fn wake(&self) {
        // The only failure is WOULDBLOCK at a count of 2^64 - 2, which is readable already.
        let _ = retry_on_intr(|| rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes()));
    }

    /// Makes it unreadable; returns whether it was woken since the last time.
    pub fn reset(&self) -> bool {
        retry_on_intr(|| rustix::io::read(&self.eventfd, &mut [0; 8])).is_ok()
    }
}

impl From<Waker> for OwnedFd {
    fn from(waker: Waker) -> Self {
        waker.eventfd
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

/// Waits until `fd` shows one of `flags` or its end; returns false once the deadline has passed.
///
/// # Errors
/// The errors of `ppoll`; not an interruption.
pub fn wait_for(
    fd: BorrowedFd<'_>,
    flags: PollFlags,
    deadline_ns: Option<u64>,
) -> io::Result<bool> {
    loop {
        let timeout = clock::remaining(deadline_ns);
        match rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, flags)], timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Waits until the other end of `fd` is gone (a pipe's reader, a terminal); returns false once the
/// deadline has passed. A plain file has no other end.
///
/// # Errors
/// The errors of `ppoll`; not an interruption.
pub fn wait_for_end(fd: impl AsFd, deadline_ns: u64) -> io::Result<bool> {
    wait_for(fd.as_fd(), PollFlags::empty(), Some(deadline_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON_NS: u64 = 5_000_000;

    #[test]
    fn a_waker_reports_its_token_until_it_is_reset() {
        let (poller, waker, mut events) =
            (Poller::new().unwrap(), Waker::new().unwrap(), Vec::new());
        poller.add(&waker, 7, Interest::Readable).unwrap();
        waker.wake();
        waker.wake();
        for _ in 0..2 {
            poller.wait(&mut events, None).unwrap();
            assert_eq!(
                events,
                [Event { token: 7, readable: true, writable: false, closed: false }]
            );
        }
        assert!(waker.reset());
        assert!(!waker.reset());
        poller.wait(&mut events, Some(clock::now_ns() + SOON_NS)).unwrap();
        assert_eq!(events, []);
    }

    #[test]
    fn a_deadline_is_kept_to_less_than_a_millisecond() {
        const WAIT_NS: u64 = 100_000;
        let (poller, mut events) = (Poller::new().unwrap(), Vec::new());
        let waited_ns = || {
            let begin_ns = clock::now_ns();
            poller.wait(&mut events, Some(begin_ns + WAIT_NS)).unwrap();
            clock::now_ns() - begin_ns
        };
        // Other threads may take the CPU, but not each time.
        let shortest_ns = std::iter::repeat_with(waited_ns).take(500).min().unwrap();
        assert!((WAIT_NS..1_000_000).contains(&shortest_ns), "{shortest_ns} ns");
    }

    #[test]
    fn a_deadline_that_has_passed_ends_no_later_wait() {
        let (poller, mut events) = (Poller::new().unwrap(), Vec::new());
        let passed_ns = clock::now_ns() + SOON_NS;
        poller.wait(&mut events, Some(passed_ns)).unwrap();
        poller.wait(&mut events, Some(passed_ns)).unwrap();
        let next_ns = clock::now_ns() + SOON_NS;
        poller.wait(&mut events, Some(next_ns)).unwrap();
        assert_eq!(events, []);
        assert!(clock::now_ns() >= next_ns);
    }

    #[test]
    fn a_foreign_descriptor_is_watched_until_it_is_removed() {
        let (poller, waker, mut events) =
            (Poller::new().unwrap(), Waker::new().unwrap(), Vec::new());
        let descriptor = waker.as_fd().as_raw_fd();
        waker.wake();
        poller.add_foreign(descriptor, 3, Interest::Closed).unwrap();
        poller.wait(&mut events, Some(0)).unwrap();
        assert_eq!(events, [], "it is readable, but that was not requested");
        poller.remove_foreign(descriptor).unwrap();
        poller.add_foreign(descriptor, 4, Interest::Readable).unwrap();
        poller.wait(&mut events, None).unwrap();
        assert_eq!(events.iter().map(|event| event.token).collect::<Vec<_>>(), [4]);
        poller.remove_foreign(descriptor).unwrap();
        assert!(poller.remove_foreign(descriptor).is_err());
    }

    #[test]
    fn a_waker_ends_the_wait_of_another_thread() {
        let (poller, waker) = (Poller::new().unwrap(), Waker::new().unwrap());
        poller.add(&waker, 1, Interest::Readable).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut events = Vec::new();
                poller.wait(&mut events, None).unwrap();
                events.len()
            });
            waker.wake();
            assert_eq!(waiting.join().unwrap(), 1);
        });
    }

    #[test]
    fn modify_replaces_token_and_interest() {
        let (poller, waker, mut events) =
            (Poller::new().unwrap(), Waker::new().unwrap(), Vec::new());
        poller.add(&waker, 1, Interest::Readable).unwrap();
        poller.modify(&waker, 2, Interest::Writable).unwrap();
        poller.wait(&mut events, None).unwrap();
        assert_eq!(events, [Event { token: 2, readable: false, writable: true, closed: false }]);
        poller.remove(&waker).unwrap();
        poller.wait(&mut events, Some(0)).unwrap();
        assert_eq!(events, []);
        assert_eq!(poller.remove(&waker).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn each_writing_is_reported_once_though_nothing_is_read() {
        let (poller, waker, mut events) =
            (Poller::new().unwrap(), Waker::new().unwrap(), Vec::new());
        poller.add(&waker, 5, Interest::Written).unwrap();
        for _ in 0..3 {
            poller.wait(&mut events, Some(0)).unwrap();
            assert_eq!(events, []);
            waker.wake();
            poller.wait(&mut events, Some(0)).unwrap();
            assert_eq!(
                events,
                [Event { token: 5, readable: true, writable: false, closed: false }]
            );
        }
    }

    #[test]
    fn the_end_of_a_pipe_is_reported_without_asking() {
        let (reader, writer) = io::pipe().unwrap();
        let (poller, mut events) = (Poller::new().unwrap(), Vec::new());
        poller.add(&reader, 3, Interest::Closed).unwrap();
        drop(writer);
        poller.wait(&mut events, None).unwrap();
        assert_eq!(events, [Event { token: 3, readable: false, writable: false, closed: true }]);
    }

    #[test]
    fn a_wait_for_the_end_lasts_until_the_reader_has_gone() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(!wait_for_end(&writer, clock::now_ns() + SOON_NS).unwrap());
        drop(reader);
        assert!(wait_for_end(&writer, u64::MAX).unwrap());
    }

    #[test]
    fn more_events_than_one_batch_are_all_reported_in_turn() {
        let poller = Poller::new().unwrap();
        let wakers: Vec<_> = (0..BATCH as u64 + 10)
            .map(|token| {
                let waker = Waker::new().unwrap();
                waker.wake();
                poller.add(&waker, token, Interest::Readable).unwrap();
                waker
            })
            .collect();
        let mut events = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < wakers.len() {
            poller.wait(&mut events, None).unwrap();
            for event in &events {
                assert!(wakers[event.token as usize].reset());
                assert!(seen.insert(event.token));
            }
        }
    }
}
