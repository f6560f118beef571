# The case does nothing wrong, but its results have nowhere to go.
# told: its results did not arrive whole
# results: /dev/null
true
