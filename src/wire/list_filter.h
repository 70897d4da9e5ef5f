/* Filters of lists of messages: terms that all must hold,
 *
 *     done = false AND metadata.common.operation_type = CREATE_INDEX
 *
 * A term is a path of fields, a google.protobuf.Any as what it is packed from, `=` or `:`, and a
 * value, in quotes or without. Of a list any element will do, and it may be called as one of them
 * (`kind` for `kinds`); enums are compared by name, in either case. `AND` and parentheses may be
 * left out; a boolean by itself, with or without `NOT` before it, is a term, too. Times, numbers
 * and bytes are not compared. */
#ifndef TRESTLE_WIRE_LIST_FILTER_H
#define TRESTLE_WIRE_LIST_FILTER_H

#include "wire/proto.h"

/* INVALID_ARGUMENT for what is no filter of messages of this type. */
status list_filter_check(const ProtobufCMessageDescriptor *type, const char *filter,
                         struct arena *arena);

/* Of a filter that was checked. What a message does not have does not fit. */
status list_filter_fits(const char *filter, const ProtobufCMessage *message, struct arena *arena,
                        bool *out);

#endif
