//! What happens to frames that a link passes on, as arguments of its process.

use convert::ChannelMap;

/// What happens to the frames of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Processing {
    /// They pass through a plug-in.
    Ladspa(NewPlugin),
    /// What comes back of another sound is removed from them.
    Echo(NewEcho),
}

/// A LADSPA plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewPlugin {
    /// Name or path of its library.
    pub plugin: String,
    /// Its label in there.
    pub label: String,
    /// Values of its control inputs.
    pub control: Option<String>,
    /// Names of its audio inputs, in the order of the channels.
    pub inputs: Option<String>,
    /// Names of its audio outputs.
    pub outputs: Option<String>,
}

/// A sound that comes back, and how it is removed. It is played as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewEcho {
    /// The device where it begins.
    pub of: String,
    /// All channels of that.
    pub of_map: ChannelMap,
    /// The device that plays it, `None`: the one that drives, and all channels of that.
    pub heard_on: (Option<String>, ChannelMap),
    /// From when a frame is heard there until it is heard here, ms.
    pub latency_ms: u32,
    /// `None`: it is not removed.
    pub speex: Option<NewSpeex>,
    /// How much is processed at once, ms.
    pub frame_ms: u32,
}

/// What libspeexdsp does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewSpeex {
    /// The longest echo, ms.
    pub filter_ms: u32,
    /// The voice is kept at one level.
    pub agc: bool,
    /// Noise is made quieter.
    pub denoise: bool,
    /// Attenuates the residual echo.
    pub suppress: bool,
    /// How far the residual echo is attenuated, dB below 0; `None`: the library's default.
    pub suppress_db: Option<i32>,
    /// The same while somebody speaks.
    pub suppress_active_db: Option<i32>,
}

impl Processing {
    /// Returns further devices that have to be there for it.
    pub fn devices(&self) -> Vec<Option<&str>> {
        match self {
            Self::Ladspa(_) => Vec::new(),
            Self::Echo(echo) => vec![Some(&*echo.of), echo.heard_on.0.as_deref()],
        }
    }

    /// Returns the device where what begins an echo is heard.
    pub fn heard_on(&self) -> Option<&Option<String>> {
        match self {
            Self::Ladspa(_) => None,
            Self::Echo(echo) => Some(&echo.heard_on.0),
        }
    }

    /// Returns it as arguments of `consort device serve`, where `driver` is the name of the device
    /// that drives.
    pub fn words(&self, driver: &str) -> Vec<String> {
        match self {
            Self::Ladspa(plugin) => plugin.words(),
            Self::Echo(echo) => echo.words(driver),
        }
    }
}

impl NewPlugin {
    fn words(&self) -> Vec<String> {
        let Self { plugin, label, control, inputs, outputs } = self;
        let further = [
            control.as_ref().map(|values| format!("--control={values}")),
            inputs.as_ref().map(|names| format!("--plugin-inputs={names}")),
            outputs.as_ref().map(|names| format!("--plugin-outputs={names}")),
        ];
        let words = [format!("--plugin={plugin}"), format!("--label={label}")];
        words.into_iter().chain(further.into_iter().flatten()).collect()
    }
}

impl NewEcho {
    fn words(&self, driver: &str) -> Vec<String> {
        let Self { of, of_map, heard_on: (heard_on, heard_map), latency_ms, speex, frame_ms } =
            self;
        let mut words = vec![
            format!("--echo-of={of}"),
            format!("--echo-of-positions={of_map}"),
            format!("--echo-heard-on={}", heard_on.as_deref().unwrap_or(driver)),
            format!("--echo-heard-positions={heard_map}"),
            format!("--echo-latency={latency_ms}"),
            format!("--echo-frame={frame_ms}"),
            format!("--echo-method={}", if speex.is_some() { "speex" } else { "null" }),
        ];
        words.extend(speex.iter().flat_map(NewSpeex::words));
        words
    }
}

impl NewSpeex {
    fn words(&self) -> Vec<String> {
        let Self { filter_ms, agc, denoise, suppress, suppress_db, suppress_active_db } = *self;
        let flags =
            [("--echo-agc", agc), ("--echo-denoise", denoise), ("--echo-suppress", suppress)];
        let numbers = [
            ("--echo-suppress-db", suppress_db),
            ("--echo-suppress-active-db", suppress_active_db),
        ];
        let numbers = numbers
            .into_iter()
            .filter_map(|(option, number)| Some(format!("{option}={}", number?)));
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        let flags = flags.map(|(option, _)| option.to_owned());
        std::iter::once(format!("--echo-filter={filter_ms}")).chain(flags).chain(numbers).collect()
    }
}
