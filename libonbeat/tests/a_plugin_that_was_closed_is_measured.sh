#!/bin/sh
# A plugin that was built with ONBEAT_BENCHMARK is closed before the program ends: what was measured in it is
# written, and one that is loaded again goes on with the same line.
# ONBEAT_FORM is linux or posix.
cd "$(dirname "$0")/.." || exit 1
form=${ONBEAT_FORM:-linux}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
	echo "$*"
	exit 1
}

cat >"$out/plugin.c" <<'CODE'
#define ONBEAT_BENCHMARK
#include <onbeat/within.h>
void plugin(void);
void plugin(void)
{
	onbeat_try_within_rel (ONBEAT_MS(1)) {
	}
	onbeat_handle
	onbeat_end;
}
CODE
cat >"$out/program.c" <<'CODE'
#include <dlfcn.h>
int main(int count, char **arguments)
{
	for (int i = 0; i < 3; i++) {
		void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : 0;
		void (*plugin)(void);
		if (!library)
			return 1;
		*(void **)&plugin = dlsym(library, "plugin");
		plugin();
		plugin();
		dlclose(library);
		if (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD))
			return 2;
	}
	return 0;
}
CODE
make --no-print-directory -s NOTIFY="$form" OUT="$out/build" >/dev/null || fail "it cannot be built"
built="$out/build/$form-release"
cc -O2 -std=gnu11 -Iinclude -fPIC -shared -o "$out/plugin.so" "$out/plugin.c" -L"$built" -l:libonbeat.so.0 ||
	fail "the plugin cannot be built"
cc -O2 -o "$out/program" "$out/program.c" -ldl || fail "the program cannot be built"
ONBEAT_BENCHMARK_OUT="$out/blocks" LD_LIBRARY_PATH="$built" "$out/program" "$out/plugin.so" ||
	fail "the program ended with status $?"
[ "$(grep -c plugin.c "$out/blocks.txt")" = 1 ] || fail "not one line: $(cat "$out/blocks.txt")"
grep -q '"count": 6,' "$out/blocks.json" || fail "not 6 blocks: $(cat "$out/blocks.json")"
