//! From demand to reservations that fit together; pure.
