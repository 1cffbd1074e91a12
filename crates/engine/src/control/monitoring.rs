//! Requests to monitor inputs, on their way to a card that can do it.

use super::Control;
use crate::plan::SYSTEM;

impl Control {
    /// Tells the driver's card which of its inputs somebody wants to hear at its outputs. Does not wait for it.
    pub(super) fn tell_monitored(&self) {
        if let Some(tell) = &self.parts.monitoring {
            tell(self.parts.model.monitored_inputs(SYSTEM));
        }
    }
}
