/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/session_ports.h"

#include <string.h>

void session_ports_init(struct session_ports *ports, uint32_t offset)
{
	ports->count = SESSION_PORTS_COUNT;
	memset(ports->is_free, true, sizeof(ports->is_free));
	for (size_t i = 0; i < SESSION_PORTS_COUNT; i++)
		ports->free[i] =
			(uint16_t)(SESSION_PORTS_FIRST + (offset + i) % SESSION_PORTS_COUNT);
}

/* True for one of ours; its place in is_free. */
static bool is_ours(uint16_t port, size_t *number)
{
	*number = (size_t)port - SESSION_PORTS_FIRST;
	return port >= SESSION_PORTS_FIRST && *number < SESSION_PORTS_COUNT;
}

static void remove_at(struct session_ports *ports, size_t index)
{
	ports->is_free[ports->free[index] - SESSION_PORTS_FIRST] = false;
	ports->count--;
	memmove(&ports->free[index], &ports->free[index + 1],
		(ports->count - index) * sizeof(ports->free[0]));
}

uint16_t session_ports_take(struct session_ports *ports)
{
	if (!ports->count)
		return 0;
	const uint16_t port = ports->free[0];
	remove_at(ports, 0);
	return port;
}

void session_ports_claim(struct session_ports *ports, uint16_t port)
{
	size_t number;
	size_t i = 0;

	if (!is_ours(port, &number) || !ports->is_free[number])
		return;
	while (ports->free[i] != port)
		i++;
	remove_at(ports, i);
}

void session_ports_give(struct session_ports *ports, uint16_t port)
{
	size_t number;

	if (!is_ours(port, &number) || ports->is_free[number])
		return;
	ports->is_free[number] = true;
	ports->free[ports->count++] = port;
}
