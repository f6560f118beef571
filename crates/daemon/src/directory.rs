//! The database of users, asked on a thread of its own and remembered: if it is a server's that
//! does not answer, neither the loop nor the threads that talk to the bus wait for it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};
use async_io::Timer;
use futures_lite::future;

use crate::account::Account;

/// For how long what was found is not looked up again. sssd and nscd remember for minutes to hours.
const FRESH: Duration = Duration::from_secs(60);
/// How long a caller waits for a look-up. A bus gives a caller 25 s by default, a fifth of which a
/// slow directory may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// An account that was looked up longer ago is forgotten where there is no room. Ten times `FRESH`.
const KEPT: Duration = Duration::from_secs(600);
/// The most accounts that are known. One person may have 65,536 numbers in user namespaces, and no
/// machine has as many people.
const MOST_KNOWN: usize = 4096;
/// The most look-ups that wait. With a directory that does not answer, all are over after
/// `PATIENCE`; 256 users who call at once are more than a machine has.
const MOST_WAITING: usize = 256;

type AccountCache = HashMap<u32, (Instant, Arc<Account>)>;

#[derive(Debug)]
struct Directory {
    known: Arc<Mutex<AccountCache>>,
    wanted: Sender<UserLookup>,
}

#[derive(Debug)]
struct UserLookup {
    uid: u32,
    done: Option<Sender<()>>,
}

static DIRECTORY: LazyLock<Directory> =
    LazyLock::new(|| Directory::new(|uid| Account::look_up(uid, &[])));

/// Starts the thread, with the priority that the caller has now.
pub(crate) fn begin() {
    LazyLock::force(&DIRECTORY);
}

/// The user `uid`, as far as that is known already; it is looked up for the next time if not, or if
/// it was long ago.
pub(crate) fn known(uid: u32) -> Option<Arc<Account>> {
    DIRECTORY.known(uid)
}

/// The same; without his groups until he was looked up, because the loop does not wait for that.
pub(crate) fn now(uid: u32) -> Arc<Account> {
    known(uid).unwrap_or_else(|| Arc::new(Account::of_no_group(uid)))
}

pub(crate) fn has(uid: u32) -> bool {
    DIRECTORY.look(uid).is_some()
}

pub(crate) async fn find(uid: u32) -> Option<Arc<Account>> {
    DIRECTORY.find(uid, PATIENCE).await
}

impl Directory {
    fn new(look_up: impl Fn(u32) -> Account + Send + 'static) -> Self {
        let known: Arc<Mutex<AccountCache>> = Arc::default();
        let (wanted, requests) = async_channel::bounded(MOST_WAITING);
        let answer = {
            let known = Arc::clone(&known);
            move || answer(&known, &requests, look_up)
        };
        let thread = std::thread::Builder::new().name("users".to_owned());
        if let Err(error) = thread.spawn(answer) {
            // The requests are gone with the thread, and no user is found.
            tracing::error!("cannot start a thread: {error}");
        }
        Self { known, wanted }
    }

    fn look(&self, uid: u32) -> Option<(Instant, Arc<Account>)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&uid).cloned()
    }

    fn known(&self, uid: u32) -> Option<Arc<Account>> {
        let known = self.look(uid);
        if !known.as_ref().is_some_and(is_fresh) {
            // Where too many wait, it is asked for again.
            let _ = self.wanted.try_send(UserLookup { uid, done: None });
        }
        known.map(|(_, account)| account)
    }

    async fn find(&self, uid: u32, patience: Duration) -> Option<Arc<Account>> {
        let known = self.look(uid);
        if !known.as_ref().is_some_and(is_fresh) {
            let (done, told) = async_channel::bounded(1);
            let wanted = UserLookup {
                uid,
                done: Some(done),
            };
            if self.wanted.try_send(wanted).is_ok() {
                let answered = async { told.recv().await.is_ok() };
                let over = async {
                    Timer::after(patience).await;
                    false
                };
                future::or(answered, over).await;
            }
        }
        // An old account is better than none.
        self.look(uid).map(|(_, account)| account)
    }
}

fn is_fresh((at, _): &(Instant, Arc<Account>)) -> bool {
    at.elapsed() < FRESH
}

fn answer(
    known: &Mutex<AccountCache>,
    requests: &Receiver<UserLookup>,
    look_up: impl Fn(u32) -> Account,
) {
    while let Ok(UserLookup { uid, done }) = requests.recv_blocking() {
        let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = lock().get(&uid).is_some_and(is_fresh);
        if !is_known {
            let account = Arc::new(look_up(uid));
            let mut known = lock();
            make_room(&mut known);
            known.insert(uid, (Instant::now(), account));
        }
        if let Some(done) = done {
            // The caller may have given up.
            let _ = done.try_send(());
        }
    }
}

/// Forgets what is too old, and where that is not enough, the oldest number without an account,
/// before the oldest of all.
fn make_room(known: &mut AccountCache) {
    if known.len() < MOST_KNOWN {
        return;
    }
    known.retain(|_, (at, _)| at.elapsed() < KEPT);
    if known.len() >= MOST_KNOWN {
        let oldest = known
            .iter()
            .min_by_key(|(_, (at, account))| (account.is_known(), *at));
        if let Some(oldest) = oldest.map(|(uid, _)| *uid) {
            known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn numbers_without_an_account_take_a_bounded_memory_and_displace_no_account() {
        let directory = Directory::new(|uid| Account {
            groups: (uid < 10).then_some(100).into_iter().collect(),
            ..Account::of_no_group(uid)
        });
        let find = |uid| zbus::block_on(directory.find(uid, Duration::from_secs(60)));
        for uid in (1..5).chain(100_000..105_000) {
            find(uid).unwrap();
        }
        let is_there = |uid| directory.look(uid).is_some();
        assert!((1..5).all(is_there));
        assert!(is_there(104_999) && !is_there(100_000));
        assert_eq!(directory.known.lock().unwrap().len(), MOST_KNOWN);
    }

    #[test]
    fn nobody_waits_for_a_database_that_does_not_answer() {
        let (let_go, held) = mpsc::channel::<()>();
        let directory = Directory::new(move |uid| {
            if uid == 2 {
                // Until the test ends.
                let _ = held.recv();
            }
            Account::named_by_a_rule(uid)
        });
        let find = |uid, patience| zbus::block_on(directory.find(uid, patience));
        assert_eq!(directory.known(1), None);
        assert_eq!(find(1, Duration::from_secs(60)).map(|one| one.uid), Some(1));
        assert_eq!(directory.known(2), None);
        assert_eq!(find(2, Duration::from_millis(10)), None);
        assert_eq!(directory.known(1).map(|one| one.uid), Some(1));
        assert_eq!(find(1, Duration::ZERO).map(|one| one.uid), Some(1));
        drop(let_go);
        assert_eq!(find(2, Duration::from_secs(60)).map(|one| one.uid), Some(2));
    }
}
