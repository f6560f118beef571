# The case goes on for ever.
# seconds: 15
# told: no end after 15 s
while :; do :; done
