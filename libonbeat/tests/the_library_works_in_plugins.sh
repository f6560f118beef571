#!/bin/sh
# A program that carries its own copy of the library may load a plugin that uses the shared one, however little room for
# thread-local variables is left: the deadlines of both are enforced. (One's blocks inside the other's belong into a
# protected section, as any call into a library.) What was measured in a plugin is written though it was closed, and
# one that is loaded again goes on with the same line.
# ONBEAT_FORM is linux or posix. CC and EXTRA build it, UNDER runs it; ONBEAT_BUILT is where the library is already.
cd "$(dirname "$0")/.." || exit 1
# shellcheck disable=SC1091
. tests/missing.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
	echo "$*"
	exit 1
}

cat >"$out/block.h" <<'CODE'
#include <onbeat/within.h>
static int is_violated(int64_t limit_ns, int (*body)(void))
{
	volatile int violated = 0;
	onbeat_try_within_rel (limit_ns) {
		if (body)
			body();
		for (;;)
			;
	}
	onbeat_handle
		onbeat_when (onbeat_deadline_violation) {
			violated = 1;
		}
	onbeat_end;
	return violated;
}
CODE
cat >"$out/plugin.c" <<'CODE'
#include "block.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
int plugin(void);
/* Both copies' signals come at the same time: neither may be lost. */
static int outlast_both(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	usleep(10000);
	pthread_sigmask(SIG_SETMASK, &before, 0);
	return 0;
}
int plugin(void)
{
	return is_violated(ONBEAT_MS(2), outlast_both);
}
CODE
cat >"$out/measured.c" <<'CODE'
#define ONBEAT_BENCHMARK
#include <onbeat/within.h>
int plugin(void);
int plugin(void)
{
	onbeat_try_within_rel (ONBEAT_MS(1)) {
	}
	onbeat_handle
	onbeat_end;
	return 1;
}
CODE
cat >"$out/host.c" <<'CODE'
#include "block.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define check(condition) ((condition) ? (void)0 : (puts(#condition), exit(1)))
static int (*plugin)(void);
static void *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		puts(dlerror());
	check(library);
	*(void **)&plugin = dlsym(library, "plugin");
	check(plugin);
	return library;
}
static int protected_plugin(void)
{
	int violated;
	onbeat_within_disable();
	violated = plugin();
	onbeat_within_enable();
	return violated;
}
int main(int count, char **arguments)
{
	alarm(60);
	check(count == 3);
	check(is_violated(ONBEAT_MS(2), 0));
	load(arguments[1]);
	for (volatile int i = 0; i < 10; i++) {
		check(plugin());
		check(is_violated(ONBEAT_MS(2), 0));
		check(is_violated(ONBEAT_MS(1), protected_plugin));
		check(is_violated(ONBEAT_MS(3), protected_plugin));
	}
	for (int i = 0; i < 3; i++) {
		void *library = load(arguments[2]);
		plugin();
		plugin();
		dlclose(library);
	}
	return 0;
}
CODE

# In the folder that is its argument the library is built.
works_with() {
	compile() {
		# Word splitting is meant.
		# shellcheck disable=SC2086
		"${CC:-cc}" -O2 -std=gnu11 -Iinclude ${EXTRA:-} "$@"
	}
	for plugin in plugin measured; do
		compile -fPIC -shared -o "$out/$plugin.so" "$out/$plugin.c" "$1/libonbeat.so.0" -Wl,-rpath,"$1" ||
			fail "the plugin cannot be built"
	done
	compile -o "$out/host" "$out/host.c" "$1/libonbeat.a" -pthread -lrt -ldl || fail "the program cannot be built"
	# shellcheck disable=SC2086
	ONBEAT_BENCHMARK_OUT="$out/blocks" ${UNDER:-} "$out/host" "$out/plugin.so" "$out/measured.so" ||
		fail "a violation did not come through"
	[ "$(grep -c measured.c "$out/blocks.txt")" = 1 ] || fail "not one line: $(cat "$out/blocks.txt")"
	grep -q '"count": 6,' "$out/blocks.json" || fail "not 6 blocks: $(cat "$out/blocks.json")"
}

if [ -n "${ONBEAT_BUILT:-}" ]; then
	works_with "$ONBEAT_BUILT"
	exit
fi
form=${ONBEAT_FORM:-linux}
make --no-print-directory -s NOTIFY="$form" OUT="$out/build" >/dev/null || fail "it cannot be built"
works_with "$out/build/$form-release"
# glibc keeps 512 bytes for all libraries that are loaded late and want their variables at hand.
bytes=$(readelf -lW "$out/build/$form-release/libonbeat.so.0" | awk '$1 == "TLS" { print $6 }')
[ $((${bytes:-0})) -le 64 ] || fail "its thread-local variables take $((bytes)) bytes"

is_here musl-gcc || skip_if_missing
make --no-print-directory -s NOTIFY=posix CC=musl-gcc OUT="$out/musl" >"$out/said" 2>&1 || {
	cat "$out/said"
	# The kernel's headers may be missing there.
	is_missing "it cannot be built with musl"
	skip_if_missing
}
CC=musl-gcc
works_with "$out/musl/posix-release"
