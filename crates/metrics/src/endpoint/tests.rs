use super::*;

/// The answer to a caller that says `said`, while the loop makes pages as it does.
fn asked(said: &[u8]) -> String {
    let endpoint = Endpoint::open("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut caller = TcpStream::connect(endpoint.address).unwrap();
    caller.write_all(said).unwrap();
    let turns = Arc::new(AtomicBool::new(true));
    let its_turns = Arc::clone(&turns);
    let reader = std::thread::spawn(move || {
        let mut answer = String::new();
        let outcome = caller.read_to_string(&mut answer);
        its_turns.store(false, Ordering::Release);
        outcome.map(|_| answer).unwrap_or_default()
    });
    while turns.load(Ordering::Acquire) {
        endpoint.answer(|| "the page\n".to_owned());
        std::thread::yield_now();
    }
    reader.join().unwrap()
}

#[test]
fn who_asks_for_metrics_gets_the_page() {
    for path in ["/metrics", "/metrics?name=x"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = asked(request.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(head.contains("Content-Length: 9\r\n"), "{answer}");
        assert!(head.contains("text/plain; version=0.0.4"), "{answer}");
        assert_eq!(body, "the page\n");
    }
}

#[test]
fn who_asks_for_something_else_is_told_so() {
    let long = [
        b"GET /metrics HTTP/1.1\r\nA: ".as_slice(),
        &[b'x'; 2 * LONGEST],
    ]
    .concat();
    let many = "A: b\r\n".repeat(HEADERS + 1);
    let many = format!("GET /metrics HTTP/1.1\r\n{many}\r\n");
    for (said, status) in [
        (b"GET / HTTP/1.1\r\n\r\n".as_slice(), "404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"GET /metrics HTTP/1.1\r\nHost: a.example\r\n\r\n", "403"),
        (b"\x00\xff nonsense\r\n\r\n", "400"),
        (many.as_bytes(), "400"),
    ] {
        let answer = asked(said);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    // Bytes that are left unread may cut the answer off.
    let answer = asked(&long);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 400 "),
        "{answer}"
    );
}

#[test]
fn who_asks_for_another_name_than_this_machines_own_gets_nothing() {
    let wanted = |host: &str| {
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\n\r\n");
        understood(request.as_bytes())
    };
    for host in [
        "127.0.0.1:9464",
        "[::1]:9464",
        "[::1]",
        "LocalHost:1",
        "localhost",
    ] {
        assert_eq!(wanted(host), Some(RequestKind::Metrics), "{host}");
    }
    for host in ["a.example:9464", "a.example", "127.0.0.1.a.example", ""] {
        assert_eq!(wanted(host), Some(RequestKind::Elsewhere), "{host}");
    }
}

#[test]
fn an_address_that_is_in_use_is_told_with_a_remedy() {
    let first = Endpoint::open("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Endpoint::open(first.address).unwrap_err().to_string();
    assert!(error.contains("choose another port"), "{error}");
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    let endpoint = Endpoint::open("127.0.0.1:0".parse().unwrap()).unwrap();
    // Each may be silent for 30 s here.
    let mut silent: Vec<TcpStream> = (0..3 * CALLERS)
        .map(|_| TcpStream::connect(endpoint.address).unwrap())
        .collect();
    let mut caller = TcpStream::connect(endpoint.address).unwrap();
    let patience = Some(Duration::from_secs(20));
    caller.set_read_timeout(patience).unwrap();
    caller.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut said = String::new();
    let outcome = caller.read_to_string(&mut said);
    assert!(said.starts_with("HTTP/1.1 404 "), "{said} {outcome:?}");
    // Those that came first had to go.
    let first = silent.first_mut().unwrap();
    first.set_read_timeout(patience).unwrap();
    assert_eq!(first.read(&mut [0]).unwrap(), 0);
}
