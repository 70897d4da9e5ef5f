/* The sink that --to names. */
#ifndef TRESTLE_CMD_TAIL_TAIL_SINKS_H
#define TRESTLE_CMD_TAIL_TAIL_SINKS_H

#include "cmd/tail/tail_options.h"
#include "transfer/change_sink.h"

/* INVALID_ARGUMENT for what is no sink. */
status tail_sink_open(const struct tail_options *options, struct change_sink *out);

#endif
