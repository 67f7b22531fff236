/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/audit.h"

#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/google/rfc3339.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct audit {
	const struct clock *clock;
	int fd; /* -1: off */
	bool owned;
	bool required;
	bool losing; /* the last line was lost */
	bool torn;   /* what was written last is a line without its end */
	uint64_t lost;
};

/* Whether what another process wrote, or this one before a reload, lacks its end: the disk was full. */
static bool ends_torn(int fd, const char *path)
{
	struct stat st;
	char last;

	/* A pipe must not be opened for reading: its reader is another. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return false;
	AUTO_CLOSE const int reading = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return reading >= 0 && pread(reading, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

int audit_open(const char *where, bool required, const struct clock *clock, struct audit **out,
	       struct err *err)
{
	int fd = -1;
	bool owned = false;
	bool torn = false;

	if (!strcmp(where, "stderr")) {
		fd = STDERR_FILENO;
	} else if (strcmp(where, "off") != 0) {
		fd = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			  0600);
		if (fd < 0)
			return err_set_errno(
				err, errno,
				"audit trail %s (make its directory writable, or set audit_log)",
				where);
		owned = true;
		torn = ends_torn(fd, where);
	}
	struct audit *const audit = xcalloc(1, sizeof(*audit));
	*audit = (struct audit){.clock = clock,
				.fd = fd,
				.owned = owned,
				.required = required,
				.torn = torn};
	*out = audit;
	return 0;
}

void audit_free(struct audit *audit)
{
	if (!audit)
		return;
	if (audit->owned)
		close(audit->fd);
	free(audit);
}

json_t *audit_event(const struct audit *audit, const char *event)
{
	json_t *const line = json_object();
	char time[RFC3339_SIZE];

	rfc3339_format(time, clock_wall_ms(audit->clock));
	audit_add(line, "time", time);
	audit_add(line, "event", event);
	return line;
}

void audit_add(json_t *event, const char *key, const char *value)
{
	if (json_object_set_new(event, key, value ? json_string(value) : json_null()))
		abort();
}

void audit_add_int(json_t *event, const char *key, int64_t value)
{
	if (json_object_set_new(event, key, json_integer(value)))
		abort();
}

/* A line that is torn takes what follows it along: the next one begins with a line end. */
static int write_line(struct audit *audit, const char *text)
{
	AUTO_FREE char *line = xasprintf("%s%s\n", audit->torn ? "\n" : "", text);
	size_t written;
	const int result = write_unless_full(audit->fd, line, strlen(line), &written);

	if (written)
		audit->torn = line[written - 1] != '\n';
	return result;
}

int audit_write(struct audit *audit, json_t *takes_event)
{
	json_auto_t *event = takes_event;

	if (audit->fd < 0)
		return audit->required ? -1 : 0;
	AUTO_FREE char *text = json_dumps(event, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (!text)
		abort();
	const bool lost = write_line(audit, text) != 0;
	if (lost)
		audit->lost++;
	if (lost && !audit->losing)
		log_error(
			"audit: lines are lost, the trail cannot be written (disk full, or its reader stopped)");
	if (!lost && audit->losing)
		log_warning("audit: written again, lost=%llu", (unsigned long long)audit->lost);
	audit->losing = lost;
	return lost && audit->required ? -1 : 0;
}
