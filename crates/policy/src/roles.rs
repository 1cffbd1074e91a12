//! What streams do to each other: a phone call holds music.

use std::collections::BTreeMap;
use std::fmt;

use crate::identity::Identity;
use crate::rules::{Reaction, Rules};

/// What plays: a stream, or a client of the graph. Streams come first, by number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Player {
    /// The stream of this number.
    Stream(u32),
    /// The client of this name, all that it plays. Nothing is done to it.
    Client(String),
}

impl fmt::Display for Player {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(number) => write!(to, "sink input {number} plays"),
            Self::Client(name) => write!(to, "the JACK client '{name}' is active"),
        }
    }
}

/// Something that plays, as others are concerned.
#[derive(Debug, Clone)]
pub struct Playing<'a> {
    /// What it is.
    pub player: Player,
    /// The number of its device.
    pub device: u32,
    /// Who it is.
    pub identity: &'a Identity,
    /// Its program plays it, and it is not muted.
    pub is_heard: bool,
}

/// What is done to a stream by another.
#[derive(Debug, Clone, PartialEq)]
pub enum Interaction {
    /// It is silent, and its program is asked to hold it.
    Held {
        /// What holds it.
        by: Player,
        /// The number of the rule's line; `None`: the default one.
        line: Option<usize>,
    },
    /// It is quieter.
    Ducked {
        /// What it makes room for.
        by: Player,
        /// By how much, dB; 0 or less.
        decibels: f32,
        /// The number of the rule's line.
        line: usize,
    },
}

impl Interaction {
    /// Returns what does it.
    #[must_use]
    pub fn by(&self) -> &Player {
        match self {
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
                write!(to, "held while {by}: a phone call holds music and video")
            }
            Self::Held { by, line: Some(line) } => {
                write!(to, "held while {by}: line {line} of the rules says so")
            }
            Self::Ducked { by, decibels, line } => {
                write!(to, "{decibels} dB while {by}: line {line} of the rules says so")
            }
        }
    }
}

/// Decides what is done to streams, by their roles, by the numbers of the streams. What plays does
/// something to the streams of the same device; a stream that came first, which has the lowest
/// number, does it first. One that is held does nothing to others, so two cannot hold each other.
/// Without a rule, what has the role `phone` holds streams with `music` and `video`, as with
/// PulseAudio.
#[must_use]
pub fn interactions(all: &[Playing<'_>], rules: &Rules) -> BTreeMap<u32, Interaction> {
    let mut done: BTreeMap<u32, Interaction> = BTreeMap::new();
    let streams: Vec<(u32, &Playing<'_>)> = all
        .iter()
        .filter_map(|playing| match playing.player {
            Player::Stream(number) => Some((number, playing)),
            Player::Client(_) => None,
        })
        .collect();
    let mut heard: Vec<&Playing<'_>> = all.iter().filter(|playing| playing.is_heard).collect();
    heard.sort_by_key(|playing| &playing.player);
    let phone = phone();
    let is_held = |done: &BTreeMap<u32, Interaction>, number: u32| {
        matches!(done.get(&number), Some(Interaction::Held { .. }))
    };
    for playing in heard {
        if matches!(playing.player, Player::Stream(number) if is_held(&done, number)) {
            continue;
        }
        let others = || {
            let of_device = streams.iter().filter(|(_, other)| other.device == playing.device);
            of_device.filter(|(_, other)| other.player != playing.player)
        };
        let by = || playing.player.clone();
        let holds = rules.holds(playing.identity).map(|(holds, line)| (holds, Some(line)));
        let is_phone = playing.identity.role.as_deref() == Some("phone");
        if let Some((holds, line)) = holds.or_else(|| is_phone.then_some((&phone, None))) {
            for (number, _) in others().filter(|(_, other)| holds.concerns(other.identity)) {
                if !is_held(&done, *number) {
                    done.insert(*number, Interaction::Held { by: by(), line });
                }
            }
        }
        if let Some((ducks, line)) = rules.ducks(playing.identity) {
            let decibels = ducks.decibels;
            for (number, _) in others().filter(|(_, other)| ducks.concerns(other.identity)) {
                let is_less = match done.get(number) {
                    None => true,
                    Some(Interaction::Ducked { decibels: before, .. }) => decibels < *before,
                    Some(Interaction::Held { .. }) => false,
                };
                if is_less {
                    done.insert(*number, Interaction::Ducked { by: by(), decibels, line });
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
                player: Player::Stream(number),
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
        Interaction::Held { by: Player::Stream(by), line }
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
        let stream = |number, device, identity| {
            let player = Player::Stream(number);
            Playing { player, device, identity, is_heard: true }
        };
        let streams = [stream(1, 0, &music), stream(2, 1, &phone)];
        assert_eq!(interactions(&streams, &Rules::default()), BTreeMap::new());
    }

    #[test]
    fn a_client_of_the_graph_holds_streams_and_nothing_is_done_to_it() {
        let roles = ["music", "phone", "music", "game"].map(|role| with_role(Some(role)));
        let [call, song] = ["call", "song"].map(|name| Player::Client(name.into()));
        let players = [Player::Stream(7), call.clone(), song, Player::Stream(8)];
        let all: Vec<Playing<'_>> = std::iter::zip(players, &roles)
            .map(|(player, identity)| Playing { player, device: 0, identity, is_heard: true })
            .collect();
        let held = Interaction::Held { by: call, line: None };
        assert_eq!(interactions(&all, &Rules::default()), [(7, held.clone())].into());
        let text = "held while the JACK client 'call' is active: a phone call holds music and \
                    video";
        assert_eq!(held.to_string(), text);
    }

    #[test]
    fn a_rule_turns_others_down_and_the_largest_step_counts() {
        let rules = "duck=music,event by=-6dB role=phone\nduck=music by=-12dB role=event\n\
                     cork=nothing role=phone";
        let all = done(&["music", "phone", "event"], rules);
        let ducked =
            |by, decibels, line| Interaction::Ducked { by: Player::Stream(by), decibels, line };
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
