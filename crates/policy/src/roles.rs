//! What streams do to each other: a phone call holds music.

use std::collections::BTreeMap;
use std::fmt;

use crate::identity::Identity;
use crate::rules::{Reaction, Rules};

/// A stream that plays, as others are concerned.
#[derive(Debug, Clone, Copy)]
pub struct Playing<'a> {
    /// Its number.
    pub number: u32,
    /// The number of its device.
    pub device: u32,
    /// Who it is.
    pub identity: &'a Identity,
    /// Its program plays it, and it is not muted.
    pub is_heard: bool,
}

/// What is done to a stream by another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interaction {
    /// It is silent, and its program is asked to hold it.
    Held {
        /// The number of the stream that holds it.
        by: u32,
        /// The number of the rule's line; `None`: the default one.
        line: Option<usize>,
    },
    /// It is quieter.
    Ducked {
        /// The number of the stream because of which it is.
        by: u32,
        /// By how much, dB; 0 or less.
        decibels: f32,
        /// The number of the rule's line.
        line: usize,
    },
}

impl Interaction {
    /// Returns the stream that does it.
    #[must_use]
    pub fn by(&self) -> u32 {
        match *self {
            Self::Held { by, .. } | Self::Ducked { by, .. } => by,
        }
    }

    /// Returns the factor of its samples.
    #[must_use]
    pub fn factor(&self) -> f32 {
        match *self {
            Self::Held { .. } => 0.0,
            Self::Ducked { decibels, .. } => 10_f32.powf(decibels / 20.0),
        }
    }
}

impl fmt::Display for Interaction {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { by, line: None } => {
                write!(to, "held while sink input {by} plays: a phone call holds music and video")
            }
            Self::Held { by, line: Some(line) } => {
                write!(to, "held while sink input {by} plays: line {line} of the rules says so")
            }
            Self::Ducked { by, decibels, line } => write!(
                to,
                "{decibels} dB while sink input {by} plays: line {line} of the rules says so"
            ),
        }
    }
}

/// Decides what streams do to each other, by their roles. A stream does something to those of the
/// same device; the one that came first, which has the lowest number, does it first. One that is
/// held does nothing to others, so two cannot hold each other. Without a rule, streams with the
/// role `phone` hold those with `music` and `video`, as with PulseAudio.
#[must_use]
pub fn interactions(streams: &[Playing<'_>], rules: &Rules) -> BTreeMap<u32, Interaction> {
    let mut done: BTreeMap<u32, Interaction> = BTreeMap::new();
    let mut heard: Vec<&Playing<'_>> = streams.iter().filter(|stream| stream.is_heard).collect();
    heard.sort_by_key(|stream| stream.number);
    let phone = phone();
    let is_held = |done: &BTreeMap<u32, Interaction>, number| {
        matches!(done.get(&number), Some(Interaction::Held { .. }))
    };
    for stream in heard {
        if is_held(&done, stream.number) {
            continue;
        }
        let others = || {
            let of_device = streams.iter().filter(|other| other.device == stream.device);
            of_device.filter(|other| other.number != stream.number)
        };
        let by = stream.number;
        let holds = rules.holds(stream.identity).map(|(holds, line)| (holds, Some(line)));
        let is_phone = stream.identity.role.as_deref() == Some("phone");
        if let Some((holds, line)) = holds.or_else(|| is_phone.then_some((&phone, None))) {
            for other in others().filter(|other| holds.concerns(other.identity)) {
                if !is_held(&done, other.number) {
                    done.insert(other.number, Interaction::Held { by, line });
                }
            }
        }
        if let Some((ducks, line)) = rules.ducks(stream.identity) {
            let decibels = ducks.decibels;
            for other in others().filter(|other| ducks.concerns(other.identity)) {
                let is_less = match done.get(&other.number) {
                    None => true,
                    Some(Interaction::Ducked { decibels: before, .. }) => decibels < *before,
                    Some(Interaction::Held { .. }) => false,
                };
                if is_less {
                    done.insert(other.number, Interaction::Ducked { by, decibels, line });
                }
            }
        }
    }
    done
}

/// What a phone call does without a rule.
fn phone() -> Reaction {
    let roles = ["music", "video"].map(str::to_owned).to_vec();
    Reaction { roles, decibels: 0.0 }
}

/// Returns who a stream with a role is, for tests.
#[cfg(test)]
pub(crate) fn with_role(role: Option<&str>) -> Identity {
    Identity { role: role.map(str::to_owned), ..Identity::unknown(crate::Direction::Playback) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams from 1 on, by role; a `!` before it: it is not heard. All are on device 0.
    fn done(roles: &[&str], rules: &str) -> BTreeMap<u32, Interaction> {
        let known: Vec<(bool, Identity)> = roles
            .iter()
            .map(|role| (!role.starts_with('!'), with_role(Some(role.trim_start_matches('!')))))
            .collect();
        let streams: Vec<Playing<'_>> = (1..)
            .zip(&known)
            .map(|(number, (is_heard, identity))| Playing {
                number,
                device: 0,
                identity,
                is_heard: *is_heard,
            })
            .collect();
        let (rules, complaints) = Rules::parse(rules);
        assert_eq!(complaints, []);
        interactions(&streams, &rules)
    }

    fn held(by: u32, line: Option<usize>) -> Interaction {
        Interaction::Held { by, line }
    }

    #[test]
    fn a_phone_call_that_is_heard_holds_music_and_video() {
        let all = done(&["music", "game", "video", "phone"], "");
        assert_eq!(all, [(1, held(4, None)), (3, held(4, None))].into());
        assert_eq!(done(&["music", "!phone"], ""), BTreeMap::new());
        assert_eq!(done(&["!music", "phone"], ""), [(1, held(2, None))].into());
        assert_eq!(done(&["music", "phone"], "cork=nothing role=phone"), BTreeMap::new());
    }

    #[test]
    fn nothing_is_done_to_streams_of_another_device() {
        let [music, phone] = [with_role(Some("music")), with_role(Some("phone"))];
        let stream =
            |number, device, identity| Playing { number, device, identity, is_heard: true };
        let streams = [stream(1, 0, &music), stream(2, 1, &phone)];
        assert_eq!(interactions(&streams, &Rules::default()), BTreeMap::new());
    }

    #[test]
    fn a_rule_turns_others_down_and_the_largest_step_counts() {
        let rules = "duck=music,event by=-6dB role=phone\nduck=music by=-12dB role=event\n\
                     cork=nothing role=phone";
        let all = done(&["music", "phone", "event"], rules);
        let ducked = |by, decibels, line| Interaction::Ducked { by, decibels, line };
        assert_eq!(all, [(1, ducked(3, -12.0, 2)), (3, ducked(2, -6.0, 1))].into());
        assert!((all[&1].factor() - 0.251_188_64).abs() < 1e-6);
    }

    #[test]
    fn of_two_that_would_hold_each_other_the_earlier_is_heard() {
        let rules = "cork=phone role=alarm\ncork=alarm role=phone";
        assert_eq!(done(&["alarm", "phone"], rules), [(2, held(1, Some(1)))].into());
        assert_eq!(done(&["phone", "alarm"], rules), [(2, held(1, Some(2)))].into());
    }
}
