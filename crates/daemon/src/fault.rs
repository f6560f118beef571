//! Why something that was asked for is not done: one list for every interface, each with what to do
//! next.

use onbeat_model::Refusal;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is no such task, or no longer.
    #[error("{0}")]
    NoSuchTask(String),
    /// The caller may not do that to this task.
    #[error("{0}")]
    NotPermitted(String),
    /// The owner's quota, or one of his groups', is used up.
    #[error("{0}")]
    OverQuota(String),
    /// The machine has no room for it.
    #[error("{0}")]
    NoRoom(String),
    /// Another program, an administrator or its own program decides about this task.
    #[error("{0}")]
    TakenOver(String),
    /// The caller does not hold what he wants to give back.
    #[error("{0}")]
    NotHeld(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The caller asks for more than he is answered.
    #[error("{0}")]
    TooManyCalls(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl Fault {
    /// The fault that a client is told when the actuator refused to do something to the task `tid`.
    #[must_use]
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
