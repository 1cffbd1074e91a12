//! Reservation of cards, so that other sound servers release them while a driver has them.

use std::fmt::Debug;

/// Makes other sound servers release cards. The program that contains the driver implements it:
/// the driver knows no bus.
pub trait CardReservation: Send + Sync {
    /// Asks whichever program has the sound card `card` to release it, and waits for the answer for
    /// a bounded time; `None` if there is nothing to ask, such as a session bus.
    fn reserve(&self, card: u32) -> Option<Reservation>;
}

/// The answer for one card.
#[derive(Debug)]
pub struct Reservation {
    /// The program that does not release the card, as it calls itself. The card may be in use:
    /// opening it shows that.
    pub refused_by: Option<String>,
    /// Keeps the card reserved until it is dropped.
    pub guard: Box<dyn Debug + Send>,
}

/// Reserves cards before they are opened. Names on standard error the programs that do not release
/// one.
pub(crate) fn reserve_all(cards: &[u32], reservations: &dyn CardReservation) -> Vec<Reservation> {
    let reserve = |card: &u32| {
        let reservation = reservations.reserve(*card)?;
        if let Some(owner) = &reservation.refused_by {
            sys::report!(
                "consort: sound card {card} is reserved by '{owner}', which does not release it"
            );
        }
        Some(reservation)
    };
    cards.iter().filter_map(reserve).collect()
}
