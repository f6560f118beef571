//! Why something that was asked for is not done: one list for every interface, each with what to do
//! next. On the bus they have these names.

use std::fmt;

use onbeat_model::Refusal;
use zbus::DBusError;

#[derive(Clone, Debug, PartialEq, Eq, DBusError)]
#[zbus(prefix = "org.onbeat.Error", impl_display = false)]
pub enum Fault {
    NoSuchTask(String),
    /// The caller may not do that to this task.
    NotPermitted(String),
    OverQuota(String),
    NoRoom(String),
    /// Another program, an administrator or its own program decides about this task.
    TakenOver(String),
    NotHeld(String),
    Invalid(String),
    TooManyCalls(String),
    Failed(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description().unwrap_or_default())
    }
}

impl Fault {
    /// The fault that a client is told when the actuator refused to do something to the task `tid`.
    pub fn of_refusal(tid: u32, refusal: &Refusal) -> Self {
        let text = format!("task {tid}: {refusal}");
        match refusal {
            Refusal::NoRoom { .. } => Self::NoRoom(text),
            Refusal::OverQuota { .. } => Self::OverQuota(text),
            Refusal::NarrowAffinity { .. } | Refusal::NotPermitted { .. } => {
                Self::NotPermitted(text)
            }
            Refusal::TakenOver { .. } => Self::TakenOver(text),
            Refusal::Gone => Self::NoSuchTask(format!("there is no task {tid} any more")),
            _ => Self::Failed(text),
        }
    }
}
