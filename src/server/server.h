/* One server: its data, its event loops, its port. No globals: a process may have several.
 *
 *     server_create    opens the data, binds the port; nothing is accepted yet
 *     server_start     starts the loops: from now on it serves
 *     server_reload    reads files again that may change while it serves
 *     server_look      looks what is the matter with it, so that the log tells of it, and gives
 *                      memory back that has come free
 *     server_drain     lets clients finish and leave
 *     server_destroy   ends what is left and closes the data
 *
 * All on one thread, which is none of the server's. */
#ifndef TRESTLE_SERVER_SERVER_H
#define TRESTLE_SERVER_SERVER_H

#include "base/log.h"
#include "base/settings.h"
#include "os/address.h"

struct server;

/* The settings, log and clock must outlive the server. INVALID_ARGUMENT for settings that turn out
 * to be impossible, as one line; else what opening data or port failed with. */
status server_create(const struct settings *settings, struct log *log, struct clock *clock,
                     struct server **out);

/* Where it listens, with the port that was chosen if port 0 was asked for. */
const struct address *server_address(const struct server *server);

status server_start(struct server *server);

/* Reads certificates, keys, tokens and policies again, those that have changed, or `all`. What
 * cannot be read is logged, and what was read before goes on being used. */
void server_reload(struct server *server, bool all);

/* Looks at the server's condition, about once a second: a request sees what is so at the moment,
 * but the log has only what was looked at, and only this looks at the certificate. May wait for the
 * disk. */
void server_look(struct server *server);

/* Whether the setting memory is given. */
bool server_memory_is_bounded(const struct server *server);

/* Twenty times a second if that is so, else once, on one thread: what memory the process takes, and
 * whether that is more than the setting says. */
void server_look_at_memory(struct server *server);

/* Accepts no more, asks clients to leave, and waits until they have and their calls have ended, at
 * most for the setting drain-timeout. */
void server_drain(struct server *server);

/* Cancels what still runs, waits until it has ended, and closes the data. Not OK if the next start
 * will miss files that were removed meanwhile. NULL is fine. */
status server_destroy(struct server *server);

#endif
