use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use zbus::connection::Builder;
use zbus::zvariant::OwnedValue;
use zbus::{DBusError, Guid, fdo, interface};

use super::*;

/// Stands for polkit: with a user's agent that never answers, and for some callers with an error.
#[derive(Clone, Debug, Default)]
struct Stub {
    open: Arc<Mutex<Vec<String>>>,
    taken_back: Arc<Mutex<Vec<String>>>,
}

/// The bus's own errors.
#[derive(Debug, DBusError)]
#[zbus(prefix = "org.freedesktop.DBus.Error")]
enum Bus {
    LimitsExceeded(String),
    ServiceUnknown(String),
    AccessDenied(String),
}

#[interface(name = "org.freedesktop.PolicyKit1.Authority")]
impl Stub {
    async fn check_authorization(
        &self,
        subject: (String, HashMap<String, OwnedValue>),
        _action: String,
        _details: HashMap<String, String>,
        flags: u32,
        cancellation: String,
    ) -> Result<(bool, bool, HashMap<String, String>), Bus> {
        let caller = subject.1.get("name").unwrap();
        match <&str>::try_from(caller).unwrap() {
            ":1.limited" => return Err(Bus::LimitsExceeded(String::new())),
            ":1.nobody" => return Err(Bus::ServiceUnknown(String::new())),
            ":1.wrong" => return Err(Bus::AccessDenied(String::new())),
            ":1.admin" => return Ok((true, false, HashMap::new())),
            _ => {}
        }
        if flags & ALLOW_INTERACTION != 0 {
            self.open.lock().unwrap().push(cancellation);
            future::pending::<()>().await;
        }
        Ok((false, true, HashMap::new()))
    }

    async fn cancel_check_authorization(&self, cancellation: String) -> fdo::Result<()> {
        self.taken_back.lock().unwrap().push(cancellation);
        Ok(())
    }
}

/// A connection to the stub, which answers without a bus between.
async fn connect(stub: Stub) -> (Connection, Connection) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = Builder::async_io_unix_stream(theirs)
        .server(Guid::generate())
        .unwrap()
        .p2p()
        .serve_at(PATH, stub)
        .unwrap()
        .build();
    let client = Builder::async_io_unix_stream(ours).p2p().build();
    let (server, client) = future::zip(server, client).await;
    (server.unwrap(), client.unwrap())
}

/// A call from the connection `sender`.
fn call(sender: &str, interactive: bool) -> Message {
    let message = Message::method_call("/", "Reserve").unwrap();
    let message = message.sender(sender).unwrap();
    let message = if interactive {
        message.with_flags(Flags::AllowInteractiveAuth).unwrap()
    } else {
        message
    };
    message.build(&()).unwrap()
}

/// The decision about such a call of `uid`'s.
async fn decided(
    polkit: &Polkit,
    connection: &Connection,
    (uid, sender, interactive): (u32, &str, bool),
) -> Result<Option<bool>, Fault> {
    let call = call(sender, interactive);
    let header = call.header();
    let verdict = polkit.permits(connection, &header, uid, Action::ManageOtherTasks);
    Ok(verdict.await?.map(|verdict| verdict.permitted))
}

fn impatient() -> Polkit {
    Polkit {
        patience: AnswerPatience {
            quick: Duration::from_secs(60),
            with_password: Duration::from_millis(200),
        },
        ..Polkit::default()
    }
}

#[test]
fn a_user_whose_agent_is_silent_keeps_two_questions_open_and_nobody_else_from_asking() {
    zbus::block_on(async {
        let stub = Stub::default();
        let (_server, connection) = connect(stub.clone()).await;
        let polkit = Polkit::default();
        let mut asked: Vec<_> = (0..130)
            .map(|_| Box::pin(decided(&polkit, &connection, (1000, ":1.silent", true))))
            .collect();
        let (open, others) = asked.split_at_mut(2);
        for ask in open {
            assert!(future::poll_once(ask).await.is_none());
        }
        for ask in others {
            let answer = ask.await;
            assert!(matches!(answer, Err(Fault::Failed(_))), "{answer:?}");
        }
        for uid in [1000, 1001] {
            let other = decided(&polkit, &connection, (uid, ":1.admin", false)).await;
            assert_eq!(other, Ok(Some(true)));
        }
        let other = decided(&polkit, &connection, (1001, ":1.admin", true)).await;
        assert_eq!(other, Ok(Some(true)));
        assert_eq!(stub.open.lock().unwrap().len(), 2);
    });
}

#[test]
fn a_question_that_is_not_answered_is_given_up_and_taken_back() {
    zbus::block_on(async {
        let stub = Stub::default();
        let (_server, connection) = connect(stub.clone()).await;
        let polkit = impatient();
        for round in 1..=3 {
            let answer = decided(&polkit, &connection, (1000, ":1.silent", true)).await;
            assert!(matches!(answer, Err(Fault::Failed(_))), "{answer:?}");
            // Messages sent before this are received before it.
            let _ = decided(&polkit, &connection, (0, ":1.admin", false)).await;
            assert_eq!(stub.taken_back.lock().unwrap().len(), round);
        }
        assert_eq!(*stub.open.lock().unwrap(), *stub.taken_back.lock().unwrap());
    });
}

#[test]
fn that_polkit_cannot_be_asked_now_is_no_answer() {
    zbus::block_on(async {
        let (_server, connection) = connect(Stub::default()).await;
        let polkit = Polkit::default();
        let limited = decided(&polkit, &connection, (1000, ":1.limited", false)).await;
        assert!(matches!(limited, Err(Fault::Failed(_))), "{limited:?}");
        for (sender, answer) in [
            (":1.nobody", None),
            (":1.wrong", Some(false)),
            (":1.anybody", Some(false)),
            (":1.admin", Some(true)),
        ] {
            let decided = decided(&polkit, &connection, (1000, sender, false)).await;
            assert_eq!(decided, Ok(answer), "{sender}");
        }
    });
}
