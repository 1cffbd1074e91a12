//! Reservation of cards, so that other sound servers release them while a driver has them, and so
//! that a driver gives one up to a program of higher priority.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;

/// Makes other sound servers release cards. The program that contains the driver implements it:
/// the driver knows no bus.
pub trait CardReservation: Send + Sync {
    /// Asks whichever program has the sound card `card` to release it, and waits for the answer for
    /// a bounded time; `None` if there is nothing to ask, such as a session bus. Programs that ask
    /// for the card later get it if their priority is higher than `priority`.
    fn reserve(&self, card: u32, priority: i32) -> Option<Reservation>;
}

/// The answer for one card.
#[derive(Debug)]
pub struct Reservation {
    /// The program that does not release the card, as it calls itself. The card may be in use:
    /// opening it shows that.
    pub refused_by: Option<String>,
    /// Keeps the card reserved until it is dropped.
    pub claim: Box<dyn CardClaim>,
}

/// A reserved card: what other programs ask of its owner. Thread: not the cycle's.
pub trait CardClaim: Debug + Send {
    /// Returns the descriptor that is readable when there is news; constant.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Returns the next piece of news; `None` if there is none yet. Does not wait.
    fn news(&mut self) -> Option<ClaimNews>;

    /// Answers a request: the card has been closed.
    fn card_is_closed(&mut self, request: u32);
}

/// What has become of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimNews {
    /// A program of higher priority asks for the card, and waits a bounded time for it to be
    /// closed.
    Asked {
        /// The request's number.
        request: u32,
        /// The program's name.
        by: String,
    },
    /// The card is ours again: the program has released it, or has waited too long.
    Ours,
    /// No program will ask any more; the last news.
    Ended,
}

/// Reserves cards before they are opened. Names on standard error the programs that do not release
/// one.
pub(crate) fn reserve_all(
    cards: &[u32],
    priority: i32,
    reservations: &dyn CardReservation,
) -> Vec<(u32, Reservation)> {
    let reserve = |card: &u32| {
        let reservation = reservations.reserve(*card, priority)?;
        if let Some(owner) = &reservation.refused_by {
            sys::report!(
                "consort: sound card {card} is reserved by '{owner}', which does not release it"
            );
        }
        Some((*card, reservation))
    };
    cards.iter().filter_map(reserve).collect()
}
