/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/engine.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/base/strv.h"
#include "broker/net/child.h"
#include "broker/net/loop.h"
#include "sandbox/plan/variables.h"

#include <string.h>
#include <sys/stat.h>

struct engine {
	struct loop *loop;
	const struct engine_driver *driver;
	struct engine_facts facts;
	struct strv texts; /* of the facts */
	struct strv environ;
};

static const struct engine_driver *const drivers[] = {&engine_docker, &engine_podman};

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The first of PATH, relative entries left out: they would mean another program in another folder. */
static char *find_program(const char *name, const char *search)
{
	while (*search) {
		const size_t len = strcspn(search, ":");
		AUTO_FREE char *path = xasprintf("%.*s/%s", (int)len, search, name);
		if (*search == '/' && is_program(path))
			return TAKE(path);
		search += len + (search[len] == ':');
	}
	return NULL;
}

int engine_new(struct loop *loop, enum engine_kind kind, const char *search,
	       const struct environ_block *block, struct engine **out, struct err *err)
{
	const char *const name = engine_kind_name(kind);
	AUTO_FREE char *binary = find_program(name, search);

	if (!binary)
		return err_set(err, ERR_SYSTEM,
			       "no program %s in PATH: install it, or name another with --engine",
			       name);
	struct engine *const engine = xcalloc(1, sizeof(*engine));
	engine->loop = loop;
	for (size_t i = 0; i < ARRAY_LEN(drivers); i++)
		if (drivers[i]->kind == kind)
			engine->driver = drivers[i];
	for (size_t i = 0; i < block->count; i++)
		strv_add(&engine->environ, block->items[i], strlen(block->items[i]));
	engine->facts.kind = kind;
	engine->facts.binary = engine_keep(engine, binary);
	*out = engine;
	return 0;
}

void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	strv_deinit(&engine->texts);
	strv_deinit(&engine->environ);
	free(engine);
}

const char *engine_keep(struct engine *engine, const char *text)
{
	if (!text)
		return NULL;
	strv_add(&engine->texts, text, strlen(text));
	return engine->texts.items[engine->texts.count - 1];
}

const struct engine_facts *engine_facts(const struct engine *engine)
{
	return &engine->facts;
}

struct child *engine_start_within(const struct engine *engine, const char *const *args,
				  int64_t timeout_ms, child_done *done, void *ctx)
{
	AUTO_STRV struct strv argv = {0};
	const struct child_request request = {
		.argv = &argv,
		.env = &engine->environ,
		.max_output_bytes = ENGINE_MAX_ANSWER_BYTES,
		.timeout_ms = timeout_ms,
	};

	strv_add(&argv, engine->facts.binary, strlen(engine->facts.binary));
	for (; *args; args++)
		strv_add(&argv, *args, strlen(*args));
	return child_start(engine->loop, &request, done, ctx);
}

struct child *engine_start(const struct engine *engine, const char *const *args, child_done *done,
			   void *ctx)
{
	return engine_start_within(engine, args, ENGINE_CALL_TIMEOUT_MS, done, ctx);
}

int engine_read_result(const struct engine *engine, const char *what,
		       const struct child_result *result, struct err *err)
{
	const char *const name = engine_kind_name(engine->facts.kind);
	struct quoted line;

	switch (result->end) {
	case CHILD_EXITED:
		if (!result->status)
			return 0;
		return err_set(err, ERR_SYSTEM, "%s %s: %s", name, what,
			       quote(&line, result->errors, strcspn(result->errors, "\n")));
	case CHILD_SIGNALLED:
		return err_set(err, ERR_SYSTEM, "%s %s was killed by signal %d", name, what,
			       result->status);
	case CHILD_TIMED_OUT:
		return err_set(err, ERR_SYSTEM, "%s %s: no answer in time", name, what);
	case CHILD_TOO_LARGE:
		return err_set(err, ERR_SYSTEM, "%s %s: the answer is too large", name, what);
	case CHILD_NOT_STARTED:
		return err_set_errno(err, result->status, "cannot start %s", engine->facts.binary);
	}
	abort();
}

struct engine_call {
	const struct engine *engine;
	char *what;
	struct child *child; /* NULL: it has ended */
	struct buf out;
	int result;
	struct err err;
};

static void on_call_end(void *ctx, const struct child_result *result)
{
	struct engine_call *const call = ctx;

	call->child = NULL;
	call->result = engine_read_result(call->engine, call->what, result, &call->err);
	if (!call->result)
		call->result = buf_append(&call->out, result->output, result->output_len);
}

struct engine_call *engine_call_start(const struct engine *engine, const char *const *args)
{
	struct engine_call *const call = xcalloc(1, sizeof(*call));

	call->engine = engine;
	call->what = xstrdup(args[0]);
	buf_init(&call->out, ENGINE_MAX_ANSWER_BYTES);
	call->child = engine_start(engine, args, on_call_end, call);
	return call;
}

void engine_call_cancel(struct engine_call *takes_call)
{
	if (!takes_call)
		return;
	child_cancel(takes_call->child);
	buf_deinit(&takes_call->out);
	free(takes_call->what);
	free(takes_call);
}

int engine_call_end(struct engine_call *takes_call, struct buf *out, struct err *err)
{
	struct engine_call *const call = takes_call;
	int result = 0;

	while (call->child && !result)
		result = loop_turn(call->engine->loop, err);
	if (!result && call->result) {
		*err = call->err;
		result = -1;
	}
	if (!result && out && buf_append(out, call->out.data ? call->out.data : "", call->out.len))
		result = err_set(err, ERR_SYSTEM, "%s %s: the answer is too large",
				 engine_kind_name(call->engine->facts.kind), call->what);
	engine_call_cancel(call);
	return result;
}

int engine_ask(const struct engine *engine, const char *const *args, struct buf *out,
	       struct err *err)
{
	return engine_call_end(engine_call_start(engine, args), out, err);
}

/* An image that is not here has no user that could be known: the engine will pull it, or say so. */
static void read_image(struct engine *engine, struct engine_call *takes_call)
{
	AUTO_BUF struct buf out;
	struct err ignored;
	json_error_t error;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (engine_call_end(takes_call, &out, &ignored))
		return;
	json_auto_t *images = json_loadb(out.data ? out.data : "", out.len, 0, &error);
	engine->facts.image_is_here = json_array_size(images) > 0;
	const json_t *const config = json_object_get(json_array_get(images, 0), "Config");
	const char *const user = json_get_string(config, "User");
	if (user && *user)
		engine->facts.image_user = engine_keep(engine, user);
}

static int read_network(struct engine *engine, const char *network, struct engine_call *takes_call,
			struct err *err)
{
	AUTO_BUF struct buf out;
	json_error_t error;

	buf_init(&out, ENGINE_MAX_ANSWER_BYTES);
	if (engine_call_end(takes_call, &out, err))
		return -1;
	json_auto_t *networks = json_loadb(out.data ? out.data : "", out.len, 0, &error);
	const char *const driver =
		json_get_string(json_array_get(networks, 0), engine->driver->driver_key);
	if (!driver)
		return err_set(err, ERR_SYSTEM, "%s says no driver of the network %s",
			       engine_kind_name(engine->facts.kind), network);
	engine->facts.network_driver = engine_keep(engine, driver);
	return 0;
}

int engine_probe(struct engine *engine, const char *image, const char *network, struct err *err)
{
	const char *const ask_image[] = {"image", "inspect", "--", image, NULL};
	const char *const ask_network[] = {"network", "inspect", network, NULL};
	struct engine_call *of_image = engine_call_start(engine, ask_image);
	struct engine_call *of_network = network ? engine_call_start(engine, ask_network) : NULL;

	int failed = engine->driver->probe(engine, &engine->facts, err);

	if (!failed && network)
		failed = read_network(engine, network, TAKE(of_network), err);
	if (failed) {
		engine_call_cancel(of_network);
		engine_call_cancel(of_image);
		return -1;
	}
	read_image(engine, of_image);
	return 0;
}
