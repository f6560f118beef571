# Of two checks of one name one is this run's.
# beside: ok: one thing is checked [9 -lt 10]
check "one thing is checked" 1 -lt 10
