//! When to look for a server that has gone. Where a service manager listens for the server, looking
//! starts it: it is done only while programs are connected, and less often each time it is in vain.
//! Where nobody listens, looking starts nothing, and is done often while streams wait.

/// How long after its end a server is looked for, ns.
const SOON_NS: u64 = 500_000_000;
/// The longest pause, ns. systemd gives up on a service that starts five times in ten seconds.
const LONGEST_NS: u64 = 10_000_000_000;
/// The pause between two looks at a socket that nobody listens on, ns.
const SILENT_NS: u64 = 50_000_000;

/// When to look for a server.
#[derive(Debug)]
pub(super) struct Retry {
    /// `None`: there is a server.
    at_ns: Option<u64>,
    /// How long to wait after the next failure, ns.
    pause_ns: u64,
    found_ns: u64,
    /// Until when streams wait for it.
    until_ns: u64,
}

impl Retry {
    /// There is a server.
    pub fn new(now_ns: u64) -> Self {
        Self { at_ns: None, pause_ns: SOON_NS, found_ns: now_ns, until_ns: 0 }
    }

    /// Returns when to look next; `programs`: how many are connected.
    pub fn due_ns(&self, programs: usize) -> Option<u64> {
        self.at_ns.filter(|_| programs > 0)
    }

    /// The server has gone, and streams wait `grace_ns` for the next one. After one that has
    /// served for a while, the pauses are short again.
    pub fn server_gone(&mut self, grace_ns: u64, now_ns: u64) {
        if now_ns.saturating_sub(self.found_ns) >= LONGEST_NS {
            self.pause_ns = SOON_NS;
        }
        self.until_ns = now_ns.saturating_add(grace_ns);
        self.wait(now_ns);
    }

    /// There was none; `listens`: but something listens for it.
    pub fn not_found(&mut self, listens: bool, now_ns: u64) {
        if !listens && now_ns < self.until_ns {
            self.at_ns = Some(now_ns + SILENT_NS);
        } else {
            self.wait(now_ns);
        }
    }

    /// There is one again.
    pub fn found(&mut self, now_ns: u64) {
        (self.at_ns, self.found_ns) = (None, now_ns);
    }

    /// A program has connected: a server may be there, or start for it.
    pub fn program_came(&mut self, now_ns: u64) {
        if let Some(at_ns) = &mut self.at_ns {
            *at_ns = now_ns.min(*at_ns);
        }
    }

    fn wait(&mut self, now_ns: u64) {
        let last_ns = self.until_ns.saturating_sub(SOON_NS);
        let at_ns = now_ns + self.pause_ns;
        // Before streams have waited in vain, it is looked for once more.
        let is_too_late = now_ns < last_ns && at_ns > last_ns;
        self.at_ns = Some(if is_too_late { last_ns } else { at_ns });
        self.pause_ns = (2 * self.pause_ns).min(LONGEST_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Looks in vain whenever that is due; returns when that was.
    fn looked(retry: &mut Retry, times: usize) -> Vec<u64> {
        let mut look = || {
            let at_ns = retry.due_ns(1).expect("a time");
            retry.not_found(true, at_ns);
            at_ns
        };
        (0..times).map(|_| look()).collect()
    }

    #[test]
    fn pauses_grow_while_there_is_no_server() {
        let mut retry = Retry::new(0);
        assert_eq!(retry.due_ns(1), None, "there is one");
        retry.server_gone(0, 100 * S);
        let pauses: Vec<u64> =
            looked(&mut retry, 8).windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(pauses, [S, 2 * S, 4 * S, 8 * S, 10 * S, 10 * S, 10 * S]);
    }

    #[test]
    fn pauses_are_short_again_after_a_server_that_has_served() {
        for (served_s, pause_ns) in [(10, SOON_NS), (9, 4 * S)] {
            let mut retry = Retry::new(0);
            retry.server_gone(0, 100 * S);
            looked(&mut retry, 2);
            retry.found(200 * S);
            retry.server_gone(0, (200 + served_s) * S);
            assert_eq!(retry.due_ns(1), Some((200 + served_s) * S + pause_ns), "{served_s} s");
        }
    }

    #[test]
    fn while_streams_wait_a_silent_socket_is_looked_at_often_and_the_last_look_is_in_time() {
        let mut retry = Retry::new(0);
        retry.server_gone(5 * S, 100 * S);
        let mut looks = Vec::new();
        while let Some(at_ns) = retry.due_ns(1).filter(|at_ns| *at_ns < 105 * S) {
            looks.push(at_ns);
            retry.not_found(false, at_ns);
        }
        assert_eq!(looks[..2], [100 * S + SOON_NS, 100 * S + SOON_NS + SILENT_NS]);
        assert_eq!(looks.len(), 90);
        // A server that dies again and again is started less often, but in time.
        let mut retry = Retry::new(0);
        retry.server_gone(0, S);
        looked(&mut retry, 4);
        retry.found(20 * S);
        retry.server_gone(5 * S, 21 * S);
        assert_eq!(retry.due_ns(1), Some(26 * S - SOON_NS));
    }

    #[test]
    fn no_server_is_looked_for_while_no_program_is_connected() {
        let mut retry = Retry::new(0);
        retry.server_gone(0, 100 * S);
        assert_eq!(retry.due_ns(0), None);
        retry.program_came(300 * S);
        assert_eq!(retry.due_ns(1), Some(100 * S + SOON_NS), "at once");
    }

    #[test]
    fn a_program_that_connects_ends_a_long_pause() {
        let mut retry = Retry::new(0);
        retry.server_gone(0, 100 * S);
        let last_ns = looked(&mut retry, 6)[5];
        retry.program_came(last_ns + S);
        assert_eq!(retry.due_ns(1), Some(last_ns + S));
        retry.found(last_ns + S);
        retry.program_came(last_ns + 2 * S);
        assert_eq!(retry.due_ns(1), None, "there is one");
    }
}
