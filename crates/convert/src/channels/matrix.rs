//! How the channels of one map are heard on those of another.

use super::position::Side;
use super::{ChannelMap, ChannelPosition as P};
use crate::planes::Planes;

/// What becomes of channels whose positions the other map lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mixing {
    /// They are mixed into the nearest channels, and every channel of the stream plays something,
    /// as far as there is something for its side; but for low-frequency effects, which are played
    /// only where both maps have them, or in mono. PulseAudio's default.
    #[default]
    Mixed,
    /// They are silent: only equal positions are connected (PulseAudio's stream flag
    /// `NO_REMIX_CHANNELS`).
    ByPosition,
    /// Positions mean nothing: the first channel is connected to the first, and so on (PulseAudio's
    /// stream flag `NO_REMAP_CHANNELS`).
    ByNumber,
}

/// A factor from each channel of a source to each channel of a sink.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    sources: usize,
    /// A row for each channel of the sink.
    rows: Vec<Vec<f32>>,
}

impl Matrix {
    /// Returns the matrix from the channels of `source` to those of `sink`. No row sums up to more
    /// than 1, so the sink clips only if the source does. Allocates.
    #[must_use]
    pub fn new(source: &ChannelMap, sink: &ChannelMap, mixing: Mixing) -> Self {
        let sources = source.channels();
        let rows = match mixing {
            // Also where a position that is there twice, or mono, would be mixed into others.
            Mixing::Mixed if source == sink => rows(sources, sink, |from, to| from == to),
            Mixing::Mixed => Mix::new(source.positions(), sink.positions()).rows(),
            Mixing::ByPosition => {
                rows(sources, sink, |from, to| source.positions()[from] == sink.positions()[to])
            }
            Mixing::ByNumber => rows(sources, sink, |from, to| from == to),
        };
        Self { sources, rows }
    }

    /// Returns the matrix that has the effect of this one on what `first` makes. Allocates.
    #[must_use]
    pub fn after(&self, first: &Self) -> Self {
        let factor = |row: &[f32], source: usize| {
            row.iter().zip(&first.rows).map(|(factor, first)| factor * first[source]).sum()
        };
        let row = |row: &Vec<f32>| (0..first.sources).map(|at| factor(row, at)).collect();
        Self { sources: first.sources, rows: self.rows.iter().map(row).collect() }
    }

    /// Returns the factors of one channel of the sink, one for each channel of the source.
    #[must_use]
    pub fn row(&self, sink: usize) -> &[f32] {
        &self.rows[sink]
    }

    /// Returns the number of channels that it makes.
    #[must_use]
    pub fn sinks(&self) -> usize {
        self.rows.len()
    }

    /// Whether the channels stay what they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.sources == self.sinks()
            && self.rows.iter().enumerate().all(|(sink, row)| {
                let one_at = |(source, factor): (usize, &f32)| {
                    *factor == if source == sink { 1.0 } else { 0.0 }
                };
                row.iter().enumerate().all(one_at)
            })
    }

    /// Mixes a slice for each channel of the source into `into`, which has room for them.
    pub(crate) fn mix(&self, planes: &[&[f32]], into: &mut Planes) {
        let frames = planes.first().map_or(0, |plane| plane.len());
        for (row, mixed) in self.rows.iter().zip(into.iter_mut()) {
            let mixed = &mut mixed[..frames];
            let mut is_empty = true;
            for (factor, plane) in row.iter().zip(planes).filter(|(factor, _)| **factor != 0.0) {
                let samples = mixed.iter_mut().zip(*plane);
                if !is_empty {
                    samples.for_each(|(sum, sample)| *sum += factor * sample);
                } else if *factor == 1.0 {
                    mixed.copy_from_slice(plane);
                } else {
                    samples.for_each(|(first, sample)| *first = factor * sample);
                }
                is_empty = false;
            }
            if is_empty {
                mixed.fill(0.0);
            }
        }
    }
}

/// Returns rows that connect channels at full level or not at all.
fn rows(
    sources: usize,
    sink: &ChannelMap,
    is_connected: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<f32>> {
    let factor = |from, to| if is_connected(from, to) { 1.0 } else { 0.0 };
    (0..sink.channels()).map(|to| (0..sources).map(|from| factor(from, to)).collect()).collect()
}

/// What a left or right channel that nothing else plays adds to the channels of its side.
const SIDE_SHARE: f32 = 0.1;
/// What a center channel adds to other center channels.
const CENTER_SHARE: f32 = 0.1;
/// What a center channel adds to left and right channels if there is no center.
const CENTER_TO_SIDES: f32 = 0.5;

/// Builds a matrix. The sink's channels are visited in order, because earlier connections decide
/// what later ones play.
struct Mix<'a> {
    source: &'a [P],
    sink: &'a [P],
    rows: Vec<Vec<f32>>,
    /// Whether a channel of the source is heard anywhere.
    is_heard: Vec<bool>,
}

impl<'a> Mix<'a> {
    fn new(source: &'a [P], sink: &'a [P]) -> Self {
        let rows = vec![vec![0.0; source.len()]; sink.len()];
        Self { source, sink, rows, is_heard: vec![false; source.len()] }
    }

    fn rows(mut self) -> Vec<Vec<f32>> {
        for to in 0..self.sink.len() {
            self.connect(to);
        }
        let unheard: Vec<usize> = self.sources(|from| !self.is_heard[from]);
        self.spread_center(&unheard);
        self.spread_side(&unheard, Side::Left);
        self.spread_side(&unheard, Side::Right);
        for row in &mut self.rows {
            let sum: f32 = row.iter().sum();
            if sum > 1.0 {
                row.iter_mut().for_each(|factor| *factor /= sum);
            }
        }
        self.rows
    }

    /// Returns the channels of the source that satisfy a condition.
    fn sources(&self, condition: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.source.len()).filter(|from| condition(*from)).collect()
    }

    /// Connects a channel of the sink: to its equals, and to mono; or else to all that there is for
    /// its side.
    fn connect(&mut self, to: usize) {
        let position = self.sink[to];
        let equals = self.sources(|from| {
            self.source[from] == position || (self.source[from] == P::Mono && position != P::Lfe)
        });
        if position == P::Mono {
            let all = self.sources(|_| true);
            self.average(to, &all);
        }
        for from in &equals {
            self.rows[to][*from] = 1.0;
            self.is_heard[*from] = true;
        }
        if equals.is_empty() && position != P::Mono {
            let substitutes = self.substitutes(position);
            self.average(to, &substitutes);
        }
    }

    /// Returns the channels of the source that a channel without an equal plays.
    fn substitutes(&self, position: P) -> Vec<usize> {
        let on = |side| self.sources(|from| self.source[from].side() == Some(side));
        match position.side() {
            Some(Side::Center) => {
                let center = on(Side::Center);
                let sides = || {
                    self.sources(|from| {
                        matches!(self.source[from].side(), Some(Side::Left | Side::Right))
                    })
                };
                if center.is_empty() { sides() } else { center }
            }
            Some(side) => {
                // Side and rear speakers stand in for each other, as long as the other one's
                // channel is not heard elsewhere.
                let counterpart = self.sources(|from| {
                    Some(self.source[from]) == counterpart(position) && !self.is_heard[from]
                });
                if counterpart.is_empty() { on(side) } else { counterpart }
            }
            None => Vec::new(),
        }
    }

    /// Makes a channel of the sink the average of channels of the source.
    fn average(&mut self, to: usize, sources: &[usize]) {
        for from in sources {
            self.rows[to][*from] = 1.0 / sources.len() as f32;
            self.is_heard[*from] = true;
        }
    }

    /// Adds center channels that are not heard yet to the center channels of the sink, or else to
    /// those on both sides.
    fn spread_center(&mut self, unheard: &[usize]) {
        let center: Vec<usize> =
            unheard.iter().copied().filter(|from| self.is_on(*from, Side::Center)).collect();
        if center.is_empty() {
            return;
        }
        if self.sink.iter().any(|position| position.side() == Some(Side::Center)) {
            return self.add_to(Side::Center, &center, CENTER_SHARE);
        }
        for to in 0..self.sink.len() {
            let position = self.sink[to];
            if !matches!(position.side(), Some(Side::Left | Side::Right)) {
                continue;
            }
            let near: Vec<usize> = center
                .iter()
                .copied()
                .filter(|from| {
                    let depth = Depth::of(self.source[*from]);
                    depth == Depth::of(position) || !self.has_sides_at(depth)
                })
                .collect();
            for from in &near {
                self.rows[to][*from] = CENTER_TO_SIDES / near.len() as f32;
            }
        }
    }

    /// Adds channels of one side that are not heard yet to all channels of that side.
    fn spread_side(&mut self, unheard: &[usize], side: Side) {
        let unheard: Vec<usize> =
            unheard.iter().copied().filter(|from| self.is_on(*from, side)).collect();
        if !unheard.is_empty() {
            self.add_to(side, &unheard, SIDE_SHARE);
        }
    }

    /// Adds the average of `sources` to all channels of the sink on a side, with a share of what
    /// they play then.
    fn add_to(&mut self, side: Side, sources: &[usize], share: f32) {
        for (row, position) in self.rows.iter_mut().zip(self.sink) {
            if position.side() == Some(side) {
                row.iter_mut().for_each(|factor| *factor *= 1.0 - share);
                for from in sources {
                    row[*from] = share / sources.len() as f32;
                }
            }
        }
    }

    fn is_on(&self, from: usize, side: Side) -> bool {
        self.source[from].side() == Some(side)
    }

    /// Whether the sink has channels on the left or the right at a depth.
    fn has_sides_at(&self, depth: Depth) -> bool {
        let is_side = |position: &P| matches!(position.side(), Some(Side::Left | Side::Right));
        self.sink.iter().any(|position| is_side(position) && Depth::of(*position) == depth)
    }
}

/// Returns the side speaker for a rear one, and the other way round.
fn counterpart(position: P) -> Option<P> {
    match position {
        P::RearLeft => Some(P::SideLeft),
        P::RearRight => Some(P::SideRight),
        P::SideLeft => Some(P::RearLeft),
        P::SideRight => Some(P::RearRight),
        _ => None,
    }
}

/// Before the listener, behind, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Front,
    Middle,
    Rear,
}

impl Depth {
    fn of(position: P) -> Self {
        match position {
            P::FrontLeft
            | P::FrontRight
            | P::FrontCenter
            | P::FrontLeftOfCenter
            | P::FrontRightOfCenter
            | P::TopFrontLeft
            | P::TopFrontRight
            | P::TopFrontCenter => Self::Front,
            P::RearLeft
            | P::RearRight
            | P::RearCenter
            | P::TopRearLeft
            | P::TopRearRight
            | P::TopRearCenter => Self::Rear,
            P::Mono | P::Lfe | P::SideLeft | P::SideRight | P::TopCenter | P::Aux(_) => {
                Self::Middle
            }
        }
    }
}
