//! A container runtime's bytes, and the annotations of pods in them.
#![no_main]

use onbeat_node::annotations::entitlement;
use onbeat_node::api::StateChangeEvent;
use onbeat_node::mux::Incoming;
use onbeat_node::rules::plain;
use onbeat_node::ttrpc::TtrpcRequest;
use prost::Message as _;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    look(bytes);
    let mut incoming = Incoming::default();
    // In pieces, as a socket gives them.
    for part in bytes.chunks(7) {
        let Ok(messages) = incoming.feed(part) else {
            return;
        };
        for (_, message) in messages {
            if let Ok(call) = TtrpcRequest::decode(message.payload.as_slice()) {
                look(&call.payload);
            }
        }
    }
});

fn look(payload: &[u8]) {
    let Ok(change) = StateChangeEvent::decode(payload) else {
        return;
    };
    let (pod, container) = (
        change.pod.unwrap_or_default(),
        change.container.unwrap_or_default(),
    );
    match entitlement(&pod.annotations, &container) {
        Ok(Some(bandwidth)) => assert!((0.0..=100.0).contains(&bandwidth.as_cpus())),
        Ok(None) => {}
        Err(mistake) => {
            assert!(mistake.to_string().len() < 65_536 + pod.name.len() + payload.len())
        }
    }
    assert!(plain(&pod.name).len() <= 400);
}
