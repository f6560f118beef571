# The guest is switched off before init has said how the case ended.
# told: the guest ended without saying how
poweroff -f
