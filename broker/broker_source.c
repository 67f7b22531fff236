/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source credential while the broker runs: another one takes its place, after SIGHUP or because its
 * file has changed.
 */
#include "broker/broker.h"

#include "broker/audit.h"
#include "broker/base/alloc.h"
#include "broker/base/err.h"
#include "broker/base/log.h"
#include "broker/config.h"
#include "broker/credential/credential.h"
#include "broker/minter.h"
#include "broker/net/watch.h"
#include "broker/token_cache.h"

#include <string.h>

static void audit_change(struct broker *broker, const char *result)
{
	struct credential_info info;

	credential_info(broker->credential, &info);
	json_t *const event = audit_event(broker->audit, "source.change");
	audit_add(event, "result", result);
	audit_add(event, "source", info.type);
	audit_add(event, "principal", info.principal);
	(void)audit_write(broker->audit, event);
}

static bool same_file(const struct credential *a, const struct credential *b)
{
	struct credential_info first;
	struct credential_info second;

	credential_info(a, &first);
	credential_info(b, &second);
	return !strcmp(first.path, second.path);
}

static void forget_fault(struct broker *broker)
{
	free(broker->source_fault);
	broker->source_fault = NULL;
}

static void replace(struct broker *broker, struct credential *takes_next)
{
	struct retired *const retired = xcalloc(1, sizeof(*retired));
	struct credential_info info;
	struct quoted principal;
	struct quoted path;

	/* The old one ends with the last mint that uses it. */
	retired->credential = broker->credential;
	list_append(&broker->retired, &retired->link);
	broker->credential = takes_next;
	credential_info(takes_next, &info);
	log_info("source: changed, type=%s principal=%s file=%s", info.type,
		 quote_str(&principal, info.principal), quote_str(&path, info.path));
	audit_change(broker, "ok");
}

void broker_set_source(struct broker *broker, struct credential *takes_credential)
{
	const struct config *const config = broker->service.config;
	const bool changed = !credential_equal(broker->credential, takes_credential) ||
			     !same_file(broker->credential, takes_credential);

	if (changed)
		replace(broker, takes_credential);
	else
		credential_free(takes_credential);
	forget_fault(broker);
	minter_set_source(broker->minter, broker->credential, config->endpoints.iamcredentials,
			  config->source.quota_project);
	if (changed)
		token_cache_source_changed(broker->cache);
	broker_free_retired(broker);
	broker_watch_source(broker);
}

/* The identity stays. What has been said already is not said again, however often the file is written. */
static void refuse(struct broker *broker, const char *why)
{
	if (broker->source_fault && !strcmp(broker->source_fault, why))
		return;
	forget_fault(broker);
	broker->source_fault = xstrdup(why);
	log_error("source: its file has changed and cannot be used, the old identity stays: %s",
		  why);
	audit_change(broker, "refused");
}

/* The file is read anew, beside what is in use. */
static void look(struct broker *broker)
{
	struct credential *next = NULL;
	struct credential_info info;
	struct err err;

	credential_info(broker->credential, &info);
	if (broker_open_credential(broker, broker->service.config, &next, &err)) {
		refuse(broker, err.text);
		return;
	}
	/* The search went on to another place: that takes somebody's word, which is SIGHUP. */
	if (!same_file(broker->credential, next)) {
		credential_free(next);
		(void)err_set(&err, ERR_INVALID,
			      "%s: it is gone: write it again, or send SIGHUP to use what else "
			      "there is",
			      info.path);
		refuse(broker, err.text);
		return;
	}
	if (broker->source_fault)
		log_info("source: its file is in order again");
	forget_fault(broker);
	if (credential_equal(broker->credential, next))
		credential_free(next);
	else
		broker_set_source(broker, next);
}

static void on_changed(void *ctx, const struct err *blind)
{
	struct broker *const broker = ctx;

	if (blind)
		log_warning("source: a change of its file may go unseen and takes SIGHUP then: %s",
			    blind->text);
	look(broker);
}

void broker_watch_source(struct broker *broker)
{
	struct credential_info info;
	struct err err;

	credential_info(broker->credential, &info);
	if (!broker->watch && *info.path &&
	    watch_open(broker->loop, on_changed, broker, &broker->watch, &err)) {
		log_warning("source: its file is not watched, a change of it takes SIGHUP: %s",
			    err.text);
		return;
	}
	if (broker->watch)
		watch_set(broker->watch, *info.path ? info.path : NULL);
}

void broker_unwatch_source(struct broker *broker)
{
	watch_close(broker->watch);
	broker->watch = NULL;
	forget_fault(broker);
}
