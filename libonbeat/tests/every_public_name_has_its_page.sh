#!/bin/sh
# Every public name has a man page and a place in a test, each page its place in a compiled example; each is sound.
cd "$(dirname "$0")/.." || exit 1
status=0

complain() {
	echo "$*"
	status=1
}

# Names that end in an underscore are the library's own, and so is what mark.h says to the other headers.
functions=$(sed -n '/^struct [a-z_]*;/d; s/^\(extern \|ONBEAT_MARKS \)\?[a-z].*[ *]\(onbeat_[a-z_]*[a-z]\)[;(\[].*/\2/p' include/onbeat/*.h)
macros=$(sed -n 's/^#define \(onbeat_[a-z_]*[a-z]\|ONBEAT_[A-Z]*[A-Z_]*[A-Z]\)\([ (].*\|$\)/\1/p' include/onbeat/*.h |
	grep -v -e '_H$' -e '^ONBEAT_MARK')
for name in $(printf '%s\n' "$functions" "$macros" | sort -u); do
	[ -e "man/$name.3" ] || complain "no page: $name"
	grep -q '^\.so ' "man/$name.3" || grep -qw "$name" examples/*.c || complain "in no example: $name"
	grep -qw "$name" tests/*.c tests/*.cpp || complain "in no test: $name"
done
for page in man/*.3 man/*.7; do
	linked=$(sed -n 's|^\.so man3/||p' "$page")
	if [ -n "$linked" ]; then
		[ -e "man/$linked" ] || complain "$page leads to $linked, which is not there"
		name=$(basename "$page" .3)
		grep -qw "$name" "man/$linked" || complain "$page leads to $linked, which does not mention $name"
	fi
	about=$(sed -n 's/^\.Nm \([A-Za-z_]*\).*/\1/p' "$page")
	while read -r example; do
		[ -z "$example" ] || printf '%s\n' "$about" | grep -qwFf - "$example" ||
			complain "$page names $example, which does not use what the page is about"
	done <<-END
		$(grep -o 'examples/[a-z_]*\.c' "$page")
	END
done
if command -v mandoc >/dev/null; then
	# A page that only leads to another is nothing to look at by itself.
	pages=$(grep -L '^\.so ' man/*.3 man/*.7)
	for page in $pages; do
		mandoc -T lint -W warning "$page" || status=1
	done
elif [ -n "${CI:-}" ]; then
	complain "mandoc is not here: scripts/setup.sh test installs it"
fi
exit $status
