//! Finding a port by a name that a person typed.

use proto::limits::FULL_NAME_BYTES;
use proto::request::RequestError;

use super::{Model, Port};

impl Model {
    /// Same as [`look_up`](Self::look_up), for a request that needs the port.
    ///
    /// # Errors
    /// [`RequestError::UnknownPort`], without a suggestion: see [`suggest`](Self::suggest).
    pub fn find(&self, name: &str) -> Result<&Port, RequestError> {
        self.look_up(name)
            .ok_or_else(|| RequestError::UnknownPort { name: shown(name), nearest: None })
    }

    /// The port with this name or alias. `ALSA:capture…` and `ALSA:playback…` mean `alsa_pcm:…`, as
    /// in JACK.
    pub fn look_up(&self, name: &str) -> Option<&Port> {
        let rewritten = name
            .strip_prefix("ALSA:")
            .filter(|rest| rest.starts_with("capture") || rest.starts_with("playback"))
            .map(|rest| format!("alsa_pcm:{rest}"));
        let name = rewritten.as_deref().unwrap_or(name);
        self.port_named(name).or_else(|| {
            self.ports.values().find(|port| port.aliases.iter().any(|alias| alias == name))
        })
    }

    /// Adds the most similar name to an error about an unknown port. Only for a person: it takes
    /// the control thread as long as some ten requests.
    pub fn suggest(&self, error: RequestError) -> RequestError {
        match error {
            RequestError::UnknownPort { name, nearest: None } => {
                RequestError::UnknownPort { nearest: self.nearest(&name), name }
            }
            other => other,
        }
    }

    /// The port with exactly this name.
    pub fn port_named(&self, name: &str) -> Option<&Port> {
        self.port_names.get(name).and_then(|id| self.ports.get(id))
    }

    /// The most similar name among the first [`CANDIDATES`] that begin or end like this one, if it
    /// is similar enough. `None` for names that no person types.
    fn nearest(&self, name: &str) -> Option<String> {
        let few = 3 + name.len() / 4;
        let similar =
            self.ports.values().filter(|port| port.name.len().abs_diff(name.len()) <= few);
        let ends = |text: &str| (text.bytes().take(2).collect::<Vec<_>>(), text.bytes().last());
        let is_alike = |port: &&Port| {
            let ((begin, end), (other_begin, other_end)) = (ends(name), ends(&port.name));
            begin == other_begin || end == other_end
        };
        let alike = similar.filter(|_| name.len() <= TYPED_BYTES).filter(is_alike);
        // MUTATION: nearest.compares_all_names
        let candidates = alike.take(CANDIDATES);
        let counted = candidates.map(|port| (distance(name, &port.name), port));
        let (changes, port) = counted.min_by_key(|(changes, _)| *changes)?;
        (changes <= few).then(|| port.name.clone())
    }
}

/// Longer names were not typed by a person.
const TYPED_BYTES: usize = 64;
/// Names that are compared letter by letter.
const CANDIDATES: usize = 64;

/// Shortens a name for an error message.
fn shown(name: &str) -> String {
    match name.char_indices().nth(FULL_NAME_BYTES) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into(),
    }
}

/// Insertions, deletions and replacements from one text to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, left) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, right) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_compares_the_first_few_names_that_are_alike() {
        use proto::request::{NewPort, PortType};
        for (others, suggestion) in [(CANDIDATES - 1, Some("a:thing_2")), (CANDIDATES, None)] {
            let limits = super::super::Limits { clients: 2, ports: 100, connections: 1 };
            let mut model = Model::new(limits);
            let client = model.open_client("a", true).unwrap();
            let names = (0..others).map(|number| format!("xxxxx{number}"));
            for name in names.chain(["thing_2".to_owned()]) {
                let port_type = PortType::Audio;
                let new = NewPort { name, port_type, flags: 1, number: 0, slot: None };
                model.register_port(client, &new).unwrap();
            }
            assert_eq!(model.nearest("a:thing_1").as_deref(), suggestion, "{others} others");
        }
    }

    #[test]
    fn the_distance_of_two_names_counts_their_differences() {
        for (from, to, expected) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "ab", 1),
            ("system:playbak_1", "system:playback_1", 1),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }
}
