//! Which of a device's channels a stream's channels are heard on, at each frame of the device.

use rt::shm::MAX_STREAM_CHANNELS;

use crate::SEGMENTS;

const CHANNELS: usize = MAX_STREAM_CHANNELS as usize;

/// Channels of a device that streams can be heard on: the first ones.
pub const ROUTED_CHANNELS: usize = 128;

/// Some channels of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelSet(u128);

impl ChannelSet {
    /// Adds a channel, unless streams are not heard on it.
    pub fn insert(&mut self, channel: usize) {
        if channel < ROUTED_CHANNELS {
            self.0 |= 1 << channel;
        }
    }

    /// Returns whether a channel is one of them.
    #[must_use]
    pub fn has(self, channel: usize) -> bool {
        channel < ROUTED_CHANNELS && self.0 >> channel & 1 != 0
    }
}

/// The device's channels that each channel of a stream is heard on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Routes([ChannelSet; CHANNELS]);

impl Routes {
    /// Returns what a stream's channel is heard on.
    #[must_use]
    pub fn of(&self, channel: usize) -> ChannelSet {
        self.0.get(channel).copied().unwrap_or_default()
    }

    /// Sets what a stream's channel is heard on.
    pub fn set(&mut self, channel: usize, to: ChannelSet) {
        if let Some(reached) = self.0.get_mut(channel) {
            *reached = to;
        }
    }
}

impl FromIterator<(usize, usize)> for Routes {
    /// Returns the routes of these pairs: a stream's channel, a device's channel.
    fn from_iter<T: IntoIterator<Item = (usize, usize)>>(pairs: T) -> Self {
        let mut routes = Self::default();
        for (from, to) in pairs {
            if let Some(reached) = routes.0.get_mut(from) {
                reached.insert(to);
            }
        }
        routes
    }
}

/// From a device frame on: these routes, faded to from those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    start: u64,
    routes: Routes,
}

/// A stream's routes at each frame of its device. Changes come in the order of their frames, and
/// each fades to its end before the next begins.
#[derive(Debug, Clone)]
pub struct RouteLine {
    /// The first one holds since before anything that can be heard.
    changes: Vec<Change>,
    fade_frames: u32,
}

impl RouteLine {
    /// Returns the line of a stream that has these routes from the beginning. Not for a device's
    /// thread.
    #[must_use]
    pub fn new(routes: Routes, fade_frames: u32) -> Self {
        let mut changes = Vec::with_capacity(SEGMENTS);
        changes.push(Change { start: 0, routes });
        Self { changes, fade_frames }
    }

    /// Returns the newest routes, and from which device frame on they hold. Thread: cycle.
    #[must_use]
    pub fn newest(&self) -> (u64, Routes) {
        self.changes.last().map_or_else(Default::default, |last| (last.start, last.routes))
    }

    /// Returns whether another change can be noted. Thread: cycle.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.changes.len() < SEGMENTS
    }

    /// Returns the first frame at which a change may take effect. Thread: cycle.
    #[must_use]
    pub fn first_changeable(&self) -> u64 {
        match self.changes[..] {
            [.., _, last] => self.end(last),
            _ => 0,
        }
    }

    fn end(&self, change: Change) -> u64 {
        change.start.saturating_add(self.fade_frames.into())
    }

    /// Fades to other routes from device frame `at` on, at or after
    /// [`first_changeable`](Self::first_changeable). Thread: cycle.
    pub fn apply(&mut self, routes: Routes, at: u64) {
        let is_same = self.changes.last().is_some_and(|last| last.routes == routes);
        if !is_same && self.has_room() {
            self.changes.push(Change { start: at, routes });
        }
    }

    /// Returns the channels of the device that something of a stream's channel may be heard on in
    /// `frames` frames from device frame `first` on, and how loud that is. Thread: cycle.
    pub fn reached(
        &self,
        channel: usize,
        first: u64,
        frames: usize,
    ) -> impl Iterator<Item = (usize, RouteLevel<'_>)> {
        let end = first.saturating_add(frames as u64);
        let concerns = |(index, change): &(usize, &Change)| {
            let over = self.changes.get(index + 1).is_some_and(|next| self.end(*next) <= first);
            !over && (*index == 0 || change.start < end)
        };
        let concerned = self.changes.iter().enumerate().filter(concerns);
        let all = concerned.map(|(_, change)| change.routes.of(channel).0);
        let (mut any, every) =
            all.fold((0, u128::MAX), |(any, every), one| (any | one, every & one));
        core::iter::from_fn(move || {
            let to = any.trailing_zeros() as usize;
            // The lowest bit.
            any &= any.checked_sub(1)?;
            let is_full = every >> to & 1 != 0;
            Some((to, RouteLevel { line: (!is_full).then_some(self), channel, to }))
        })
    }

    fn level(&self, channel: usize, to: usize, frame: u64) -> f32 {
        let level = |routes: &Routes| f32::from(u8::from(routes.of(channel).has(to)));
        let now = self.changes.iter().rposition(|change| change.start <= frame).unwrap_or(0);
        let (before, now) = (self.changes.get(now.wrapping_sub(1)), self.changes.get(now));
        match (before, now) {
            (Some(before), Some(now)) => {
                let (from, to) = (level(&before.routes), level(&now.routes));
                match frame.checked_sub(now.start) {
                    Some(passed) if passed < u64::from(self.fade_frames) => {
                        from + (to - from) * ((passed + 1) as f32 / (self.fade_frames + 1) as f32)
                    }
                    _ => to,
                }
            }
            (None, Some(now)) => level(&now.routes),
            (_, None) => 0.0,
        }
    }

    /// Forgets what is needed for no frame from `frame` on. Thread: cycle.
    pub fn prune(&mut self, frame: u64) {
        let ended = |change: &&Change| self.end(**change) <= frame;
        let over = self.changes.iter().skip(1).take_while(ended).count();
        self.changes.drain(..over);
    }
}

/// How loud a stream's channel is on one of the device's.
#[derive(Debug, Clone, Copy)]
pub struct RouteLevel<'a> {
    /// `None`: full level in all frames that were asked for.
    line: Option<&'a RouteLine>,
    channel: usize,
    to: usize,
}

impl RouteLevel<'_> {
    /// Returns whether the channel is heard as it is, in all frames that were asked for.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.line.is_none()
    }

    /// Returns the level at a device frame. Thread: cycle.
    #[must_use]
    pub fn at(&self, frame: u64) -> f32 {
        self.line.map_or(1.0, |line| line.level(self.channel, self.to, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(pairs: &[(usize, usize)]) -> Routes {
        pairs.iter().copied().collect()
    }

    fn levels(line: &RouteLine, to: usize, first: u64, frames: usize) -> Vec<f32> {
        let level = line.reached(0, first, frames).find(|(reached, _)| *reached == to);
        let frames = (first..).take(frames);
        frames.map(|frame| level.map_or(0.0, |(_, level)| level.at(frame))).collect()
    }

    #[test]
    fn a_channel_fades_from_one_channel_of_the_device_to_another() {
        let mut line = RouteLine::new(routes(&[(0, 0)]), 3);
        assert!(line.reached(0, 0, 100).all(|(to, level)| to == 0 && level.is_full()));
        line.apply(routes(&[(0, 127)]), 10);
        assert_eq!(levels(&line, 0, 8, 7), [1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]);
        assert_eq!(levels(&line, 127, 8, 7), [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]);
        assert_eq!(line.reached(0, 0, 10).map(|(to, _)| to).collect::<Vec<_>>(), [0]);
        let after: Vec<(usize, bool)> =
            line.reached(0, 13, 10).map(|(to, level)| (to, level.is_full())).collect();
        assert_eq!(after, [(127, true)]);
        assert_eq!(line.reached(1, 0, 100).count(), 0, "another channel");
        line.prune(12);
        assert_eq!(levels(&line, 0, 12, 2), [0.25, 0.0], "its fade is needed");
        line.prune(13);
        assert_eq!((line.changes.len(), levels(&line, 127, 13, 1)), (1, vec![1.0]));
    }

    #[test]
    fn a_change_waits_for_the_end_of_the_fade_before() {
        let mut line = RouteLine::new(Routes::default(), 3);
        assert_eq!(line.first_changeable(), 0);
        line.apply(routes(&[(0, 1)]), 10);
        assert_eq!(line.first_changeable(), 13);
        line.apply(Routes::default(), 13);
        assert_eq!(levels(&line, 1, 12, 5), [0.75, 1.0 - 0.25, 0.5, 0.25, 0.0]);
        line.apply(Routes::default(), 16);
        assert_eq!(line.changes.len(), 3, "nothing changes");
    }

    #[test]
    fn there_is_no_route_beyond_what_exists() {
        let routes = routes(&[(0, ROUTED_CHANNELS), (CHANNELS, 0), (CHANNELS - 1, 3)]);
        assert_eq!((routes.of(0), routes.of(CHANNELS)), Default::default());
        let last = routes.of(CHANNELS - 1);
        assert_eq!([2, 3, ROUTED_CHANNELS].map(|to| last.has(to)), [false, true, false]);
    }
}
