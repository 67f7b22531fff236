/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of the directories given, once each: the ordinary run's part of
 * fuzzing. A target aborts where it finds something.
 */
#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/compiler.h"
#include "broker/base/err.h"
#include "broker/base/file.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

/* The largest file of a corpus; libFuzzer's own inputs end at 4 KiB unless it is told otherwise. */
#define INPUT_MAX_BYTES ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* A copy of exactly that size, so that a sanitizer sees a read past the end. */
static void run(const struct buf *input)
{
	AUTO_FREE uint8_t *data = xmalloc(input->len ? input->len : 1);

	for (size_t i = 0; i < input->len; i++)
		data[i] = (uint8_t)input->data[i];
	(void)LLVMFuzzerTestOneInput(data, input->len);
}

static int replay_file(const char *directory, const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", directory, name);
	AUTO_BUF struct buf input;
	struct err err;

	buf_init(&input, INPUT_MAX_BYTES);
	if (file_read(path, &input, NULL, &err)) {
		(void)fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	run(&input);
	return 0;
}

/* Returns the number of files, or -1. */
static int replay_directory(const char *directory)
{
	struct dirent **entries;
	int failed = 0;

	const int count = scandir(directory, &entries, is_input, alphasort);
	if (count < 0) {
		perror(directory);
		return -1;
	}
	for (int i = 0; i < count; i++) {
		failed |= replay_file(directory, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return failed ? -1 : count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		const int count = replay_directory(argv[i]);
		if (count < 0)
			return 1;
		total += count;
	}
	(void)printf("%d inputs\n", total);
	/* An empty corpus tests nothing, and says so. */
	return total ? 0 : 1;
}
