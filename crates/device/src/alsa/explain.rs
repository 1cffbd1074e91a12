//! Messages about refusals of a device: what it supports, which process has it, what to do.

use std::fmt::Write;

use alsa::{Direction, Limits, OpenError, Pcm, Refusal, SetupRequest, format_name};

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Capture => "capture",
        Direction::Playback => "playback",
    }
}

/// Returns why a device could not be opened.
pub(super) fn not_opened(name: &str, direction: Direction, error: OpenError) -> String {
    let what = format!("cannot open '{name}' for {}", way(direction));
    match error {
        OpenError::Busy => {
            let holder =
                alsa::locate(name).and_then(|(card, device)| alsa::holder(card, device, direction));
            let by =
                holder.map_or_else(|| "another program".to_owned(), |holder| holder.to_string());
            format!(
                "{what}: it is in use by {by}; end that, or choose another device with --device"
            )
        }
        OpenError::Missing => format!("{what}: there is no such device; {}", there_is()),
        OpenError::Denied => format!(
            "{what}: permission denied; as root: usermod --append --groups audio NAME, then log in again"
        ),
        OpenError::SoundServer(_) => {
            format!("{what}: {error}, which may be this one; name a card: {}", there_is())
        }
        OpenError::Other(_) => format!("{what}: {error}"),
    }
}

/// Returns the devices of this machine, for a name that is not among them.
pub(super) fn there_is() -> String {
    let cards = alsa::cards();
    if cards.is_empty() {
        return "this machine has no sound card".into();
    }
    let names: Vec<String> = cards
        .iter()
        .flat_map(|card| {
            card.devices.iter().map(|device| format!("hw:{},{}", card.id, device.index))
        })
        .collect();
    format!("there is {}", names.join(", "))
}

/// Returns why a device could not be configured as requested.
pub(super) fn not_configured(
    name: &str,
    pcm: &Pcm,
    request: &SetupRequest,
    refusal: Refusal,
) -> String {
    let limits = pcm.limits().unwrap_or_default();
    format!("'{name}' cannot {}: {}", way(pcm.direction()), refused(&limits, request, refusal))
}

fn refused(limits: &Limits, request: &SetupRequest, refusal: Refusal) -> String {
    match refusal {
        Refusal::Device(errno) => std::io::Error::from_raw_os_error(errno).to_string(),
        Refusal::Format => {
            let list = |formats: &[dsp::Format]| {
                formats.iter().map(|format| format_name(*format)).collect::<Vec<_>>().join(", ")
            };
            let can = if limits.formats.is_empty() {
                "none of these".into()
            } else {
                list(&limits.formats)
            };
            format!("not in {}; it supports {can}", list(&request.formats))
        }
        Refusal::Channels => {
            let (fewest, most) = limits.channels;
            let count =
                if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
            format!("it has {count} channels, not {}", request.channels.unwrap_or_default())
        }
        Refusal::Rate => format!("not at {} Hz; it supports {}", request.rate_hz, rates(limits)),
        Refusal::Period => {
            let (shortest, longest) = limits.period_frames;
            format!(
                "its periods cannot be {} frames; it supports {shortest} to {longest}",
                request.quantum
            )
        }
        Refusal::Buffer(longest) => format!(
            "{} frames do not fit its memory of {longest}; use fewer periods, or a shorter quantum",
            request.queue_frames
        ),
    }
}

fn rates(limits: &Limits) -> String {
    let (lowest, highest) = limits.rate_range_hz;
    if limits.rates_hz.is_empty() {
        return format!("{lowest} to {highest} Hz");
    }
    let mut text = String::new();
    for rate_hz in &limits.rates_hz {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{rate_hz}");
    }
    format!("{text} Hz")
}

#[cfg(test)]
mod tests {
    use dsp::Format;

    use super::*;

    #[test]
    fn a_refusal_names_what_the_device_supports() {
        let limits = Limits {
            formats: vec![Format::S16Le, Format::S32Le],
            channels: (2, 2),
            rates_hz: vec![44_100, 48_000],
            rate_range_hz: (44_100, 48_000),
            period_frames: (32, 4096),
            buffer_frames: 8192,
        };
        let request = SetupRequest {
            rate_hz: 96_000,
            channels: Some(8),
            formats: vec![Format::FloatLe],
            quantum: 16,
            queue_frames: 16_384,
            longest_quantum: 8192,
            period_wakeups: true,
            ahead_frames: 0,
        };
        for (refusal, text) in [
            (Refusal::Format, "not in FLOAT_LE; it supports S16_LE, S32_LE"),
            (Refusal::Channels, "it has 2 channels, not 8"),
            (Refusal::Rate, "not at 96000 Hz; it supports 44100, 48000 Hz"),
            (Refusal::Period, "its periods cannot be 16 frames; it supports 32 to 4096"),
            (
                Refusal::Buffer(8192),
                "16384 frames do not fit its memory of 8192; use fewer periods, or a shorter quantum",
            ),
        ] {
            assert_eq!(refused(&limits, &request, refusal), text);
        }
    }

    #[test]
    fn a_missing_device_is_answered_with_those_that_there_are() {
        let text = not_opened("hw:NOSUCH", Direction::Playback, OpenError::Missing);
        assert!(
            text.starts_with("cannot open 'hw:NOSUCH' for playback: there is no such device; "),
            "{text}"
        );
    }
}
