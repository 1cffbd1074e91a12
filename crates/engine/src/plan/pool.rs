//! A pool of a few plans that are reused, so that none is freed on the driver thread.

use super::Plan;

/// The plans that are not in use. At most three are out at a time: in force, published, retiring.
#[derive(Debug)]
pub struct PlanPool {
    free: Vec<&'static mut Plan>,
}

/// One more than are out at a time: the next plan is built in it.
const PLANS: usize = 4;

impl PlanPool {
    /// Creates a server's plans. They live as long as the process, because the driver thread may
    /// hold one at any time.
    pub fn new() -> Self {
        Self { free: (0..PLANS).map(|_| Box::leak(Box::default())).collect() }
    }

    /// Takes a plan to fill. `None`: one is retiring, and comes back within a cycle.
    pub fn take(&mut self) -> Option<&'static mut Plan> {
        self.free.pop()
    }

    /// Returns whether there is no plan to fill.
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    /// Gives back a plan that has retired.
    pub fn give_back(&mut self, plan: &'static mut Plan) {
        plan.clear();
        self.free.push(plan);
    }
}
