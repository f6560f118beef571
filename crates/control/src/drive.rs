//! Polls the sensor and turns the controller, until there are no more events.

use onbeat_model::{Actuator, Flow, Sensor, Span};

use crate::Controller;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Continue,
    Stop,
}

/// One turn on the events so far, without waiting: a program is served before it is let go.
/// Fails when the sensor breaks.
pub fn begin<S: Sensor, A: Actuator>(
    sensor: &mut S,
    controller: &mut Controller<A>,
) -> Result<(), S::Error> {
    let mut events = Vec::new();
    sensor.poll(Span::ZERO, &mut events)?;
    controller.turn(&events, sensor.now(), sensor);
    Ok(())
}

/// Polls `sensor` and turns `controller` until the sensor has nothing more to say or `each_turn`
/// says stop. `each_turn` is the place to write the journal out, and to look at the outer world.
///
/// All reservations stay in force: [`Controller::finish`] gives them back.
/// Fails when the sensor breaks.
pub fn drive<S: Sensor, A: Actuator>(
    sensor: &mut S,
    controller: &mut Controller<A>,
    mut each_turn: impl FnMut(&mut S, &mut Controller<A>) -> Next,
) -> Result<(), S::Error> {
    let mut events = Vec::new();
    loop {
        events.clear();
        let flow = sensor.poll(controller.pace(), &mut events)?;
        let now = sensor.now();
        if controller.wants_idle(now)
            && let Some(idle) = sensor.idle()
        {
            controller.idle(idle, now);
            if let Some(at) = sensor.others_real_time() {
                controller.others_real_time(at, now);
            }
        }
        controller.turn(&events, now, sensor);
        for partner in controller.partners_to_track() {
            // It has ended meanwhile, or may not be tracked: the path goes without it.
            if sensor.track_partner(partner.tid, partner.of).is_err() {
                controller.partner_refused(partner, now);
            }
        }
        let unwanted = controller.partners_to_untrack();
        if !unwanted.is_empty() {
            sensor.untrack(&unwanted)?;
        }
        if each_turn(sensor, controller) == Next::Stop || flow == Flow::Ended {
            return Ok(());
        }
    }
}
