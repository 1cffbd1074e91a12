//! One rule.

use super::pattern::{matches, words};
use crate::identity::{Direction, Identity};
use crate::{FULL_VOLUME, MAX_VOLUME};

/// How much quieter others are than they were, where a rule does not say it: PulseAudio's.
const DUCKED_DB: f32 = -20.0;
/// The least that is not silence.
const LEAST_DB: f32 = -100.0;

/// What a stream does to others while it is heard.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reaction {
    /// The roles of those to which it does it.
    pub roles: Vec<String>,
    /// How much quieter they are, dB. 0 or less.
    pub decibels: f32,
}

/// A rule: its settings, and its conditions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Line {
    pub device: Option<String>,
    pub volume: Option<u32>,
    pub muted: Option<bool>,
    pub moves: Option<bool>,
    pub cork: Option<Reaction>,
    pub duck: Option<Reaction>,
    direction: Option<Direction>,
    conditions: Vec<(Property, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Property {
    Role,
    Id,
    Name,
    Media,
    Binary,
}

impl Line {
    /// Reads a line; `None`: it is empty.
    ///
    /// # Errors
    /// A sentence about what it has.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let mut line = Self::default();
        let words = words(text)?;
        let mut decibels = None;
        for word in &words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            if value.is_empty() {
                return Err(format!("'{word}' has no value: write for example {key}=VALUE"));
            }
            let mut condition = |property| line.conditions.push((property, value.to_owned()));
            match key {
                "role" => condition(Property::Role),
                "id" => condition(Property::Id),
                "name" => condition(Property::Name),
                "media" => condition(Property::Media),
                "binary" => condition(Property::Binary),
                "direction" => line.direction = Some(direction(value)?),
                "device" => line.device = Some(value.to_owned()),
                "volume" => line.volume = Some(percent(value)?),
                "muted" => line.muted = Some(yes_or_no(value)?),
                "move" => line.moves = Some(yes_or_no(value)?),
                "cork" => line.cork = Some(reaction(value)),
                "duck" => line.duck = Some(reaction(value)),
                "by" => decibels = Some(ducked(value)?),
                _ => return Err(unknown(key)),
            }
        }
        if words.is_empty() {
            return Ok(None);
        }
        match (&mut line.duck, decibels) {
            (Some(duck), Some(decibels)) => duck.decibels = decibels,
            (None, Some(_)) => return Err("'by' is how much 'duck' turns down: add it".into()),
            _ => {}
        }
        if !line.has_setting() {
            return Err("it sets nothing: add device, volume, muted, move, cork or duck".into());
        }
        Ok(Some(line))
    }

    pub fn matches(&self, stream: &Identity) -> bool {
        let is_its = self.direction.is_none_or(|direction| direction == stream.direction);
        is_its
            && self.conditions.iter().all(|(property, pattern)| {
                let value = match property {
                    Property::Role => &stream.role,
                    Property::Id => &stream.id,
                    Property::Name => &stream.name,
                    Property::Media => &stream.media,
                    Property::Binary => &stream.binary,
                };
                value.as_deref().is_some_and(|value| matches(pattern, value))
            })
    }

    fn has_setting(&self) -> bool {
        self.device.is_some()
            || self.volume.is_some()
            || self.muted.is_some()
            || self.moves.is_some()
            || self.cork.is_some()
            || self.duck.is_some()
    }
}

fn percent(value: &str) -> Result<u32, String> {
    let number = value.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let steps = number.map(|number| number / 100.0 * f64::from(FULL_VOLUME));
    let steps = steps.filter(|steps| (0.0..=f64::from(MAX_VOLUME)).contains(steps));
    steps
        .map(|steps| steps.round() as u32)
        .ok_or_else(|| format!("'{value}' is not a volume: write a percentage from 0% to 250%"))
}

fn ducked(value: &str) -> Result<f32, String> {
    let number = value.strip_suffix("dB").and_then(|number| number.trim().parse::<f32>().ok());
    let number = number.filter(|number| (LEAST_DB..=0.0).contains(number));
    number.ok_or_else(|| format!("'{value}' does not turn down: write from -100dB to 0dB"))
}

fn yes_or_no(value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("'{value}' is neither yes nor no")),
    }
}

fn direction(value: &str) -> Result<Direction, String> {
    match value {
        "playback" => Ok(Direction::Playback),
        "recording" => Ok(Direction::Recording),
        _ => Err(format!("'{value}' is neither playback nor recording")),
    }
}

fn reaction(value: &str) -> Reaction {
    let roles = value.split(',').filter(|role| !role.is_empty() && *role != "nothing");
    Reaction { roles: roles.map(str::to_owned).collect(), decibels: DUCKED_DB }
}

fn unknown(key: &str) -> String {
    format!(
        "'{key}' is neither a setting (device, volume, muted, move, cork, duck, by, \
         allow) nor a condition (name, id, role, media, binary, direction, cgroup)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_means_nothing_is_refused_with_what_to_write() {
        for (line, part) in [
            ("nonsense", "nonsense=VALUE"),
            ("volume= name=a", "volume=VALUE"),
            ("volume=80 name=a", "from 0% to 250%"),
            ("volume=300% name=a", "from 0% to 250%"),
            ("volume=-1% name=a", "from 0% to 250%"),
            ("volume=NaN% name=a", "from 0% to 250%"),
            ("muted=true name=a", "neither yes nor no"),
            ("name=a", "sets nothing"),
            ("by=-3dB name=a", "'duck'"),
            ("muted=yes direction=up", "neither playback nor recording"),
            ("duck=music by=3dB name=a", "from -100dB to 0dB"),
            ("colour=red name=a", "neither a setting"),
            ("device=\"a name=b", "not closed"),
        ] {
            let refusal = Line::parse(line).expect_err(line);
            assert!(refusal.contains(part), "{line}: {refusal}");
        }
    }

    #[test]
    fn a_role_is_one_of_those_that_are_named() {
        let read = |text| Line::parse(text).expect("a line").expect("a rule");
        let duck = read("duck=music,no_role by=-6dB role=phone").duck.expect("roles");
        assert_eq!(duck.decibels, -6.0);
        assert_eq!(read("duck=music role=phone").duck.expect("roles").decibels, -20.0);
        let mut stream = Identity::unknown(crate::Direction::Playback);
        assert!(stream.has_one_of(&duck.roles));
        stream.role = Some("video".into());
        assert!(!stream.has_one_of(&duck.roles));
        let any = read("cork=any_role role=phone").cork.expect("roles");
        assert!(stream.has_one_of(&any.roles));
        let none = read("cork=nothing role=phone").cork.expect("no roles");
        assert!(!stream.has_one_of(&none.roles));
    }
}
