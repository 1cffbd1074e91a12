//! The module that plays a sample when an X server rings its bell.

use super::arguments::Arguments;
use super::plans::Plan;
use crate::output::{NewBell, NewLink};

/// The sample that is played, as in PulseAudio.
const DEFAULT_SAMPLE: &str = "bell-window-system";

/// Sample and sink are looked for when it rings, as in PulseAudio: they may come later.
pub(super) fn x11_bell(arguments: &Arguments) -> Result<Plan, String> {
    let bell = NewBell {
        sink: arguments.name("sink")?,
        sample: arguments.name("sample")?.unwrap_or_else(|| DEFAULT_SAMPLE.into()),
        display: arguments.name("display")?,
        authority: arguments.name("xauthority")?.map(Into::into),
    };
    let link = Box::new(move |_| NewLink::X11Bell(bell));
    Ok(Plan { device: None, link: Some(link), listening: None })
}
