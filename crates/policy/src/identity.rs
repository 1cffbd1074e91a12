//! Who a stream is, for the next stream of the same kind to be known by.

/// Whether a stream plays or records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// A *sink input* in PulseAudio's words.
    Playback,
    /// A *source output*.
    Recording,
}

/// What a stream and its program say about themselves. Nothing of it is checked by anyone: a
/// program can take the identity of another, and gets its volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Whether it plays.
    pub direction: Direction,
    /// `module-stream-restore.id`: the name under which it wants to be remembered.
    pub restored_as: Option<String>,
    /// `media.role`: music, phone, event and so on.
    pub role: Option<String>,
    /// `application.id`.
    pub id: Option<String>,
    /// `application.name`.
    pub name: Option<String>,
    /// `media.name`: what it plays.
    pub media: Option<String>,
    /// `application.process.binary`.
    pub binary: Option<String>,
}

impl Identity {
    /// A stream that says nothing about itself.
    #[must_use]
    pub fn unknown(direction: Direction) -> Self {
        Self {
            direction,
            restored_as: None,
            role: None,
            id: None,
            name: None,
            media: None,
            binary: None,
        }
    }

    /// Returns whether it has one of these roles, of which `any_role` and `no_role` say whether it
    /// states one, as in PulseAudio.
    #[must_use]
    pub fn has_one_of(&self, roles: &[String]) -> bool {
        roles.iter().any(|role| match role.as_str() {
            "any_role" => self.role.is_some(),
            "no_role" => self.role.is_none(),
            role => self.role.as_deref() == Some(role),
        })
    }

    /// Returns the name under which it is remembered: PulseAudio's, by the first of role, program
    /// and media that it states.
    #[must_use]
    pub fn key(&self) -> String {
        if let Some(key) = &self.restored_as {
            return key.clone();
        }
        let stated = [
            ("media-role", &self.role),
            ("application-id", &self.id),
            ("application-name", &self.name),
            ("media-name", &self.media),
        ];
        let direction = match self.direction {
            Direction::Playback => "sink-input",
            Direction::Recording => "source-output",
        };
        let first = stated.into_iter().find_map(|(by, value)| Some((by, value.as_deref()?)));
        first.map_or_else(
            || format!("{direction}-fallback"),
            |(by, value)| format!("{direction}-by-{by}:{value}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_by_the_first_of_role_program_and_media() {
        let text = |text: &str| Some(text.to_owned());
        let mut stream = Identity::unknown(Direction::Playback);
        assert_eq!(stream.key(), "sink-input-fallback");
        stream.media = text("a song");
        assert_eq!(stream.key(), "sink-input-by-media-name:a song");
        stream.name = text("mpv");
        assert_eq!(stream.key(), "sink-input-by-application-name:mpv");
        stream.id = text("io.mpv");
        assert_eq!(stream.key(), "sink-input-by-application-id:io.mpv");
        stream.role = text("music");
        assert_eq!(stream.key(), "sink-input-by-media-role:music");
        let recording = Identity { direction: Direction::Recording, ..stream.clone() };
        assert_eq!(recording.key(), "source-output-by-media-role:music");
        stream.restored_as = text("sink-input-by-media-role:event");
        assert_eq!(stream.key(), "sink-input-by-media-role:event");
    }
}
