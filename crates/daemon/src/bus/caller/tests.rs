use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_lite::future;
use onbeat_sense::bpf::Waker;
use zbus::connection::Builder;
use zbus::zvariant::Value;
use zbus::{Guid, Message, fdo, interface};

use super::*;
use crate::request::ServiceRequest;

/// Stands for the bus: it knows the connection the first time that it is asked, and then no more.
/// It answers nothing before it has been asked this often.
#[derive(Debug)]
struct Bus {
    questions: u32,
    asked: AtomicU32,
    uid: u32,
    then: Then,
}

/// The stub's second answer.
#[derive(Clone, Copy, Debug)]
enum Then {
    Gone,
    NotNow,
}

#[interface(name = "org.freedesktop.DBus")]
impl Bus {
    async fn get_connection_credentials(
        &self,
        _name: String,
    ) -> fdo::Result<HashMap<&'static str, Value<'static>>> {
        let earlier = self.asked.fetch_add(1, Ordering::SeqCst);
        while self.asked.load(Ordering::SeqCst) < self.questions {
            async_io::Timer::after(Duration::from_millis(1)).await;
        }
        match (earlier, self.then) {
            (0, _) => Ok(HashMap::from([("UnixUserID", Value::from(self.uid))])),
            (_, Then::Gone) => Err(fdo::Error::NameHasNoOwner("it left".to_owned())),
            (_, Then::NotNow) => Err(fdo::Error::LimitsExceeded("ask again".to_owned())),
        }
    }
}

/// Two ends of a connection, to a bus and of a client.
async fn connected(questions: u32, uid: u32, then: Then) -> (Connection, Connection) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let bus = Bus {
        questions,
        asked: AtomicU32::default(),
        uid,
        then,
    };
    let server = Builder::async_io_unix_stream(theirs)
        .server(Guid::generate())
        .unwrap()
        .p2p()
        .serve_at("/org/freedesktop/DBus", bus)
        .unwrap()
        .build();
    let client = Builder::async_io_unix_stream(ours).p2p().build();
    let (server, connection) = future::zip(server, client).await;
    (server.unwrap(), connection.unwrap())
}

/// A call, as the bus passes it on.
fn call() -> Message {
    let message = Message::method_call("/", "Reserve").unwrap();
    message.sender(":1.7").unwrap().build(&()).unwrap()
}

fn callers(connection: Connection, sender: RequestSender) -> (Callers, Arc<Clients>) {
    let clients = Arc::<Clients>::default();
    let limits = LimitsInForce::default();
    let callers = Callers::new(connection, Arc::clone(&clients), sender, limits);
    (callers, clients)
}

/// Two calls of one connection, looked at at the same time; whether what it holds is given back
/// then, and whether its leaving is told later.
async fn two_calls(then: Then) -> (bool, bool) {
    let (_server, connection) = connected(2, 5, then).await;
    let (sender, requests) = RequestSender::new(Waker::new().unwrap());
    let (callers, clients) = callers(connection, sender);
    let message = call();
    let header = message.header();
    let of = || callers.of(&header);
    let (first, second) = future::zip(of(), of()).await;
    assert_eq!(first.unwrap().account.uid, 5);
    assert!(second.is_err());
    let left = requests.try_recv();
    let is_left = matches!(left, Ok(ServiceRequest::Left(name)) if &*name == ":1.7");
    (is_left, clients.leave(":1.7").is_some())
}

#[test]
fn a_caller_whose_number_has_no_account_is_turned_away() {
    let fault_of = async |uid| {
        let (_server, connection) = connected(1, uid, Then::Gone).await;
        let (sender, _requests) = RequestSender::new(Waker::new().unwrap());
        let (callers, clients) = callers(connection, sender);
        let message = call();
        let answer = callers.of(&message.header()).await;
        assert_eq!(clients.enter(":1.7").account.is_some(), answer.is_ok());
        answer.err()
    };
    // One as user namespaces have, and one that every machine has.
    let fault = zbus::block_on(fault_of(4_000_000_000));
    assert!(
        matches!(&fault, Some(Fault::NotPermitted(why)) if why.contains("has no account")),
        "{fault:?}"
    );
    assert!(zbus::block_on(fault_of(5)).is_none());
}

#[test]
fn what_a_connection_holds_is_given_back_when_the_bus_no_longer_knows_it_for_another_call() {
    assert_eq!(zbus::block_on(two_calls(Then::Gone)), (true, false));
}

#[test]
fn a_connection_that_the_bus_cannot_be_asked_about_now_is_still_there() {
    assert_eq!(zbus::block_on(two_calls(Then::NotNow)), (false, true));
}
