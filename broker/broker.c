/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/broker.h"

#include "broker/attach.h"
#include "broker/audit.h"
#include "broker/base/alloc.h"
#include "broker/base/clock.h"
#include "broker/base/err.h"
#include "broker/base/json.h"
#include "broker/base/log.h"
#include "broker/config.h"
#include "broker/control.h"
#include "broker/control_socket.h"
#include "broker/credential/credential.h"
#include "broker/endpoint.h"
#include "broker/minter.h"
#include "broker/net/bridges.h"
#include "broker/net/http_client.h"
#include "broker/net/http_server.h"
#include "broker/net/loop.h"
#include "broker/process.h"
#include "broker/profile.h"
#include "broker/recipe/recipe.h"
#include "broker/session.h"
#include "broker/token_cache.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* After the last mint, what it needed is given back. */
#define SETTLE_MS 200
#define SERVICE_GROUP "postern"
#define UNIT_AUDIT_LOG "/var/log/postern/audit.jsonl"
#define UNIT_CONTROL_SOCKET "/run/postern/control.sock"

static void on_signal(void *ctx, int signo);

const char *broker_audit_place(const struct config *config)
{
	if (config->broker.audit_log)
		return config->broker.audit_log;
	return process_is_member(SERVICE_GROUP) ? UNIT_AUDIT_LOG : "stderr";
}

/* Where the control socket is when nobody says so. The caller's string. */
static int default_control_path(const struct environment *environment, char **out, struct err *err)
{
	struct quoted q;

	if (geteuid() == 0 || process_is_member(SERVICE_GROUP)) {
		*out = xstrdup(UNIT_CONTROL_SOCKET);
		return 0;
	}
	if (!environment->xdg_runtime_dir)
		return err_set(
			err, ERR_USAGE,
			"control socket: neither root nor in group %s, and XDG_RUNTIME_DIR is not "
			"set; name a path with --control or control_socket",
			SERVICE_GROUP);
	if (!json_takes(environment->xdg_runtime_dir))
		return err_set(err, ERR_USAGE,
			       "control socket: XDG_RUNTIME_DIR is %s, which is not UTF-8; name "
			       "another path with --control or control_socket",
			       quote_str(&q, environment->xdg_runtime_dir));
	*out = xasprintf("%s/postern/control.sock", environment->xdg_runtime_dir);
	return 0;
}

struct counters *broker_counters(struct broker *broker, const char *profile)
{
	list_for_each(link, &broker->counters) {
		struct named_counters *const named =
			CONTAINER_OF(link, struct named_counters, link);
		if (!strcmp(named->name, profile))
			return &named->counters;
	}
	struct named_counters *const named = xcalloc(1, sizeof(*named));
	named->name = xstrdup(profile);
	list_append(&broker->counters, &named->link);
	return &named->counters;
}

int broker_open_credential(const struct broker *broker, const struct config *config,
			   struct credential **out, struct err *err)
{
	const struct environment *const environment = &broker->environment;
	const struct credential_options options = {
		.type = config->source.type,
		.file = config->source.file,
		.gcloud = config->source.gcloud,
		.metadata_host = config->source.metadata_host,
		.adc_metadata = config->source.adc_metadata,
		.subject_token_hosts = &config->source.subject_token_hosts,
		.allow_http_loopback = config->endpoints.allow_http_loopback,
		.env_credentials_file = environment->google_application_credentials,
		.env_cloudsdk_config = environment->cloudsdk_config,
		.env_home = environment->home,
		.env_path = environment->path,
		.env_executables = environment->google_external_account_allow_executables,
		.environment = environment->all,
		.universe_domain = config->endpoints.universe_domain,
		.oauth2_endpoint = config->endpoints.oauth2,
		.sts_endpoint = config->endpoints.sts,
		.iamcredentials_endpoint = config->endpoints.iamcredentials,
		.is_ours = broker_is_own_address,
		.is_our_name = broker_is_own_name,
		.is_ours_ctx = broker,
		.client = broker->client,
		.loop = broker->loop,
		.timers = loop_timers(broker->loop),
	};

	return credential_open(&options, out, err);
}

int broker_check_ca_file(const struct config *config, struct err *err)
{
	const char *const file = config->endpoints.ca_file;

	if (!file || !access(file, R_OK))
		return 0;
	return err_set_errno(err, errno,
			     "ca_file %s (name a bundle that the broker's user can read)", file);
}

int broker_check(const struct config *config, struct err *err)
{
	struct broker broker = {0};
	struct credential *credential = NULL;

	environment_read(&broker.environment);
	if (loop_new(&broker.loop, err))
		return -1;
	const int result =
		broker_check_ca_file(config, err) ||
				broker_open_credential(&broker, config, &credential, err) ?
			-1 :
			0;
	credential_free(credential);
	loop_free(broker.loop);
	return result;
}

static void on_settled(struct timer *timer);

/* A mint that follows puts it off, but not the end of a credential that is retired. */
static void settle_later(struct broker *broker)
{
	if (list_empty(&broker->retired) || !timer_is_set(&broker->settle_timer))
		timer_set_after(loop_timers(broker->loop), &broker->settle_timer, SETTLE_MS,
				on_settled);
}

static void free_retired(struct retired *retired)
{
	list_remove(&retired->link);
	credential_free(retired->credential);
	free(retired);
}

void broker_free_retired(struct broker *broker)
{
	list_for_each(link, &broker->retired) {
		struct retired *const retired = CONTAINER_OF(link, struct retired, link);
		if (!credential_is_busy(retired->credential))
			free_retired(retired);
	}
	if (!list_empty(&broker->retired))
		settle_later(broker);
}

/* Not in on_mint_ended(): the credential's own callback may still be on the stack there. */
static void on_settled(struct timer *timer)
{
	struct broker *const broker = CONTAINER_OF(timer, struct broker, settle_timer);

	broker_free_retired(broker);
	if (!minter_busy(broker->minter))
		memory_release();
}

static void on_mint_ended(void *ctx, const char *profile, bool ok)
{
	struct broker *const broker = ctx;
	struct counters *const counters = broker_counters(broker, profile);

	counters->mints++;
	counters->mint_failures += ok ? 0 : 1;
	settle_later(broker);
}

static int start_servers(struct broker *broker, struct err *err)
{
	static const char *const no_headers[] = {NULL};
	const struct http_server_options web = {
		.loop = broker->loop,
		.priority = LOOP_PRIORITY_NORMAL,
		.max_connections = BROKER_MAX_CONNECTIONS,
		/* One backend today; another with other headers gets a server of its own. */
		.headers = recipe_vertex.headers(),
	};
	const struct http_server_options ctl = {
		.loop = broker->loop,
		.priority = LOOP_PRIORITY_CONTROL,
		.max_connections = BROKER_MAX_CONTROL_CONNECTIONS + BROKER_MAX_LEASES,
		.headers = no_headers,
	};

	if (http_server_self_test(err) || http_server_new(&web, &broker->web, err))
		return -1;
	return http_server_new(&ctl, &broker->ctl, err);
}

static int start_minting(struct broker *broker, const struct config *config, struct err *err)
{
	const struct http_client_options client = {
		.ca_file = config->endpoints.ca_file,
		.proxy = broker->environment.https_proxy,
		.no_proxy = broker->environment.no_proxy,
		.user_agent = "postern/" POSTERN_VERSION,
	};

	if (broker_check_ca_file(config, err) ||
	    http_client_new(broker->loop, &client, &broker->client, err) ||
	    broker_open_credential(broker, config, &broker->credential, err) ||
	    audit_open(broker_audit_place(config), config->broker.audit_required, clock_system(),
		       &broker->audit, err))
		return -1;
	const struct minter_options minter = {
		.timers = loop_timers(broker->loop),
		.client = broker->client,
		.endpoint = config->endpoints.iamcredentials,
		.quota_project = config->source.quota_project,
		.credential = broker->credential,
		.audit = broker->audit,
		.ended = on_mint_ended,
		.ended_ctx = broker,
	};
	broker->minter = minter_new(&minter);
	broker->cache = token_cache_new(loop_timers(broker->loop), &minter_ops, broker->minter);
	return 0;
}

static int start_control(struct broker *broker, const struct config *config, struct err *err)
{
	AUTO_FREE char *fallback = NULL;

	if (!config->broker.control_socket &&
	    default_control_path(&broker->environment, &fallback, err))
		return -1;
	const struct control_socket_options options = {
		.path = config->broker.control_socket ? config->broker.control_socket : fallback,
		.group = config->broker.control_group,
		.group_required = config->broker.control_group_written,
	};
	if (control_socket_open(&options, &broker->socket, err))
		return -1;
	if (control_open(broker, control_socket_take_fd(broker->socket), &broker->control, err))
		return -1;
	broker->attach = attach_open(broker, control_socket_path(broker->socket));
	return 0;
}

static int start_signals(struct broker *broker, struct err *err)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		broker->signals[i] = loop_add_signal(broker->loop, signals[i], on_signal, broker);
		if (!broker->signals[i])
			return err_set_errno(err, errno, "signals");
	}
	(void)signal(SIGPIPE, SIG_IGN);
	return 0;
}

struct endpoint_context broker_endpoint_context(struct broker *broker)
{
	return (struct endpoint_context){
		.server = broker->web,
		.timers = loop_timers(broker->loop),
		.bridges = broker->bridges,
		.audit = broker->audit,
	};
}

static void audit_start(const struct broker *broker)
{
	struct credential_info info;
	struct quoted principal;
	struct quoted path;

	credential_info(broker->credential, &info);
	json_t *const event = audit_event(broker->audit, "broker.start");
	audit_add(event, "version", POSTERN_VERSION);
	audit_add_int(event, "pid", getpid());
	audit_add_int(event, "uid", getuid());
	audit_add(event, "source", info.type);
	audit_add(event, "principal", info.principal);
	(void)audit_write(broker->audit, event);
	log_info("source: type=%s principal=%s file=%s%s", info.type,
		 quote_str(&principal, info.principal), quote_str(&path, info.path),
		 credential_is_offline(broker->credential) ?
			 " (offline: tokens are made on the spot, no API accepts them)" :
			 "");
}

/* One line on standard output: whoever started us waits for it. */
static void say_ready(const struct broker *broker)
{
	char address[ADDRESS_TEXT_SIZE];

	(void)printf("ready control=%s", control_socket_path(broker->socket));
	for (size_t i = 0; i < broker->service.endpoint_count; i++) {
		const struct endpoint *const endpoint = broker->service.endpoints[i];
		(void)printf(" profile=%s listen=%s", endpoint_profile(endpoint)->settings->name,
			     address_format(endpoint_address(endpoint), address));
	}
	(void)printf("\n");
	(void)fflush(stdout);
	loop_notify("READY=1");
}

int broker_start(struct broker *broker, const struct options *options, struct config *config,
		 struct err *err)
{
	static const struct service nothing;

	*broker = (struct broker){.options = *options};
	list_init(&broker->counters);
	list_init(&broker->retired);
	environment_read(&broker->environment);
	broker->started_wall_ms = clock_wall_ms(clock_system());
	/* The first answer would open the time zone's file. */
	tzset();
	if (process_raise_descriptors(config->broker.max_sessions, err) ||
	    loop_new(&broker->loop, err) || start_signals(broker, err) ||
	    start_servers(broker, err) || start_minting(broker, config, err))
		goto failed;
	broker->bridges = bridges_new(clock_system());
	broker->sessions = sessions_new(broker);
	if (service_build(broker, config, &nothing, &broker->service, err) ||
	    start_control(broker, config, err))
		goto failed;
	broker_watch_source(broker);
	broker_warn_of_addresses(broker);
	audit_start(broker);
	process_close_on_exec();
	memory_release();
	say_ready(broker);
	return 0;
failed:
	broker_stop(broker);
	return -1;
}

static void reload(struct broker *broker)
{
	struct err err;

	loop_notify_reloading();
	const bool ok = broker_reload(broker, &err) == 0;
	if (ok)
		log_info("configuration: reloaded");
	else
		log_error("configuration: not reloaded, the old one stays: %s", err.text);
	json_t *const event = audit_event(broker->audit, "config.reload");
	audit_add(event, "result", ok ? "ok" : "refused");
	(void)audit_write(broker->audit, event);
	loop_notify("READY=1");
}

static void on_drained(void *ctx)
{
	struct broker *const broker = ctx;

	if (--broker->servers_draining == 0)
		loop_exit(broker->loop, 0);
}

/* No sandbox waits any more: the leases end, and with them what holds the control socket up. */
static void on_web_drained(void *ctx)
{
	struct broker *const broker = ctx;

	sessions_end(broker->sessions);
	on_drained(broker);
}

static void on_signal(void *ctx, int signo)
{
	struct broker *const broker = ctx;

	if (signo == SIGHUP) {
		if (!broker->draining)
			reload(broker);
		return;
	}
	if (broker->draining)
		return;
	log_info("stopping: signal=%d, requests under way are answered first", signo);
	loop_notify("STOPPING=1");
	broker->draining = true;
	broker->servers_draining = 2;
	attach_drain(broker->attach);
	http_server_drain(broker->web, on_web_drained, broker);
	http_server_drain(broker->ctl, on_drained, broker);
}

int broker_run(struct broker *broker)
{
	struct err err;

	const int status = loop_run(broker->loop, &err);
	if (status < 0) {
		log_error("%s", err.text);
		return 1;
	}
	return status;
}

static void free_counters(struct broker *broker)
{
	list_for_each(link, &broker->counters) {
		struct named_counters *const named =
			CONTAINER_OF(link, struct named_counters, link);
		free(named->name);
		free(named);
	}
}

void broker_stop(struct broker *broker)
{
	static const struct service nothing;

	if (!broker->loop)
		return;
	control_close(broker->control);
	sessions_free(broker->sessions);
	attach_close(broker->attach);
	service_drop(&broker->service, &nothing);
	if (broker->draining)
		(void)audit_write(broker->audit, audit_event(broker->audit, "broker.stop"));
	http_server_free(broker->ctl);
	http_server_free(broker->web);
	broker_unwatch_source(broker);
	token_cache_free(broker->cache);
	minter_free(broker->minter);
	timer_stop(loop_timers(broker->loop), &broker->settle_timer);
	/* No call of others is left; what a credential still asks for itself ends with it. */
	list_for_each(link, &broker->retired)
		free_retired(CONTAINER_OF(link, struct retired, link));
	credential_free(broker->credential);
	http_client_free(broker->client);
	control_socket_close(broker->socket);
	bridges_free(broker->bridges);
	audit_free(broker->audit);
	for (size_t i = 0; i < ARRAY_LEN(broker->signals); i++)
		loop_source_free(broker->signals[i]);
	loop_free(broker->loop);
	free_counters(broker);
	*broker = (struct broker){0};
}
