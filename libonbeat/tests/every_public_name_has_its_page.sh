#!/bin/sh
# Every function and macro of the public headers has a man page, and each page is sound.
cd "$(dirname "$0")/.." || exit 1
status=0
names=$(grep -hoE '\bonbeat_[a-z_]+[a-z] ?\(' include/onbeat/*.h | tr -d ' (' | sort -u
	grep -hoE '^#define (onbeat_[a-z_]+[a-z]|ONBEAT_DEFINE_EXCEPTION)' include/onbeat/*.h | sed 's/^#define //' | sort -u)
for name in $names; do
	if [ ! -e "man/$name.3" ]; then
		echo "no page: $name"
		status=1
	fi
done
for page in man/*.3 man/*.7; do
	linked=$(sed -n 's|^\.so man3/||p' "$page")
	if [ -n "$linked" ] && [ ! -e "man/$linked" ]; then
		echo "$page leads to $linked, which is not there"
		status=1
	fi
done
exit $status
