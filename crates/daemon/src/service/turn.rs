//! One turn of the loop, for the work at its end.

use onbeat_control::Controller;
use onbeat_model::Instant;

use crate::filtered_sensor::FilteredSensor;
use crate::publisher::Publisher;
use crate::quota_actuator::QuotaActuator;
use crate::registry::SharedRegistry;

/// The loop with its two ends, the registry on which these agree, and the time.
pub(crate) struct Turn<'a> {
    pub(crate) sensor: &'a mut FilteredSensor,
    pub(crate) controller: &'a mut Controller<QuotaActuator>,
    pub(crate) registry: &'a SharedRegistry,
    pub(crate) publisher: &'a mut Publisher,
    pub(crate) now: Instant,
}

impl Turn<'_> {
    /// Publishes what the controller has done. Called before a task leaves the ledger, which knows
    /// whose it is.
    pub(super) fn publish(&mut self) {
        self.publisher.publish(self.controller, self.registry);
    }
}
