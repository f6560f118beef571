//! A page whose animation frames are counted in the browser itself, and the server on loopback that
//! hands it out and takes the figures in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;

/// More than the figures of ten minutes.
const LONGEST: usize = 4 << 20;

/// Draws a canvas at each animation frame, and posts when they came, in milliseconds of the epoch.
const PAGE: &str = "<!doctype html><canvas id=c width=800 height=600></canvas><script>
const c = document.getElementById('c').getContext('2d'), times = [];
let told = false;
function draw() {
  const now = performance.timeOrigin + performance.now();
  times.push(now.toFixed(1));
  c.clearRect(0, 0, 800, 600);
  for (let i = 0; i < 400; i++) {
    c.fillStyle = `hsl(${(i * 7 + times.length) % 360} 80% 50%)`;
    c.beginPath();
    c.arc(400 + 300 * Math.sin(i + times.length / 40), 300 + 250 * Math.cos(i * 1.3), 12, 0, 7);
    c.fill();
  }
  if (now < END) requestAnimationFrame(draw);
  else if (!told) { told = true; fetch('/frames', { method: 'POST', body: times.join(' ') }); }
}
requestAnimationFrame(draw);
</script>";

/// Hands out the page, and waits for its figures.
pub(super) struct PageServer {
    port: u16,
    figures: Receiver<Vec<f64>>,
}

impl PageServer {
    /// For a page that counts until `end`.
    pub(super) fn start(end: SystemTime) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        let end_ms = end.duration_since(UNIX_EPOCH)?.as_millis();
        let page = PAGE.replace("END", &end_ms.to_string());
        let (sender, figures) = channel();
        // Ends with the experiment: a browser that was killed never asks again.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(times) = answer(stream, &page)
                    && sender.send(times).is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { port, figures })
    }

    /// Where the page is.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// When frames were drawn, in seconds since `began`; none if the page does not tell in time.
    pub(super) fn times(&self, began: SystemTime, patience: Duration) -> Option<Vec<f64>> {
        let began_ms = began.duration_since(UNIX_EPOCH).ok()?.as_secs_f64() * 1000.0;
        let times = self.figures.recv_timeout(patience).ok()?;
        Some(times.iter().map(|ms| (ms - began_ms) / 1000.0).collect())
    }
}

/// Answers one request; gives what was posted.
fn answer(mut stream: TcpStream, page: &str) -> Option<Vec<f64>> {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?.take(LONGEST as u64));
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let body = if first.starts_with("GET / ") {
        page
    } else {
        ""
    };
    let posted = first.starts_with("POST /frames ").then(|| {
        let mut text = vec![0; length.min(LONGEST)];
        reader.read_exact(&mut text).ok()?;
        Some(numbers(&String::from_utf8_lossy(&text)))
    });
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
    let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
    posted?
}

fn numbers(text: &str) -> Vec<f64> {
    let words = text.split_ascii_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_handed_out_and_its_figures_are_taken_in() {
        let server = PageServer::start(SystemTime::now()).unwrap();
        let ask = |request: &str| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).unwrap();
            said
        };
        assert!(ask("GET / HTTP/1.1\r\n\r\n").contains("requestAnimationFrame"));
        assert!(ask("GET /favicon.ico HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        let began = UNIX_EPOCH + Duration::from_millis(1000);
        ask("POST /frames HTTP/1.1\r\nContent-Length: 9\r\n\r\n1500 2000");
        let times = server.times(began, Duration::from_secs(5)).unwrap();
        assert_eq!(times, [0.5, 1.0]);
    }
}
