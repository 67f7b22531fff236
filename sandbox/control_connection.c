/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/control_connection.h"

#include "broker/net/loop.h"
#include "sandbox/client/broker_client.h"
#include "sandbox/commands.h"

int control_connection_open(struct control_connection *connection,
			    const struct invocation *invocation, const char *control,
			    struct err *err)
{
	AUTO_FREE char *path =
		control_path(invocation->caller, control ? control : invocation->control);

	if (loop_new(&connection->loop, err) ||
	    broker_client_new(connection->loop, path, &connection->client, err))
		return STATUS_FAILED;
	return STATUS_OK;
}

void control_connection_close(struct control_connection *connection)
{
	broker_client_free(connection->client);
	loop_free(connection->loop);
	*connection = (struct control_connection){0};
}
