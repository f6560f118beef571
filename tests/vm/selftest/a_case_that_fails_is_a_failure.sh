# A check that does not hold ends the case.
# told: the case ended with 1
check "one is two" 1 = 2
echo "this is never said"
