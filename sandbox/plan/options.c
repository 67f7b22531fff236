/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/plan/options.h"

#include "broker/base/alloc.h"
#include "broker/base/buf.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/base/option_table.h"
#include "broker/base/parse.h"
#include "sandbox/plan/engine_args.h"
#include "sandbox/plan/presets.h"
#include "sandbox/plan/providers.h"
#include "sandbox/plan/shut.h"
#include "sandbox/plan/user.h"
#include "sandbox/plan/variables.h"

#include <string.h>

#define MAX_OWNER_BYTES 128
#define MAX_NETWORK_BYTES 128

/* In the order of their enums. */
static const char *const preflight_words[] = {"grant", "mint", "none", NULL};
static const char *const attach_words[] = {"inside", "gateway", NULL};
static const char *const engine_words[] = {"docker", "podman", "none", NULL};

const char *preflight_name(enum preflight preflight)
{
	return preflight_words[preflight];
}

const char *attach_name(enum attach attach)
{
	return attach_words[attach];
}

const char *engine_kind_name(enum engine_kind kind)
{
	return engine_words[kind];
}

static int check_name(const char *value, struct err *err)
{
	struct quoted q;
	AUTO_FREE char *name = xstrndup(value, strcspn(value, "="));

	if (value[strlen(name)])
		return err_set(err, ERR_USAGE,
			       "--env %s=… takes a name only; export the value and give the name",
			       name);
	if (!variable_name_valid(name))
		return err_set(err, ERR_USAGE,
			       "--env %s: must be a name of letters, digits and _, not beginning "
			       "with a digit",
			       quote_str(&q, name));
	return 0;
}

static int check_network(const char *value, struct err *err)
{
	struct quoted q;

	if (!strcmp(value, "host"))
		return err_set(err, ERR_UNSUPPORTED,
			       "--network host is refused: no firewall rule governs it and it "
			       "reaches the host's loopback; name a bridge network");
	if (!strncmp(value, "container:", strlen("container:")))
		return err_set(err, ERR_UNSUPPORTED,
			       "--network container: is refused: it shares another container's "
			       "address; name a bridge network");
	if (!strncmp(value, "ns:", strlen("ns:")))
		return err_set(err, ERR_UNSUPPORTED,
			       "--network ns: is refused: it joins a namespace of the host; name a "
			       "bridge network");
	/* No "name=host,…", no "pasta:…": a name and nothing else. */
	if (!text_is_of(value, "_.-") || *value == '-' || *value == '.' ||
	    strlen(value) > MAX_NETWORK_BYTES)
		return err_set(err, ERR_USAGE,
			       "--network %s: must be a network's name of letters, digits, _, . "
			       "and -",
			       quote_str(&q, value));
	return 0;
}

static int check_user(const char *value, struct err *err)
{
	struct user_ids ids;

	return user_ids_parse(value, &ids, err);
}

static int check_owner(const char *value, struct err *err)
{
	struct quoted q;

	if (text_is_of(value, "_") && strlen(value) <= MAX_OWNER_BYTES)
		return 0;
	return err_set(err, ERR_USAGE, "--owner %s: must be 1 to 128 letters, digits and _",
		       quote_str(&q, value));
}

#define AT(field) offsetof(struct run_options, field)

static const struct option_spec specs[] = {
	{"--profile", "NAME", OPTION_TEXT, AT(profile),
	 .help = "the session's profile; default: the only one, else \"default\""},
	{"--provider", "NAME", OPTION_TEXT, AT(provider),
	 .help = "instead of --profile: a model provider; a key-based one opens no session"},
	{"--agent", "PRESET", OPTION_TEXT, AT(agent),
	 .help = "also set what this agent needs to find its model"},
	{"--kubeconfig", "FILE", OPTION_TEXT, AT(kubeconfig),
	 .help = "give it one context of this file, reduced and checked"},
	{"--context", "NAME", OPTION_TEXT, AT(context),
	 .help = "the context; default: the file's current one"},
	{"--workspace", "DIR", OPTION_TEXT, AT(workspace),
	 .help = "this directory at /workspace, writable"},
	{"--env", "NAME", OPTION_LIST, AT(env), .check = check_name,
	 .help = "let this variable of yours cross; repeat"},
	{"--env-force", "NAME", OPTION_LIST, AT(env_force), .check = check_name,
	 .help = "the same for one that is denied by name; repeat"},
	{"--mount", "SRC:DST[:ro]", OPTION_LIST, AT(mounts),
	 .help = "let this file or directory cross; repeat"},
	{"--network", "NET", OPTION_TEXT, AT(network), .check = check_network,
	 .help = "a network of the engine; default: its default bridge"},
	{"--user", "U[:G]", OPTION_TEXT, AT(user), .check = check_user,
	 .help = "numeric ids in the sandbox; default: yours"},
	{"--owner", "NAME", OPTION_TEXT, AT(owner), .check = check_owner,
	 .help = "whose left-overs a run removes; default: your user's name"},
	{"--timeout", "D", OPTION_DURATION, AT(timeout_s),
	 .help = "stop it after this and return 124"},
	{"--tty", NULL, OPTION_SWITCH, AT(tty), .help = "a terminal, with standard input"},
	{"--interactive", NULL, OPTION_SWITCH, AT(interactive), .help = "pass standard input"},
	{"--preflight", "grant|mint|none", OPTION_WORD, AT(preflight), preflight_words,
	 .help = "what is tried before the container exists; default: grant"},
	{"--attach", "inside|gateway", OPTION_WORD, AT(attach), attach_words,
	 .help = "where the sandbox's endpoint is; default: inside"},
	{"--shut", "CIDR", OPTION_LIST, AT(shut), .check = shut_check,
	 .help = "inside: instead of the other clouds' and hosts' metadata addresses; repeat"},
	{"--engine", "docker|podman|none", OPTION_WORD, AT(engine), engine_words,
	 .help = "default: docker; none: no sandbox at all"},
	{"--engine-arg", "--NAME=VALUE", OPTION_LIST, AT(engine_args), .check = engine_arg_check,
	 .help = "an option of the engine; repeat"},
	{"--allow-admin-kubeconfig", NULL, OPTION_SWITCH, AT(allow_admin_kubeconfig),
	 .help = "let a client certificate cross"},
	{"--allow-unverified-firewall", NULL, OPTION_SWITCH, AT(allow_unverified_firewall),
	 .help = "start although nobody checked the host's rules"},
	{"--dry-run", NULL, OPTION_SWITCH, AT(dry_run), .help = "print what would cross, and stop"},
	{"--json", NULL, OPTION_SWITCH, AT(json), .help = "with --dry-run: as JSON"},
	{"--control", "PATH", OPTION_TEXT, AT(control), .help = "the broker's control socket"},
	{"--help", NULL, OPTION_SWITCH, AT(help), .help = "print this and exit"},
};

_Static_assert(ARRAY_LEN(specs) <= OPTION_TABLE_MAX, "a table has so many options");

static const struct option_table table = {
	.specs = specs,
	.count = ARRAY_LEN(specs),
	.refusal = engine_option_refusal,
};

void run_options_deinit(struct run_options *options)
{
	strv_deinit(&options->env);
	strv_deinit(&options->env_force);
	strv_deinit(&options->mounts);
	strv_deinit(&options->shut);
	strv_deinit(&options->engine_args);
}

enum stdio run_options_stdio(const struct run_options *options)
{
	if (options->tty)
		return STDIO_TTY;
	return options->interactive ? STDIO_INTERACTIVE : STDIO_OUTPUT;
}

static int check_together(const struct run_options *options, struct err *err)
{
	const struct {
		bool wrong;
		const char *text;
	} rules[] = {
		{options->profile && options->provider,
		 "--profile beside --provider; keep one of them"},
		{options->context && !options->kubeconfig,
		 "--context needs --kubeconfig FILE beside it"},
		{options->shut.count && options->attach != ATTACH_INSIDE,
		 "--shut beside --attach gateway; only a door shuts addresses"},
		{options->json && !options->dry_run, "--json needs --dry-run beside it"},
		{options->dry_run && options->engine == ENGINE_NONE,
		 "--dry-run beside --engine none; without a sandbox everything crosses"},
		{options->tty && options->interactive,
		 "--interactive beside --tty; --tty passes standard input already"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].wrong)
			return err_set(err, ERR_USAGE, "%s", rules[i].text);
	return 0;
}

/* What follows the options: IMAGE and its command, or without an engine the command alone. */
static int take_rest(struct run_options *options, char **rest, struct err *err)
{
	if (options->engine == ENGINE_NONE) {
		options->command = rest;
		return *rest ? 0 :
			       err_set(err, ERR_USAGE,
				       "no command; --engine none has no IMAGE, give COMMAND [ARG…]");
	}
	if (!*rest || !**rest)
		return err_set(err, ERR_USAGE, "no image; give IMAGE [COMMAND [ARG…]]");
	/* The engine would read it as an option of its own. */
	if (**rest == '-')
		return err_set(err, ERR_USAGE, "the image may not begin with \"-\"");
	options->image = *rest;
	options->command = rest + 1;
	return 0;
}

int run_options_parse(struct run_options *out, int argc, char **argv, struct err *err)
{
	int rest = 0;

	*out = (struct run_options){0};
	if (option_table_read(&table, argc, argv, out, &rest, err))
		return -1;
	if (out->help)
		return 0;
	if (check_together(out, err) || (out->shut.count && shut_check_list(&out->shut, err)))
		return -1;
	return take_rest(out, argv + rest, err);
}

void run_options_help(struct buf *out)
{
	buf_add(out, "usage: postern run [option...] IMAGE [COMMAND [ARG...]]\n"
		     "       postern run --engine none [option...] [--] COMMAND [ARG...]\n\n");
	option_table_help(&table, out);
	buf_add(out, "\npresets of --agent\n");
	for (size_t i = 0; preset_name_at(i); i++)
		buf_addf(out, "  %-14s %s\n", preset_name_at(i), preset_title_at(i));
	size_t count = 0;
	const struct provider *const providers = provider_table(&count);
	buf_add(out, "\nproviders\n");
	for (size_t i = 0; i < count; i++)
		buf_addf(out, "  %-18s %s\n", providers[i].name,
			 provider_kind_text(providers[i].kind));
}
