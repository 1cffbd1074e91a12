//! What streams do to each other: a phone call holds music.

use std::collections::BTreeMap;
use std::fmt;

use crate::identity::Identity;
use crate::rules::Rules;

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

/// What has streams do something to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// What a phone call does unless a rule says otherwise.
    PhoneCall,
    /// The rule of this line.
    Line(usize),
    /// The module of this index.
    Module(u32),
}

impl fmt::Display for Cause {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PhoneCall => write!(to, "a phone call holds music and video"),
            Self::Line(line) => write!(to, "line {line} of the rules says so"),
            Self::Module(index) => write!(to, "module {index} was loaded for that"),
        }
    }
}

/// What a module is loaded for: while streams with some roles are heard, others are held, or turned
/// down.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleModule {
    /// Its index.
    pub index: u32,
    /// The roles of those that are heard.
    pub triggers: Vec<String>,
    /// The roles of the others.
    pub roles: Vec<String>,
    /// How much quieter the others get, dB; 0 or less. `None`: they are held.
    pub decibels: Option<f32>,
    /// On whichever device they are.
    pub is_global: bool,
}

/// What is done to a stream by another.
#[derive(Debug, Clone, PartialEq)]
pub enum Interaction {
    /// It is silent, and its program is asked to hold it.
    Held {
        /// What holds it.
        by: Player,
        /// Why.
        cause: Cause,
    },
    /// It is quieter.
    Ducked {
        /// What it makes room for.
        by: Player,
        /// How much quieter it gets, dB; 0 or less.
        decibels: f32,
        /// Why.
        cause: Cause,
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
            Self::Held { by, cause } => write!(to, "held while {by}: {cause}"),
            Self::Ducked { by, decibels, cause } => {
                write!(to, "{decibels} dB while {by}: {cause}")
            }
        }
    }
}

/// What one that is heard does to others.
struct Effect<'a> {
    roles: &'a [String],
    /// `None`: they are held.
    decibels: Option<f32>,
    is_global: bool,
    cause: Cause,
}

/// Decides what is done to streams, by their roles, by the numbers of the streams. What plays does
/// something to the streams of the same device; a stream that came first, which has the lowest
/// number, does it first. One that is held does nothing to others, so two cannot hold each other.
/// Without a rule, what has the role `phone` holds streams with `music` and `video`, as with
/// PulseAudio, and `modules` have their say.
#[must_use]
pub fn interactions(
    all: &[Playing<'_>],
    rules: &Rules,
    modules: &[&RoleModule],
) -> BTreeMap<u32, Interaction> {
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
    let held_by_calls = ["music", "video"].map(str::to_owned);
    for playing in heard {
        if matches!(playing.player, Player::Stream(number) if is_held(&done, number)) {
            continue;
        }
        for effect in effects(playing.identity, rules, modules, &held_by_calls) {
            for (number, other) in &streams {
                let is_near = effect.is_global || other.device == playing.device;
                let is_other = other.player != playing.player;
                if is_near && is_other && other.identity.has_one_of(effect.roles) {
                    affect(&mut done, *number, playing.player.clone(), &effect);
                }
            }
        }
    }
    done
}

fn is_held(done: &BTreeMap<u32, Interaction>, number: u32) -> bool {
    matches!(done.get(&number), Some(Interaction::Held { .. }))
}

/// Returns what one that is heard does to others. What a rule says about it, modules do not.
fn effects<'a>(
    heard: &Identity,
    rules: &'a Rules,
    modules: &'a [&'a RoleModule],
    held_by_calls: &'a [String],
) -> Vec<Effect<'a>> {
    let (holds, ducks) = (rules.holds(heard), rules.ducks(heard));
    let is_call = heard.role.as_deref() == Some("phone");
    let call =
        Effect { roles: held_by_calls, decibels: None, is_global: false, cause: Cause::PhoneCall };
    let call = Some(call).filter(|_| is_call && holds.is_none());
    let of_modules = modules.iter().filter(|module| {
        let is_ruled = if module.decibels.is_some() { ducks.is_some() } else { holds.is_some() };
        !is_ruled && heard.has_one_of(&module.triggers)
    });
    let of_modules = of_modules.map(|module| Effect {
        roles: &module.roles,
        decibels: module.decibels,
        is_global: module.is_global,
        cause: Cause::Module(module.index),
    });
    let ruled = |(roles, line), decibels| Effect {
        roles,
        decibels,
        is_global: false,
        cause: Cause::Line(line),
    };
    let holds = holds.map(|(holds, line)| ruled((&holds.roles, line), None));
    let ducks = ducks.map(|(ducks, line)| ruled((&ducks.roles, line), Some(ducks.decibels)));
    holds.into_iter().chain(ducks).chain(call).chain(of_modules).collect()
}

/// Does something to a stream, unless something larger is done to it.
fn affect(done: &mut BTreeMap<u32, Interaction>, number: u32, by: Player, effect: &Effect<'_>) {
    let cause = effect.cause;
    let before = done.get(&number);
    let is_larger = match (before, effect.decibels) {
        (Some(Interaction::Held { .. }), _) => false,
        (Some(Interaction::Ducked { decibels: before, .. }), Some(decibels)) => decibels < *before,
        (None, _) | (_, None) => true,
    };
    if is_larger {
        let interaction = match effect.decibels {
            None => Interaction::Held { by, cause },
            Some(decibels) => Interaction::Ducked { by, decibels, cause },
        };
        done.insert(number, interaction);
    }
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
        done_with(roles, rules, &[])
    }

    fn done_with(
        roles: &[&str],
        rules: &str,
        modules: &[RoleModule],
    ) -> BTreeMap<u32, Interaction> {
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
        interactions(&streams, &rules, &modules.iter().collect::<Vec<_>>())
    }

    fn held(by: u32, cause: Cause) -> Interaction {
        Interaction::Held { by: Player::Stream(by), cause }
    }

    fn module(index: u32, trigger: &str, role: &str, decibels: Option<f32>) -> RoleModule {
        let (triggers, roles) = (vec![trigger.to_owned()], vec![role.to_owned()]);
        RoleModule { index, triggers, roles, decibels, is_global: false }
    }

    #[test]
    fn a_phone_call_that_is_heard_holds_music_and_video() {
        let all = done(&["music", "game", "video", "phone"], "");
        assert_eq!(all, [(1, held(4, Cause::PhoneCall)), (3, held(4, Cause::PhoneCall))].into());
        assert_eq!(done(&["music", "!phone"], ""), BTreeMap::new());
        assert_eq!(done(&["!music", "phone"], ""), [(1, held(2, Cause::PhoneCall))].into());
        assert_eq!(done(&["music", "phone"], "cork=nothing role=phone"), BTreeMap::new());
    }

    #[test]
    fn streams_of_another_device_are_left_alone_unless_a_module_says_otherwise() {
        let [music, phone] = [with_role(Some("music")), with_role(Some("phone"))];
        let stream = |number, device, identity| {
            let player = Player::Stream(number);
            Playing { player, device, identity, is_heard: true }
        };
        let streams = [stream(1, 0, &music), stream(2, 1, &phone)];
        assert_eq!(interactions(&streams, &Rules::default(), &[]), BTreeMap::new());
        let mut module = module(7, "phone", "music", None);
        assert_eq!(interactions(&streams, &Rules::default(), &[&module]), BTreeMap::new());
        module.is_global = true;
        let all = interactions(&streams, &Rules::default(), &[&module]);
        assert_eq!(
            all,
            [(1, held(2, Cause::Module(7)))].into(),
            "unless a module is loaded for it"
        );
    }

    #[test]
    fn a_client_of_the_graph_holds_streams_and_nothing_is_done_to_it() {
        let roles = ["music", "phone", "music", "game"].map(|role| with_role(Some(role)));
        let [call, song] = ["call", "song"].map(|name| Player::Client(name.into()));
        let players = [Player::Stream(7), call.clone(), song, Player::Stream(8)];
        let all: Vec<Playing<'_>> = std::iter::zip(players, &roles)
            .map(|(player, identity)| Playing { player, device: 0, identity, is_heard: true })
            .collect();
        let held = Interaction::Held { by: call, cause: Cause::PhoneCall };
        assert_eq!(interactions(&all, &Rules::default(), &[]), [(7, held.clone())].into());
        let text = "held while the JACK client 'call' is active: a phone call holds music and \
                    video";
        assert_eq!(held.to_string(), text);
    }

    #[test]
    fn a_rule_turns_others_down_and_the_largest_step_counts() {
        let rules = "duck=music,event by=-6dB role=phone\nduck=music by=-12dB role=event\n\
                     cork=nothing role=phone";
        let all = done(&["music", "phone", "event"], rules);
        let ducked = |by, decibels, line| {
            let (by, cause) = (Player::Stream(by), Cause::Line(line));
            Interaction::Ducked { by, decibels, cause }
        };
        assert_eq!(all, [(1, ducked(3, -12.0, 2)), (3, ducked(2, -6.0, 1))].into());
        assert!((all[&1].factor() - 0.251_188_64).abs() < 1e-6);
    }

    #[test]
    fn of_two_that_would_hold_each_other_the_earlier_is_heard() {
        let rules = "cork=phone role=alarm\ncork=alarm role=phone";
        assert_eq!(done(&["alarm", "phone"], rules), [(2, held(1, Cause::Line(1)))].into());
        assert_eq!(done(&["phone", "alarm"], rules), [(2, held(1, Cause::Line(2)))].into());
    }

    #[test]
    fn modules_hold_and_turn_down_what_no_rule_is_about() {
        let (hold, duck) =
            (module(1, "game", "music", None), module(2, "game", "any_role", Some(-20.0)));
        let modules = [hold, duck];
        let ducked =
            |by, cause| Interaction::Ducked { by: Player::Stream(by), decibels: -20.0, cause };
        let roles = ["music", "video", "game"];
        let all = done_with(&roles, "", &modules);
        let expected = [(1, held(3, Cause::Module(1))), (2, ducked(3, Cause::Module(2)))];
        assert_eq!(all, expected.into());
        let all = done_with(&roles, "cork=nothing role=game", &modules);
        let by_module = Cause::Module(2);
        assert_eq!(all, [(1, ducked(3, by_module)), (2, ducked(3, by_module))].into());
        let all = done_with(&roles, "duck=nothing role=game", &modules);
        assert_eq!(all, [(1, held(3, Cause::Module(1)))].into());
        assert_eq!(
            held(3, by_module).to_string(),
            "held while sink input 3 plays: module 2 was \
                    loaded for that"
        );
    }
}
