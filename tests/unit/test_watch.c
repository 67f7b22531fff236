/* SPDX-License-Identifier: Apache-2.0 */
/* A file on a real disk, on a real loop. */
#include "broker/net/watch.h"

#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/timer.h"
#include "broker/net/loop.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cmocka.h>

/* Longer than any change takes to be told. */
#define LONG_MS 5000
/* Nothing is told that long: what was to come has come. */
#define STILL_MS (WATCH_QUIET_MS + 25)

#define NOBODY 65534

static struct loop *loop;
static struct watch *watch;
static char *directory;
static size_t told;
static char blind[ERR_TEXT_SIZE];

static void on_changed(void *ctx, const struct err *err)
{
	(void)ctx;
	told++;
	if (err)
		(void)snprintf(blind, sizeof(blind), "%s", err->text);
}

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", directory, name);
}

static void write_file(const char *name)
{
	AUTO_FREE char *path = path_of(name);
	FILE *const file = fopen(path, "we");

	if (!file)
		abort();
	assert_true(fputs("text", file) >= 0);
	if (fclose(file))
		abort();
}

static void make_directory(const char *name)
{
	AUTO_FREE char *path = path_of(name);

	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_link(const char *target, const char *name)
{
	AUTO_FREE char *path = path_of(name);

	assert_int_equal(symlink(target, path), 0);
}

static void rename_to(const char *from, const char *to)
{
	AUTO_FREE char *old = path_of(from);
	AUTO_FREE char *new = path_of(to);

	assert_int_equal(rename(old, new), 0);
}

static void mark_passed(struct timer *timer)
{
	timer->due_ms = -1;
}

/* Turns the loop for so long, or until something is told. */
static bool turn(int64_t time_ms)
{
	struct timer_queue *const timers = loop_timers(loop);
	struct timer end = {0};
	const size_t before = told;
	struct err err;

	timer_set_after(timers, &end, time_ms, mark_passed);
	while (told == before && timer_is_set(&end))
		assert_int_equal(loop_turn(loop, &err), 0);
	timer_stop(timers, &end);
	return told > before;
}

static void assert_told(void)
{
	assert_true(turn(LONG_MS));
}

static void assert_not_told(void)
{
	assert_false(turn(STILL_MS));
}

/* Watches it; the first callback has come. */
static void watch_path(const char *name)
{
	AUTO_FREE char *path = path_of(name);

	watch_set(watch, path);
	assert_told();
}

static int set_up(void **state)
{
	char name[] = "/tmp/postern-watch-XXXXXX";
	struct err err;

	(void)state;
	told = 0;
	blind[0] = '\0';
	assert_non_null(mkdtemp(name));
	directory = xstrdup(name);
	return loop_new(&loop, &err) || watch_open(loop, on_changed, NULL, &watch, &err) ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	watch_close(watch);
	loop_free(loop);
	(void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(directory);
	return 0;
}

static void the_file_is_told_and_its_neighbours_are_not(void **state)
{
	(void)state;
	write_file("file");
	watch_path("file");
	write_file("other");
	rename_to("other", "another");
	assert_not_told();
	write_file("file");
	assert_told();
	rename_to("another", "file");
	assert_told();
	AUTO_FREE char *path = path_of("file");
	assert_int_equal(chmod(path, 0640), 0);
	assert_told();
	assert_int_equal(unlink(path), 0);
	assert_told();
	write_file("file");
	assert_told();
	assert_string_equal(blind, "");
}

static void many_changes_are_told_once(void **state)
{
	(void)state;
	watch_path("file");
	for (size_t i = 0; i < 100; i++)
		write_file("file");
	assert_told();
	assert_not_told();
}

static void changes_without_an_end_are_told_all_the_same(void **state)
{
	struct err err;

	(void)state;
	watch_path("file");
	while (told < 2) {
		write_file("file");
		assert_int_equal(loop_turn(loop, &err), 0);
	}
}

static void each_link_on_the_way_is_told(void **state)
{
	(void)state;
	make_directory("volume");
	make_directory("volume/..1");
	make_directory("volume/..2");
	write_file("volume/..1/file");
	write_file("volume/..2/file");
	make_link("..1", "volume/..data");
	make_link("..data/file", "volume/file");
	make_link("volume/../volume", "way");
	watch_path("way/file");
	make_link("..2", "volume/next");
	assert_not_told();
	rename_to("volume/next", "volume/..data");
	assert_told();
	write_file("volume/..1/file");
	assert_not_told();
	write_file("volume/..2/file");
	assert_told();
	make_link("nowhere", "next");
	rename_to("next", "way");
	assert_told();
	make_directory("nowhere");
	assert_told();
	write_file("nowhere/file");
	assert_told();
}

static void what_is_missing_is_told_step_by_step(void **state)
{
	(void)state;
	watch_path("one/two/file");
	write_file("file");
	assert_not_told();
	write_file("one");
	assert_told();
	AUTO_FREE char *path = path_of("one");
	assert_int_equal(unlink(path), 0);
	make_directory("one");
	assert_told();
	make_directory("one/two");
	assert_told();
	write_file("one/two/file");
	assert_told();
	rename_to("one/two", "gone");
	assert_told();
	write_file("gone/file");
	assert_not_told();
	make_directory("one/two");
	assert_told();
}

static void a_directory_far_above_may_be_another_one(void **state)
{
	(void)state;
	make_directory("one");
	make_directory("one/two");
	make_directory("one/two/three");
	write_file("one/two/three/file");
	make_directory("other");
	make_directory("other/two");
	make_directory("other/two/three");
	write_file("other/two/three/file");
	watch_path("one/two/three/file");
	write_file("one/neighbour");
	write_file("one/two/neighbour");
	assert_not_told();
	rename_to("one", "gone");
	assert_told();
	rename_to("other", "one");
	assert_told();
	write_file("gone/two/three/file");
	assert_not_told();
	write_file("one/two/three/file");
	assert_told();
}

static void a_circle_of_links_ends(void **state)
{
	(void)state;
	make_link("b", "a");
	make_link("a", "b");
	watch_path("a");
	write_file("c");
	rename_to("c", "a");
	assert_told();
	write_file("a");
	assert_told();
}

static void another_path_takes_the_place(void **state)
{
	AUTO_FREE char *path = path_of("two");

	(void)state;
	watch_path("one");
	watch_path("two");
	write_file("one");
	watch_set(watch, path);
	assert_not_told();
	write_file("two");
	assert_told();
	write_file("two");
	watch_set(watch, NULL);
	write_file("two");
	assert_not_told();
}

/* To root every directory is open. */
static void act_as(uid_t user)
{
	assert_int_equal(seteuid(user), 0);
	/* Which has ended that: the leak check at the end needs it. */
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

static void what_cannot_be_watched_is_said_once(void **state)
{
	const uid_t self = geteuid();

	(void)state;
	make_directory("closed");
	write_file("closed/file");
	AUTO_FREE char *path = path_of("closed");
	assert_int_equal(chmod(path, 0100), 0);
	act_as(self ? self : NOBODY);
	watch_path("closed/file");
	act_as(self);
	assert_int_equal(chmod(path, 0700), 0);
	assert_non_null(strstr(blind, " cannot be watched: "));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(the_file_is_told_and_its_neighbours_are_not),
		CASE(many_changes_are_told_once),
		CASE(changes_without_an_end_are_told_all_the_same),
		CASE(each_link_on_the_way_is_told),
		CASE(what_is_missing_is_told_step_by_step),
		CASE(a_directory_far_above_may_be_another_one),
		CASE(a_circle_of_links_ends),
		CASE(another_path_takes_the_place),
		CASE(what_cannot_be_watched_is_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
