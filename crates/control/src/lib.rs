//! The loop that wires sensing, inferring, deciding and acting.
