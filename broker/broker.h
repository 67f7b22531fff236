/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker as a whole: everything it holds hangs off one struct that main() owns.
 */
#pragma once

#include "broker/base/compiler.h"
#include "broker/base/list.h"
#include "broker/base/timer.h"
#include "broker/counters.h"
#include "broker/endpoint.h"
#include "broker/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attach;
struct audit;
struct bridges;
struct config;
struct control;
struct control_socket;
struct credential;
struct endpoint;
struct err;
struct http_client;
struct http_server;
struct loop;
struct loop_source;
struct minter;
struct profile;
struct sessions;
struct token_cache;
struct watch;

#ifndef POSTERN_VERSION
#error "POSTERN_VERSION comes from the build"
#endif

/* Connections of all endpoints together: contract, section 10. */
#define BROKER_MAX_CONNECTIONS 2048
/* Leases aside, of which there are as many as sessions at most. */
#define BROKER_MAX_CONTROL_CONNECTIONS 512
#define BROKER_MAX_LEASES 65535

/* What is served: built whole, then swapped in. */
struct service {
	struct config *config;
	struct profile **profiles; /* in the configuration's order */
	size_t profile_count;
	struct endpoint **endpoints;
	size_t endpoint_count;
};

/* Counters of a profile's name: they outlive a reload. */
struct named_counters {
	struct list link;
	char *name;
	struct counters counters;
};

struct retired {
	struct list link;
	struct credential *credential;
};

struct broker {
	struct options options;
	struct environment environment;
	struct loop *loop;
	struct loop_source *signals[3];
	struct http_client *client;
	struct http_server *web;
	struct http_server *ctl;
	struct control_socket *socket;
	struct control *control;
	struct attach *attach;
	struct bridges *bridges;
	struct audit *audit;
	struct credential *credential;
	struct watch *watch; /* of the credential's file; NULL where the kernel has none left */
	char *source_fault;  /* what was said last about its file; NULL: it is in order */
	struct list retired; /* credentials that mints begun before a reload still use */
	struct timer settle_timer; /* some time after the last mint */
	struct minter *minter;
	struct token_cache *cache;
	struct service service;
	struct sessions *sessions;
	struct list counters;
	int64_t started_wall_ms;
	bool draining;
	unsigned servers_draining;
};

/*
 * Starts everything and says so on standard output and to the service manager. The configuration is
 * the caller's. On failure nothing is left, and the error says what to do.
 */
NODISCARD int broker_start(struct broker *broker, const struct options *options,
			   struct config *config, struct err *err);
/* Whether there is a source that the configuration can use; starts nothing. */
NODISCARD int broker_check(const struct config *config, struct err *err);
/* Serves until SIGTERM or SIGINT and drains. Returns the process's exit status. */
NODISCARD int broker_run(struct broker *broker);
/* A zeroed broker is fine. */
void broker_stop(struct broker *broker);

/* SIGHUP: the new configuration is built beside the old one; what is wrong with it changes nothing. */
NODISCARD int broker_reload(struct broker *broker, struct err *err);

/* The counters of that name, made where there are none. Borrowed. */
struct counters *broker_counters(struct broker *broker, const char *profile);

/* broker_addresses.c */
/* True where an endpoint of ours answers there; `broker` is a struct broker. */
bool broker_is_own_address(const void *broker, const struct address *address);
/* True where one that listens on that port accepts the name (HOST or HOST:PORT) in Host; likewise. */
bool broker_is_own_name(const void *broker, const char *name, uint16_t port);
/* Says what is odd about where the standing endpoints listen. */
void broker_warn_of_addresses(const struct broker *broker);

/* Frees the credentials of before that nobody uses any more; looks again soon for the others. */
void broker_free_retired(struct broker *broker);

/* The profile of that name, or NULL. Borrowed. */
struct profile *broker_profile(const struct broker *broker, const char *name);
/* What its endpoints have in common. */
struct endpoint_context broker_endpoint_context(struct broker *broker);

/* broker_service.c */
/*
 * Builds the service of a configuration: its profiles, and its endpoints, taking over the ones of `old`
 * that listen where they are wanted. `old` is not changed before service_swap().
 */
NODISCARD int service_build(struct broker *broker, struct config *config, const struct service *old,
			    struct service *out, struct err *err);
/* Puts the new one in the old one's place, which ends; endpoints that are wanted no more close. */
void service_swap(struct service *current, struct service *takes_next);
/* Ends what service_build() made; endpoints shared with `other` stay. */
void service_drop(struct service *service, const struct service *other);

/* broker_source.c */
/*
 * Uses a credential from now on; one whose content and place are the same does not replace the present one,
 * nor the access token that it holds. The service must be that of the credential's configuration.
 */
void broker_set_source(struct broker *broker, struct credential *takes_credential);
/* Looks after the file of the credential, wherever that is by now. */
void broker_watch_source(struct broker *broker);
void broker_unwatch_source(struct broker *broker);

/* Whether the CA bundle is there to be read. */
NODISCARD int broker_check_ca_file(const struct config *config, struct err *err);
/* The source that the configuration asks for. */
NODISCARD int broker_open_credential(const struct broker *broker, const struct config *config,
				     struct credential **out, struct err *err);
/* Where the audit trail goes when the configuration does not say. */
const char *broker_audit_place(const struct config *config);
