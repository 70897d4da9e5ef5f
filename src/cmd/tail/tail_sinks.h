/* The sink that --to names. */
#ifndef TRESTLE_CMD_TAIL_TAIL_SINKS_H
#define TRESTLE_CMD_TAIL_TAIL_SINKS_H

#include "cmd/tail/tail_options.h"
#include "transfer/change_sink.h"

/* INVALID_ARGUMENT: --to names none. */
status tail_sink_check(const struct tail_options *options);

/* Of options that were checked. An output that nobody reads is waited for until
 * `gives_up`. */
status tail_sink_open(const struct tail_options *options, bool (*gives_up)(void),
                      struct change_sink *out);

#endif
