#!/bin/sh
# A program that carries its own copy of the library may load a plugin that uses the shared one: the deadlines
# of both are enforced. One's blocks inside the other's belong into a protected section, as any call into a library.
# ONBEAT_FORM is linux or posix. CC and EXTRA build it, UNDER runs it; ONBEAT_BUILT is where the library is already.
cd "$(dirname "$0")/.." || exit 1
form=${ONBEAT_FORM:-linux}
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
cat >"$out/host.c" <<'CODE'
#include "block.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int (*plugin)(void);
static int protected_plugin(void)
{
	int violated;
	onbeat_within_disable();
	violated = plugin();
	onbeat_within_enable();
	return violated;
}
#define check(condition) ((condition) ? (void)0 : (puts(#condition), exit(1)))
int main(int count, char **arguments)
{
	void *library;
	alarm(60);
	check(count == 2);
	check(is_violated(ONBEAT_MS(2), 0));
	library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	check(library);
	*(void **)&plugin = dlsym(library, "plugin");
	check(plugin);
	for (volatile int i = 0; i < 10; i++) {
		check(plugin());
		check(is_violated(ONBEAT_MS(2), 0));
		check(is_violated(ONBEAT_MS(1), protected_plugin));
		check(is_violated(ONBEAT_MS(3), protected_plugin));
	}
	check(plugin());
	return 0;
}
CODE
built=${ONBEAT_BUILT:-$out/build/$form-release}
[ -n "${ONBEAT_BUILT:-}" ] || make --no-print-directory -s NOTIFY="$form" OUT="$out/build" >/dev/null ||
	fail "it cannot be built"
compile() {
	# Word splitting is meant.
	# shellcheck disable=SC2086
	"${CC:-cc}" -O2 -std=gnu11 -Iinclude ${EXTRA:-} "$@"
}
compile -fPIC -shared -o "$out/plugin.so" "$out/plugin.c" "$built/libonbeat.so.0" -Wl,-rpath,"$built" ||
	fail "the plugin cannot be built"
compile -o "$out/host" "$out/host.c" "$built/libonbeat.a" -pthread -lrt -ldl || fail "the program cannot be built"
# shellcheck disable=SC2086
${UNDER:-} "$out/host" "$out/plugin.so" || fail "a violation did not come through"
