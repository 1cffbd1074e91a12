//! When a client is not told where to run, although others are.

/// Why it is not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It was late too often: its CPU may have other work, of which a schedule knows nothing.
    #[default]
    Late,
    /// It did not go to this CPU: its own affinity or its cpuset may not have it.
    Refused(u32),
}

/// For a while, the kernel decides where a client runs; for longer each time that it comes to that again soon.
#[derive(Debug, Default, Clone, Copy)]
pub struct Release {
    until_ns: u64,
    length_ns: u64,
    why: Why,
}

/// The first time.
const RELEASE_NS: u64 = 5_000_000_000;
const LONGEST_RELEASE_NS: u64 = 320_000_000_000;
/// So long after the end of one, the next is as short as the first.
const FORGET_RELEASE_NS: u64 = 30_000_000_000;

impl Release {
    /// Begins, or goes on; true if it was not released before.
    pub fn begin(&mut self, now_ns: u64, why: Why) -> bool {
        let is_new = !self.is_released(now_ns);
        if is_new {
            let soon = self.length_ns > 0 && now_ns - self.until_ns < FORGET_RELEASE_NS;
            self.length_ns = if soon { (2 * self.length_ns).min(LONGEST_RELEASE_NS) } else { RELEASE_NS };
        }
        self.until_ns = now_ns.saturating_add(self.length_ns);
        self.why = why;
        is_new
    }

    /// Whether it runs wherever the kernel likes.
    #[must_use]
    pub fn is_released(self, now_ns: u64) -> bool {
        now_ns < self.until_ns
    }

    /// Why, and for how many ns more; `None` if it is not.
    #[must_use]
    pub fn now(self, now_ns: u64) -> Option<(Why, u64)> {
        self.is_released(now_ns).then(|| (self.why, self.until_ns - now_ns))
    }
}

/// Cycles in a row that a client ended on another CPU than it is told.
#[derive(Debug, Default, Clone, Copy)]
pub struct Astray(u32);

/// So many, and it does not go where it is told: orders take a cycle or two.
const ASTRAY_CYCLES: u32 = 64;

impl Astray {
    /// Notes one more cycle; true when it is clear that the client does not go there, and again as often as that is clear anew.
    pub fn note(&mut self, is_elsewhere: bool) -> bool {
        self.0 = if is_elsewhere { self.0 + 1 } else { 0 };
        let is_astray = self.0 == ASTRAY_CYCLES;
        if is_astray {
            self.0 = 0;
        }
        is_astray
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_late_again_soon_is_released_for_longer_each_time() {
        let (mut release, mut now_ns) = (Release::default(), 1_000);
        for seconds in [5, 10, 20, 40, 80, 160, 320, 320] {
            assert!(release.begin(now_ns, Why::Late));
            now_ns += 1_000_000_000 * seconds - 1;
            assert!(release.is_released(now_ns), "{seconds} s");
            now_ns += 1;
            assert!(!release.is_released(now_ns), "{seconds} s");
        }
        now_ns += FORGET_RELEASE_NS;
        assert!(release.begin(now_ns, Why::Late));
        assert!(!release.is_released(now_ns + RELEASE_NS));
    }

    #[test]
    fn a_release_goes_on_as_long_as_the_client_is_late() {
        let mut release = Release::default();
        assert!(release.begin(0, Why::Late));
        assert!(!release.begin(RELEASE_NS - 1, Why::Late));
        assert!(release.is_released(2 * RELEASE_NS - 2));
    }

    #[test]
    fn it_says_why_and_for_how_long_as_long_as_it_lasts() {
        let mut release = Release::default();
        assert_eq!(release.now(0), None);
        release.begin(0, Why::Refused(3));
        assert_eq!(release.now(1_000), Some((Why::Refused(3), RELEASE_NS - 1_000)));
        assert_eq!(release.now(RELEASE_NS), None);
    }

    #[test]
    fn a_client_is_astray_each_time_that_it_has_not_come_for_long() {
        let mut astray = Astray::default();
        let mut found = |cycles: u32, elsewhere: bool| (0..cycles).filter(|_| astray.note(elsewhere)).count();
        assert_eq!(found(ASTRAY_CYCLES - 1, true), 0, "on its way");
        assert_eq!(found(1, false), 0, "there");
        assert_eq!(found(10 * ASTRAY_CYCLES, true), 10);
        assert_eq!(found(1, false) + found(ASTRAY_CYCLES, true), 1, "again");
    }
}
