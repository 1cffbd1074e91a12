//! The plans themselves: a few that are used again and again, so that none is freed on the driver thread.

use super::Plan;

/// Plans that nobody runs. At most three are out at a time: in force, published, retiring.
#[derive(Debug)]
pub struct PlanPool {
    free: Vec<&'static mut Plan>,
}

/// One more than are out at a time.
const PLANS: usize = 4;

impl PlanPool {
    /// A server's plans. They live as long as the process: the driver thread may hold one at any time.
    pub fn new() -> Self {
        Self { free: (0..PLANS).map(|_| Box::leak(Box::default())).collect() }
    }

    /// A plan to fill. `None`: one has retired and is not back yet; it comes within a cycle.
    pub fn take(&mut self) -> Option<&'static mut Plan> {
        self.free.pop()
    }

    /// A plan that retired.
    pub fn give_back(&mut self, plan: &'static mut Plan) {
        plan.clear();
        self.free.push(plan);
    }
}
