//! A sample is played when an X server rings its bell, as with PulseAudio's `module-x11-bell`: by a
//! program of the front end, which needs no window.

use anyhow::Context;
use client::{OpenOptions, Session};
use pulse::RemoteControl;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::Event;
use x11rb::protocol::xkb::{
    BellNotifyEvent, BoolCtrl, ConnectionExt, EventType, ID, MapPart, PerClientFlag,
    SelectEventsAux, SetControlsRequest,
};
use x11rb::rust_connection::RustConnection;

use crate::links::{Links, Parts, Program, spawn};

/// The version of the keyboard extension that is asked for, from 1996.
const XKB_VERSION: (u16, u16) = (1, 0);

/// What is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BellOptions {
    /// Where the front end listens, in PulseAudio's words.
    pub(crate) front_end: String,
    /// The name of the sample.
    pub(crate) sample: String,
    /// The sink that plays it; `None`: the default one.
    pub(crate) sink: Option<String>,
}

/// Waits for the bell of the display that `$DISPLAY` names, on a thread of its own.
///
/// # Errors
/// There is no X server, it does not let this user in, or its keyboard has no bell that others hear
/// of; the front end cannot be reached.
pub(crate) fn start(
    session: Session,
    options: BellOptions,
    open: &OpenOptions,
) -> anyhow::Result<Links> {
    let display = Display::open()?;
    let control = RemoteControl::open(&options.front_end, "X11 bell")?;
    let parts = Parts::new(session, "the bell of an X server".into(), None);
    Links::begin(parts, open, |program| {
        let Program { connection: _, state } = program()?;
        let bell = Bell { display, control, options };
        spawn(state, move || bell.run())
    })
}

/// An X server whose bell is played here.
struct Display(RustConnection);

impl Display {
    fn open() -> anyhow::Result<Self> {
        let (connection, _screen) = x11rb::connect(None)
            .context("cannot connect to the X server: give its display=, and its xauthority=")?;
        let display = Self(connection);
        display.take_bell().context("the X server's keyboard has no bell to hear of")?;
        Ok(display)
    }

    /// Asks for each bell, and has the X server ring none itself. It does again once this
    /// connection has ended.
    fn take_bell(&self) -> anyhow::Result<()> {
        let (Self(connection), keyboard) = (self, ID::USE_CORE_KBD.into());
        connection.xkb_use_extension(XKB_VERSION.0, XKB_VERSION.1)?.reply()?;
        let (none, bells) = (EventType::from(0_u16), EventType::BELL_NOTIFY);
        let (no_map, no_details) = (MapPart::from(0_u16), SelectEventsAux::new());
        let selected =
            connection.xkb_select_events(keyboard, none, bells, no_map, no_map, &no_details)?;
        selected.check()?;
        let reset = PerClientFlag::AUTO_RESET_CONTROLS;
        let audible = BoolCtrl::AUDIBLE_BELL_MASK;
        connection
            .xkb_per_client_flags(keyboard, reset, reset, audible, audible, audible)?
            .reply()?;
        // All that is not said to change stays.
        let silent = SetControlsRequest {
            device_spec: keyboard,
            affect_enabled_controls: audible,
            ..SetControlsRequest::default()
        };
        connection.send_trait_request_without_reply(silent)?.check()?;
        Ok(())
    }

    /// Returns the next time that the bell rings.
    fn next(&self) -> anyhow::Result<BellNotifyEvent> {
        loop {
            let event = self.0.wait_for_event().context("the X server has gone")?;
            if let Event::XkbBellNotify(bell) = event {
                return Ok(bell);
            }
        }
    }

    /// Has the X server ring it after all.
    fn ring(&self, bell: &BellNotifyEvent) -> anyhow::Result<()> {
        let percent = i8::try_from(bell.percent.min(100))?;
        let (keyboard, class) = (bell.device_id.into(), bell.bell_class.into());
        let id = bell.bell_id.into();
        self.0.xkb_bell(keyboard, class, id, percent, true, false, 0, 0, 0, 0)?;
        Ok(self.0.flush()?)
    }
}

/// Plays the sample. On its own thread.
struct Bell {
    display: Display,
    control: RemoteControl,
    options: BellOptions,
}

impl Bell {
    /// Plays until one of both connections ends.
    ///
    /// # Errors
    /// Which.
    fn run(mut self) -> anyhow::Result<()> {
        loop {
            let bell = self.display.next()?;
            let BellOptions { sample, sink, .. } = &self.options;
            let percent = bell.percent.min(100).into();
            if !self.control.play_sample(sample, sink.as_deref(), percent)? {
                self.display.ring(&bell)?;
            }
        }
    }
}
