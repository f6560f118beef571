/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Asks onbeat's service over D-Bus, by systemd's sd-bus.
 *
 * That library is loaded when it is first needed: a process with the privilege, or that never
 * reserves, does without it.
 *
 * There is one connection for the process, because the service puts back what it gave when the
 * connection ends. A forked child must not keep its parent's alive: it closes its copy, and has its
 * own if it asks. A fork waits while the connection is being made or given up, so that the copy is
 * known; never for an answer.
 *
 * The service has the calls of one connection about one thread take effect in the order in which
 * they were sent.
 */
#include "reservation.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libsystemd.so.0"
#define NAME "org.onbeat.Manager1"
#define PATH "/org/onbeat/Manager1"
#define ERRORS "org.onbeat.Error."
#define KIT "org.freedesktop.RealtimeKit1"
#define KIT_PATH "/org/freedesktop/RealtimeKit1"
#define BUS "org.freedesktop.DBus.Error."

/* As in systemd/sd-bus.h, which need not be there to build this. */
struct bus;
struct bus_message;
struct bus_error {
	const char *name;
	const char *message;
	int need_free;
};

static struct {
	int (*open_system)(struct bus **bus);
	int (*get_fd)(struct bus *bus);
	int (*call_method)(struct bus *bus, const char *destination, const char *path,
			   const char *interface, const char *member, struct bus_error *error,
			   struct bus_message **reply, const char *types, ...);
	int (*call_method_async)(struct bus *bus, void *slot, const char *destination,
				 const char *path, const char *interface, const char *member,
				 void *callback, void *userdata, const char *types, ...);
	int (*message_read)(struct bus_message *message, const char *types, ...);
	struct bus_message *(*message_unref)(struct bus_message *message);
	struct bus *(*close)(struct bus *bus);
	void (*error_free)(struct bus_error *error);
} sd_bus;

/* Held during a call, which may wait for the service for long. */
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;
/* Held for the moments in which the connection changes. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
/* This thread changes it: sd-bus may fork, to reach a bus through another program. */
static _Thread_local bool changes_it;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static char load_error[256];
static struct bus *connection;
static int connection_fd = -1;

static void before_fork(void)
{
	if (!changes_it)
		pthread_mutex_lock(&changing);
}

static void after_fork_in_parent(void)
{
	if (!changes_it)
		pthread_mutex_unlock(&changing);
}

/* sd-bus refuses to touch its copy of the parent's connection. */
static void after_fork_in_child(void)
{
	if (connection_fd >= 0)
		close(connection_fd);
	connection_fd = -1;
	connection = NULL;
	/* A thread that had them is not in this process. */
	pthread_mutex_init(&calling, NULL);
	pthread_mutex_init(&changing, NULL);
}

static void load(void)
{
	const struct {
		const char *name;
		void *place;
	} wanted[] = {
		{ "sd_bus_open_system", &sd_bus.open_system },
		{ "sd_bus_get_fd", &sd_bus.get_fd },
		{ "sd_bus_call_method", &sd_bus.call_method },
		{ "sd_bus_call_method_async", &sd_bus.call_method_async },
		{ "sd_bus_message_read", &sd_bus.message_read },
		{ "sd_bus_message_unref", &sd_bus.message_unref },
		{ "sd_bus_close_unref", &sd_bus.close },
		{ "sd_bus_error_free", &sd_bus.error_free },
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool complete = library;

	for (size_t i = 0; complete && i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *found = dlsym(library, wanted[i].name);

		/* POSIX has a pointer to a function and one to an object look the same. */
		memcpy(wanted[i].place, &found, sizeof(found));
		complete = found;
	}
	if (!complete)
		snprintf(load_error, sizeof(load_error), "%s", dlerror());
	else if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child))
		snprintf(load_error, sizeof(load_error), "no memory");
}

static void begin_to_change(void)
{
	pthread_mutex_lock(&changing);
	changes_it = true;
}

static void end_to_change(void)
{
	changes_it = false;
	pthread_mutex_unlock(&changing);
}

static void disconnect(void)
{
	if (!connection)
		return;
	begin_to_change();
	sd_bus.close(connection);
	connection = NULL;
	connection_fd = -1;
	end_to_change();
}

static int connect_to_bus(void)
{
	int error;

	if (connection)
		return 0;
	begin_to_change();
	error = sd_bus.open_system(&connection);
	if (error < 0)
		connection = NULL;
	else
		connection_fd = sd_bus.get_fd(connection);
	end_to_change();
	return error < 0 ? error : 0;
}

static int error_of(const char *name)
{
	static const struct {
		const char *name;
		int error;
	} known[] = {
		{ ERRORS "NoSuchTask", -ESRCH },     { ERRORS "NotPermitted", -EPERM },
		{ ERRORS "OverQuota", -EDQUOT },     { ERRORS "NoRoom", -EBUSY },
		{ ERRORS "TakenOver", -EPERM },      { ERRORS "NotHeld", -ENOENT },
		{ ERRORS "Invalid", -EINVAL },       { ERRORS "TooManyCalls", -EAGAIN },
		{ BUS "ServiceUnknown", -ENOTCONN }, { BUS "NameHasNoOwner", -ENOTCONN },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(name, known[i].name) == 0)
			return known[i].error;
	}
	/* The bus cannot start the service. */
	return strncmp(name, BUS "Spawn.", strlen(BUS "Spawn.")) == 0 ? -ENOTCONN : -EIO;
}

static bool is_lost(int result)
{
	return !connection || result == -ENOTCONN || result == -ECONNRESET || result == -EPIPE;
}

struct call {
	const char *method;
	enum onbeat_types types;
	uint32_t first;
	uint64_t second, third, fourth;
};

static int call_once(const struct call *call, struct onbeat_answer *answer, struct bus_error *error)
{
	static const char *const types[] = { "u", "u", "utt", "uttt" };
	struct bus_message *reply = NULL;
	int result = connect_to_bus();

	if (result >= 0 && call->types == ONBEAT_UUB)
		result = sd_bus.call_method(connection, NAME, PATH, NAME, call->method, error,
					    &reply, "uub", call->first, (uint32_t)call->second,
					    (int)call->third);
	else if (result >= 0 && call->types == ONBEAT_KIT_TU)
		result = sd_bus.call_method(connection, KIT, KIT_PATH, KIT, call->method, error,
					    &reply, "tu", (uint64_t)call->first,
					    (uint32_t)call->second);
	else if (result >= 0)
		result = sd_bus.call_method(connection, NAME, PATH, NAME, call->method, error,
					    &reply, types[call->types], call->first, call->second,
					    call->third, call->fourth);
	if (result >= 0 && call->types == ONBEAT_BALANCE)
		result = sd_bus.message_read(reply, "tt", &answer->consumed_ns,
					     &answer->remaining_ns);
	sd_bus.message_unref(reply);
	return result;
}

static void answered(struct onbeat_answer *answer, int error, const char *why)
{
	answer->error = error;
	snprintf(answer->why, sizeof(answer->why), "%s", why);
}

static void call_locked(const struct call *call, struct onbeat_answer *answer)
{
	struct bus_error error = { 0 };
	int result = call_once(call, answer, &error);

	/* A bus that ended meanwhile may be back. */
	if (result < 0 && is_lost(result)) {
		disconnect();
		sd_bus.error_free(&error);
		result = call_once(call, answer, &error);
	}
	if (result >= 0) {
		answered(answer, 0, "");
	} else if (is_lost(result) || !error.name) {
		disconnect();
		answered(answer, -ENOTCONN, strerror(-result));
	} else if (result == -ETIMEDOUT) {
		answered(answer, result,
			 "onbeat's service does not answer: see 'systemctl status onbeat', and ask "
			 "again");
	} else {
		answered(answer, error_of(error.name), error.message ? error.message : error.name);
	}
	sd_bus.error_free(&error);
}

void onbeat_ask_(struct onbeat_answer *answer, const char *method, enum onbeat_types types,
		 uint32_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
	const struct call call = { method, types, first, second, third, fourth };
	int cancelable;

	/* A thread cancelled in the middle of it would keep the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
	pthread_once(&loaded, load);
	if (load_error[0]) {
		answered(answer, -ENOTCONN, load_error);
	} else {
		pthread_mutex_lock(&calling);
		call_locked(&call, answer);
		pthread_mutex_unlock(&calling);
	}
	pthread_setcancelstate(cancelable, NULL);
}

void onbeat_withdraw_(pid_t tid)
{
	int cancelable;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
	pthread_mutex_lock(&calling);
	/* The service puts back what a closed connection had asked for. */
	if (connection)
		sd_bus.call_method_async(connection, NULL, NAME, PATH, NAME, "Release", NULL, NULL,
					 "u", (uint32_t)tid);
	pthread_mutex_unlock(&calling);
	pthread_setcancelstate(cancelable, NULL);
}
