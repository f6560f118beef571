//! The statements about the kernel are so.

use onbeat_act::kernel;
use onbeat_model::{Actuator, Support};

use crate::common::{Bandwidth, actuator, needs_root};

#[test]
fn a_kernel_that_takes_reservations_is_said_to() {
    needs_root!();
    let _bandwidth = Bandwidth::a_little();
    let features = kernel::probe();
    for name in ["CAP_SYS_NICE", "SCHED_DEADLINE", "GRUB reclaiming"] {
        let feature = features
            .iter()
            .find(|feature| feature.name == name)
            .unwrap();
        assert_eq!(feature.standing, Support::Full, "{feature:?}");
        assert_eq!(feature.advice, "");
    }
    for feature in &features {
        let helps = feature.standing == Support::Full || !feature.advice.is_empty();
        assert!(helps, "{feature:?}");
    }
    let (_directory, actuator) = actuator();
    assert_eq!(kernel::capacity(), actuator.capacity());
}
