/* SPDX-License-Identifier: Apache-2.0 */
/* Every file that is no usable source: the error names the file, the field or line, and the repair. */
#include "broker/credential/credential.h"

#include "broker/base/err.h"
#include "broker/base/timer.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_http.h"
#include "tests/unit/rsa_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define LOGIN "gcloud auth application-default login"
#define NEW_KEY "gcloud iam service-accounts keys create"
#define SUPPORTED                                                               \
	"supported are authorized_user, service_account, external_account and " \
	"impersonated_service_account"
#define USER_FIELDS \
	"\"client_id\":\"id\",\"client_secret\":\"SECRET1\",\"refresh_token\":\"SECRET2\""
#define USER "{\"type\":\"authorized_user\"," USER_FIELDS "}"

static struct fake_clock fake;
static struct timer_queue timers;
static char dir[64];
static char path[128];
static char *rsa_pem;

static int set_up(void **state)
{
	(void)state;
	fake_clock_init(&fake);
	timer_queue_init(&timers, &fake.clock);
	(void)snprintf(dir, sizeof(dir), "/tmp/postern-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/source.json", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	timer_queue_deinit(&timers);
	(void)unlink(path);
	(void)rmdir(path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static int make_key(void **state)
{
	EVP_PKEY *const rsa = EVP_RSA_gen(2048);

	(void)state;
	rsa_pem = pem_pkcs8(rsa);
	EVP_PKEY_free(rsa);
	return 0;
}

static int free_key(void **state)
{
	(void)state;
	free(rsa_pem);
	return 0;
}

static void write_bytes(const char *bytes, size_t len, mode_t mode)
{
	(void)unlink(path);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || fchmod(fd, mode))
		fail_msg("%s cannot be written", path);
}

static void write_file(const char *text, mode_t mode)
{
	write_bytes(text, strlen(text), mode);
}

static struct credential_options file_options(void)
{
	return (struct credential_options){
		.type = "file",
		.file = path,
		.universe_domain = "googleapis.com",
		.oauth2_endpoint = "https://oauth2.googleapis.com",
		.sts_endpoint = "https://sts.googleapis.com",
		.iamcredentials_endpoint = "https://iamcredentials.googleapis.com",
		.timers = &timers,
	};
}

static void check_accepted(const struct credential_options *options)
{
	struct credential *credential = NULL;
	struct err err = {0};

	if (credential_open(options, &credential, &err))
		fail_msg("%s", err.text);
	credential_free(credential);
}

/* `start` is what follows the file's name; `repair` is part of the rest. */
static void check_refused_by(const struct credential_options *options, const char *start,
			     const char *repair)
{
	struct credential *credential = NULL;
	struct err err = {0};

	if (!credential_open(options, &credential, &err))
		fail_msg("accepted, not refused: %s", start);
	assert_null(credential);
	assert_true(err.code != ERR_NONE);
	const char *const name = strstr(err.text, path);
	if (!name || strncmp(name + strlen(path), start, strlen(start)) != 0)
		fail_msg("\"%s\" is not in: %s", start, err.text);
	else if (!strstr(name + strlen(path) + strlen(start), repair))
		fail_msg("\"%s\" is not behind \"%s\" in: %s", repair, start, err.text);
	/* One line, whole, without anything secret. */
	assert_null(strchr(err.text, '\n'));
	assert_null(strstr(err.text, "SECRET"));
	assert_null(strstr(err.text, "MII"));
	assert_true(strlen(err.text) < sizeof(err.text) - 1);
}

static void check_refused(const char *start, const char *repair)
{
	const struct credential_options options = file_options();

	check_refused_by(&options, start, repair);
}

struct bad_file {
	const char *text;
	const char *start;
	const char *repair;
};

static void check_files(const struct bad_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		write_file(files[i].text, 0600);
		check_refused(files[i].start, files[i].repair);
	}
}

static json_t *service_account_json(void)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", "service_account", "client_email",
			 "sa@p.iam.gserviceaccount.com", "private_key_id", "0123", "private_key",
			 rsa_pem, "token_uri", "https://oauth2.googleapis.com/token");
}

static void write_json(json_t *root)
{
	AUTO_FREE char *text = json_dumps(root, JSON_INDENT(2));

	write_file(text, 0600);
}

static void a_login_of_gcloud_is_accepted(void **state)
{
	struct credential_options options = file_options();

	(void)state;
	write_file("{\n  \"account\": \"\",\n  " USER_FIELDS ",\n"
		   "  \"type\": \"authorized_user\",\n"
		   "  \"universe_domain\": \"googleapis.com\"\n}\n",
		   0600);
	check_accepted(&options);
	write_file(USER, 0400);
	check_accepted(&options);
}

static void a_key_file_of_a_service_account_is_accepted(void **state)
{
	struct credential_options options = file_options();
	struct credential_info info;
	struct credential *credential = NULL;
	struct err err;

	(void)state;
	json_auto_t *root = service_account_json();
	write_json(root);
	assert_int_equal(credential_open(&options, &credential, &err), 0);
	credential_info(credential, &info);
	assert_string_equal(info.type, "service_account");
	assert_string_equal(info.principal, "sa@p.iam.gserviceaccount.com");
	assert_string_equal(info.path, path);
	assert_int_equal(info.token_expires_wall_ms, 0);
	credential_free(credential);
	assert_int_equal(json_object_del(root, "private_key_id"), 0);
	assert_int_equal(json_object_del(root, "token_uri"), 0);
	write_json(root);
	check_accepted(&options);
}

static void a_file_that_is_not_there_is_refused(void **state)
{
	(void)state;
	check_refused(": No such file or directory: ", LOGIN);
}

static void a_folder_in_its_place_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	check_refused(": not a regular file: ", "name a credential file");
}

static void a_fifo_in_its_place_is_refused_at_once(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	check_refused(": not a regular file: ", "name a credential file");
}

static void an_empty_file_is_refused(void **state)
{
	static const struct bad_file files[] = {
		{"", ": the file is empty: ", LOGIN},
		{"\n", ": the file is empty: ", LOGIN},
		{" \t\r\n", ": the file is empty: ", LOGIN},
	};

	(void)state;
	check_files(files, ARRAY_LEN(files));
}

static void a_file_that_is_too_large_is_refused(void **state)
{
	const size_t len = ((size_t)64 << 10) + 1;
	AUTO_FREE char *text = xmalloc(len);

	(void)state;
	memset(text, ' ', len);
	memcpy(text, USER, strlen(USER));
	write_bytes(text, len - 1, 0600);
	const struct credential_options options = file_options();
	check_accepted(&options);
	write_bytes(text, len, 0600);
	check_refused(": larger than 65536 bytes: ", "name another one");
}

static void a_truncated_file_is_refused_at_every_length(void **state)
{
	(void)state;
	for (size_t len = 1; len < strlen(USER); len++) {
		write_bytes(USER, len, 0600);
		check_refused(":1:", "the file is cut off: copy it again whole");
	}
	write_file("{\n  \"type\": \"authorized_user\",\n  \"client_id\": \"SECRET", 0600);
	check_refused(":3:", LOGIN);
}

static void what_is_no_json_is_refused_with_line_and_column(void **state)
{
	static const struct bad_file files[] = {
		{"SECRET", ":1:6: this is not JSON: ", LOGIN},
		{"{\n\"type\": SECRET}", ":2:14: this is not JSON: ", LOGIN},
		{"{\n\n  'type': 1}", ":3:3: this is not JSON: ", LOGIN},
		{USER "SECRET", ":1:", LOGIN},
		{"{\"type\":\"authorized_user\",\"client_id\":\"\xff\"}", ":1:", LOGIN},
		{"{\"type\":\"authorized_user\",\n\"type\":\"service_account\"}",
		 ":2:6: a field is there twice: ", LOGIN},
		{"[" USER "]", ": not a JSON object: ", LOGIN},
	};

	(void)state;
	check_files(files, ARRAY_LEN(files));
}

static void an_oauth_client_file_is_named_as_what_it_is(void **state)
{
	(void)state;
	write_file("{\"installed\":{\"client_id\":\"x\",\"client_secret\":\"SECRET\"}}", 0600);
	check_refused(": field \"installed\": this is an OAuth client, not a credential: ",
		      "gcloud auth application-default login --client-id-file=/tmp/postern-test-");
	write_file("{\"web\":{\"client_id\":\"x\",\"client_secret\":\"SECRET\"}}", 0600);
	check_refused(": field \"web\": this is an OAuth client, not a credential: ",
		      "--client-id-file=");
}

static void an_unsupported_type_is_refused_by_its_name(void **state)
{
	static const struct bad_file files[] = {
		{"{\"type\":\"external_account_authorized_user\"}",
		 ": field \"type\": external_account_authorized_user is not supported: ",
		 SUPPORTED},
		{"{\"type\":\"gdch_service_account\"}",
		 ": field \"type\": gdch_service_account is not supported: ", SUPPORTED},
		{"{\"type\":\"some\\nthing\"}",
		 ": field \"type\": \"some\\x0athing\" is not known: ", SUPPORTED},
		{"{\"type\":\"\"}", ": field \"type\": \"\" is not known: ", SUPPORTED},
		{"{\"type\":7}", ": field \"type\" is missing or no string: ", LOGIN},
		{"{" USER_FIELDS "}", ": field \"type\" is missing or no string: ", LOGIN},
		{"{}", ": field \"type\" is missing or no string: ", LOGIN},
	};

	(void)state;
	check_files(files, ARRAY_LEN(files));
}

static void a_field_that_is_missing_is_named(void **state)
{
#define U "{\"type\":\"authorized_user\","
#define S "{\"type\":\"service_account\","
	static const struct bad_file files[] = {
		{U "\"client_secret\":\"SECRET\",\"refresh_token\":\"SECRET\"}",
		 ": field \"client_id\" is missing", LOGIN},
		{U "\"client_id\":\"x\",\"refresh_token\":\"SECRET\"}",
		 ": field \"client_secret\" is missing", LOGIN},
		{U "\"client_id\":\"x\",\"client_secret\":\"SECRET\"}",
		 ": field \"refresh_token\" is missing", LOGIN},
		{U "\"client_id\":\"x\",\"client_secret\":\"SECRET\",\"refresh_token\":\"\"}",
		 ": field \"refresh_token\" is missing, empty", LOGIN},
		{U "\"client_id\":7,\"client_secret\":\"SECRET\",\"refresh_token\":\"SECRET\"}",
		 ": field \"client_id\" is missing, empty or no string", LOGIN},
		{U "\"client_id\":\"x\",\"client_secret\":\"SECRET\",\"refresh_token\":null}",
		 ": field \"refresh_token\" is missing, empty or no string", LOGIN},
		{S "\"private_key\":\"SECRET\"}", ": field \"client_email\" is missing", NEW_KEY},
		{S "\"client_email\":\"a@b.example\"}", ": field \"private_key\" is missing",
		 NEW_KEY},
		{S "\"client_email\":\"a/b\",\"private_key\":\"SECRET\"}",
		 ": field \"client_email\" is no e-mail address", NEW_KEY},
		{S "\"client_email\":\"a@b.example\",\"private_key\":\"SECRET\","
		   "\"private_key_id\":7}",
		 ": field \"private_key_id\" is missing, empty or no string", NEW_KEY},
	};
#undef U
#undef S

	(void)state;
	check_files(files, ARRAY_LEN(files));
}

static void a_broken_private_key_is_refused(void **state)
{
	(void)state;
	json_auto_t *root = service_account_json();
	assert_int_equal(json_object_set_new(root, "private_key", json_string("SECRET")), 0);
	write_json(root);
	check_refused(": field \"private_key\" is not a PEM private key", NEW_KEY);
	json_t *const half = json_stringn(rsa_pem, strlen(rsa_pem) / 2);
	assert_int_equal(json_object_set_new(root, "private_key", half), 0);
	write_json(root);
	check_refused(": field \"private_key\" is a PEM private key that is cut off or damaged",
		      NEW_KEY);
}

static void a_file_of_another_universe_is_refused(void **state)
{
	struct credential_options options = file_options();

	(void)state;
	write_file("{\"type\":\"authorized_user\",\"universe_domain\":\"s3nsapis.fr\"," USER_FIELDS
		   "}",
		   0600);
	check_refused(": field \"universe_domain\" is \"s3nsapis.fr\", not the configured "
		      "googleapis.com: ",
		      "universe_domain under [endpoints]");
	options.universe_domain = "s3nsapis.fr";
	check_accepted(&options);
	/* Without the field it is Google's own. */
	write_file(USER, 0600);
	check_refused_by(&options,
			 ": field \"universe_domain\" is \"googleapis.com\", not the configured "
			 "s3nsapis.fr: ",
			 "universe_domain under [endpoints]");
	write_file("{\"type\":\"authorized_user\",\"universe_domain\":7," USER_FIELDS "}", 0600);
	check_refused(": field \"universe_domain\" is ", "universe_domain under [endpoints]");
}

static void write_with_url(const char *field, const char *url)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "{\"type\":\"authorized_user\",\"%s\":\"%s\"," USER_FIELDS "}", field, url);
	write_file(text, 0600);
}

static void a_foreign_token_url_is_refused(void **state)
{
	static const char *const urls[] = {
		"",
		"x",
		"oauth2.googleapis.com/token",
		"//oauth2.googleapis.com/token",
		"http://oauth2.googleapis.com/token",
		"ftp://oauth2.googleapis.com/token",
		"https://",
		"https:///token",
		"https://evil.example/token",
		"https://oauth2.googleapis.com.evil.example/token",
		"https://evilgoogleapis.com/token",
		"https://oauth2.googleapis.com@evil.example/token",
		"https://oauth2.googleapis.com:443@evil.example/token",
		"https://user@oauth2.googleapis.com/token",
		"https://evil.example#.googleapis.com/token",
		"https://evil.example?.googleapis.com/token",
		"https://evil.example\\\\.googleapis.com/token",
		"https://evil.example%2f.googleapis.com/token",
		"https://oauth2.googleapis.com:8443/token",
		"https://oauth2.googleapis.com:/token",
		"https://oauth2.googleapis.com:0443x/token",
		"https://oauth2.googleapis.com:99999/token",
		"https://[evil].googleapis.com/token",
		"https://169.254.169.254/token",
		"https://localhost/token",
		"https://accounts.google.com.evil.example/token",
		"https://www.google.com/token",
		" https://oauth2.googleapis.com/token",
	};
	static const char *const fields[] = {
		"token_uri",
		"token_url",
		"token_info_url",
		"service_account_impersonation_url",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		write_with_url("token_uri", urls[i]);
		check_refused(": field \"token_uri\" is \"", "get the file again");
	}
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		char start[80];
		(void)snprintf(start, sizeof(start), ": field \"%s\" is \"https://evil.example/\"",
			       fields[i]);
		write_with_url(fields[i], "https://evil.example/");
		check_refused(start, "get the file again");
	}
}

static void googles_own_token_urls_are_accepted(void **state)
{
	static const char *const urls[] = {
		"https://oauth2.googleapis.com/token",
		"https://oauth2.googleapis.com:443/token",
		"HTTPS://OAuth2.GoogleAPIs.com/token",
		"https://www.googleapis.com/oauth2/v4/token",
		"https://accounts.google.com/o/oauth2/token",
		"https://googleapis.com",
		"https://oauth2.mtls.googleapis.com/token?x=y",
	};
	const struct credential_options options = file_options();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		write_with_url("token_uri", urls[i]);
		check_accepted(&options);
	}
}

static void a_token_url_may_be_the_configured_endpoint(void **state)
{
	struct credential_options options = file_options();

	(void)state;
	options.oauth2_endpoint = "http://127.0.0.1:4711";
	write_with_url("token_uri", "http://127.0.0.1:4711/token");
	check_accepted(&options);
	write_with_url("token_uri", "http://127.0.0.1:4712/token");
	check_refused_by(&options, ": field \"token_uri\" is ", "get the file again");
	write_with_url("token_uri", "https://127.0.0.1:4711/token");
	check_refused_by(&options, ": field \"token_uri\" is ", "get the file again");
	options.oauth2_endpoint = "https://[::1]:4711";
	write_with_url("token_uri", "https://[::1]:4711/token");
	check_accepted(&options);
	write_with_url("token_uri", "https://[::1]/token");
	check_refused_by(&options, ": field \"token_uri\" is ", "get the file again");
}

static void in_another_universe_googles_hosts_are_foreign(void **state)
{
	struct credential_options options = file_options();
	static const struct {
		const char *url;
		bool accepted;
	} cases[] = {
		{"https://oauth2.s3nsapis.fr/token", true},
		{"https://oauth2.googleapis.com/token", false},
		{"https://accounts.google.com/o/oauth2/token", false},
	};

	(void)state;
	options.universe_domain = "s3nsapis.fr";
	options.oauth2_endpoint = "https://oauth2.s3nsapis.fr";
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[512];
		(void)snprintf(text, sizeof(text),
			       "{\"type\":\"authorized_user\",\"universe_domain\":\"s3nsapis.fr\","
			       "\"token_uri\":\"%s\"," USER_FIELDS "}",
			       cases[i].url);
		write_file(text, 0600);
		if (cases[i].accepted)
			check_accepted(&options);
		else
			check_refused_by(&options, ": field \"token_uri\" is ",
					 "get the file again");
	}
}

static void a_secret_that_everybody_can_read_is_refused_with_the_chmod(void **state)
{
	static const struct {
		mode_t mode;
		const char *chmod; /* NULL: accepted */
	} cases[] = {
		{0400, NULL},	    {0600, NULL},	{0640, NULL},	    {0440, NULL},
		{0700, NULL},	    {0644, "o-r"},	{0604, "o-r"},	    {0444, "o-r"},
		{0620, "go-w"},	    {0660, "go-w"},	{0602, "go-w"},	    {0622, "go-w"},
		{0666, "go-w,o-r"}, {0664, "go-w,o-r"}, {0777, "go-w,o-r"},
	};
	const struct credential_options options = file_options();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char repair[160];
		write_file(USER, cases[i].mode);
		if (!cases[i].chmod) {
			check_accepted(&options);
			continue;
		}
		(void)snprintf(repair, sizeof(repair), "chmod %s %s", cases[i].chmod, path);
		check_refused(": ", repair);
	}
}

static void the_chmod_of_the_error_mends_the_file(void **state)
{
	const struct credential_options options = file_options();

	(void)state;
	/* What chmod go-w,o-r makes of 0666. */
	write_file(USER, 0666 & ~(mode_t)0026);
	check_accepted(&options);
}

static void adc_takes_the_file_that_the_variable_names(void **state)
{
	struct credential_options options = file_options();

	(void)state;
	options.type = "adc";
	options.file = NULL;
	options.env_credentials_file = path;
	options.env_home = "/nonexistent";
	write_file(USER, 0600);
	check_accepted(&options);
}

static void adc_never_falls_through_from_a_variable_that_is_set(void **state)
{
	struct credential_options options = file_options();
	struct credential *credential = NULL;
	struct err err;

	(void)state;
	/* A good file where gcloud would have put it. */
	(void)snprintf(path, sizeof(path), "%s/application_default_credentials.json", dir);
	write_file(USER, 0600);
	options.type = "adc";
	options.env_cloudsdk_config = dir;
	check_accepted(&options);
	options.env_credentials_file = "/nonexistent/key.json";
	assert_int_equal(credential_open(&options, &credential, &err), -1);
	assert_non_null(strstr(err.text, "GOOGLE_APPLICATION_CREDENTIALS: /nonexistent/key.json: "
					 "No such file or directory: "));
	assert_non_null(strstr(err.text, LOGIN));
	/* Set to nothing is not set. */
	options.env_credentials_file = "";
	check_accepted(&options);
}

static void adc_looks_in_cloudsdk_config_or_else_at_home(void **state)
{
	struct credential_options options = file_options();
	struct credential *credential = NULL;
	char config[160];
	char gcloud[192];
	struct err err;

	(void)state;
	(void)snprintf(config, sizeof(config), "%s/.config", dir);
	(void)snprintf(gcloud, sizeof(gcloud), "%s/gcloud", config);
	assert_int_equal(mkdir(config, 0700), 0);
	assert_int_equal(mkdir(gcloud, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/.config/gcloud/application_default_credentials.json",
		       dir);
	write_file(USER, 0600);
	options.type = "adc";
	options.env_home = dir;
	check_accepted(&options);
	options.env_cloudsdk_config = "";
	check_accepted(&options);
	/* With the variable, the home directory is not looked at. */
	options.env_cloudsdk_config = "/nonexistent";
	assert_int_equal(credential_open(&options, &credential, &err), -1);
	assert_non_null(strstr(err.text, "/nonexistent/application_default_credentials.json"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(gcloud), 0);
	assert_int_equal(rmdir(config), 0);
}

static void check_repair(const struct credential_options *options, const char *repair)
{
	struct credential *credential = NULL;
	struct err err;

	assert_int_equal(credential_open(options, &credential, &err), 0);
	assert_string_equal(credential_repair(credential), repair);
	credential_free(credential);
}

/* gcloud writes to a place of its own: to another one the file has to be brought. */
static void the_command_to_log_in_again_is_that_of_the_place(void **state)
{
	static const char login[] = "gcloud auth application-default login";
	struct credential_options options = file_options();
	char repair[320];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/application_default_credentials.json", dir);
	write_file(USER, 0600);
	options.file = path;
	(void)snprintf(repair, sizeof(repair),
		       "log in again with: %s, then copy the file that it writes to %s", login,
		       path);
	check_repair(&options, repair);
	options.type = "adc";
	options.env_credentials_file = path;
	check_repair(&options, repair);
	options.env_cloudsdk_config = dir;
	(void)snprintf(repair, sizeof(repair), "log in again with: CLOUDSDK_CONFIG=%s %s", dir,
		       login);
	check_repair(&options, repair);
	assert_int_equal(unlink(path), 0);
}

static void adc_that_finds_nothing_says_where_it_looked_and_what_to_run(void **state)
{
	struct credential_options options = file_options();
	struct credential *credential = NULL;
	char place[160];
	struct err err;

	(void)state;
	options.type = "adc";
	options.env_home = dir;
	(void)snprintf(place, sizeof(place),
		       "%s/.config/gcloud/application_default_credentials.json", dir);
	assert_int_equal(credential_open(&options, &credential, &err), -1);
	assert_non_null(strstr(err.text, "GOOGLE_APPLICATION_CREDENTIALS"));
	assert_non_null(strstr(err.text, place));
	assert_non_null(strstr(err.text, LOGIN));
	options.env_home = NULL;
	assert_int_equal(credential_open(&options, &credential, &err), -1);
	assert_non_null(strstr(err.text, "HOME"));
}

static void adc_ends_at_the_metadata_server_only_where_that_is_configured(void **state)
{
	struct credential_options options = file_options();
	struct credential_info info;
	struct credential *credential = NULL;
	struct err err;

	(void)state;
	options.type = "adc";
	options.env_home = dir;
	options.metadata_host = "127.0.0.1:1";
	assert_int_equal(credential_open(&options, &credential, &err), -1);
	options.adc_metadata = true;
	assert_int_equal(credential_open(&options, &credential, &err), 0);
	credential_info(credential, &info);
	assert_string_equal(info.type, "metadata");
	credential_free(credential);
	options.env_home = NULL;
	check_accepted(&options);
	/* What is set and cannot be used is an error, never a reason to go on. */
	options.env_credentials_file = "/nonexistent/key.json";
	assert_int_equal(credential_open(&options, &credential, &err), -1);
}

static void adc_says_what_is_wrong_with_the_file_it_found(void **state)
{
	struct credential_options options = file_options();

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/application_default_credentials.json", dir);
	options.type = "adc";
	options.env_cloudsdk_config = dir;
	write_file(USER, 0644);
	check_refused_by(&options, ": ", "chmod o-r");
}

static void a_source_type_that_is_not_known_names_those_that_are(void **state)
{
	static const char *const names[] = {"ADC", "", "vault", "external_account"};
	struct credential_options options = file_options();
	struct credential *credential = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		options.type = names[i];
		assert_int_equal(credential_open(&options, &credential, &err), -1);
		assert_int_equal(err.code, ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "adc, file, gcloud, metadata or offline"));
	}
	options.type = "file";
	options.file = NULL;
	assert_int_equal(credential_open(&options, &credential, &err), -1);
	assert_non_null(strstr(err.text, "set file under [source]"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(a_login_of_gcloud_is_accepted),
		CASE(a_key_file_of_a_service_account_is_accepted),
		CASE(a_file_that_is_not_there_is_refused),
		CASE(a_folder_in_its_place_is_refused),
		CASE(a_fifo_in_its_place_is_refused_at_once),
		CASE(an_empty_file_is_refused),
		CASE(a_file_that_is_too_large_is_refused),
		CASE(a_truncated_file_is_refused_at_every_length),
		CASE(what_is_no_json_is_refused_with_line_and_column),
		CASE(an_oauth_client_file_is_named_as_what_it_is),
		CASE(an_unsupported_type_is_refused_by_its_name),
		CASE(a_field_that_is_missing_is_named),
		CASE(a_broken_private_key_is_refused),
		CASE(a_file_of_another_universe_is_refused),
		CASE(a_foreign_token_url_is_refused),
		CASE(googles_own_token_urls_are_accepted),
		CASE(a_token_url_may_be_the_configured_endpoint),
		CASE(in_another_universe_googles_hosts_are_foreign),
		CASE(a_secret_that_everybody_can_read_is_refused_with_the_chmod),
		CASE(the_chmod_of_the_error_mends_the_file),
		CASE(adc_takes_the_file_that_the_variable_names),
		CASE(adc_never_falls_through_from_a_variable_that_is_set),
		CASE(adc_looks_in_cloudsdk_config_or_else_at_home),
		CASE(the_command_to_log_in_again_is_that_of_the_place),
		CASE(adc_that_finds_nothing_says_where_it_looked_and_what_to_run),
		CASE(adc_ends_at_the_metadata_server_only_where_that_is_configured),
		CASE(adc_says_what_is_wrong_with_the_file_it_found),
		CASE(a_source_type_that_is_not_known_names_those_that_are),
	};

	return cmocka_run_group_tests(tests, make_key, free_key);
}
