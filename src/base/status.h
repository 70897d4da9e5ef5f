/* How a function says that it failed.
 *
 * A `status` is a code, one of gRPC's, and a cause in words that a client may read. It must be
 * looked at: the compiler warns of one that is dropped.
 *
 * Ownership: a status that is not OK owns its detail. A function that receives one either returns
 * it further or ends it with status_free. An OK status owns nothing. A status never fails to be
 * made: without memory for the words, the code goes on alone. */
#ifndef TRESTLE_BASE_STATUS_H
#define TRESTLE_BASE_STATUS_H

#include "base/bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are those of the gRPC wire (grpc.io, "Status codes and their use in gRPC"). */
enum status_code {
    STATUS_OK = 0,
    STATUS_CANCELLED = 1,
    STATUS_UNKNOWN = 2,
    STATUS_INVALID_ARGUMENT = 3,
    STATUS_DEADLINE_EXCEEDED = 4,
    STATUS_NOT_FOUND = 5,
    STATUS_ALREADY_EXISTS = 6,
    STATUS_PERMISSION_DENIED = 7,
    STATUS_RESOURCE_EXHAUSTED = 8,
    STATUS_FAILED_PRECONDITION = 9,
    STATUS_ABORTED = 10,
    STATUS_OUT_OF_RANGE = 11,
    STATUS_UNIMPLEMENTED = 12,
    STATUS_INTERNAL = 13,
    STATUS_UNAVAILABLE = 14,
    STATUS_DATA_LOSS = 15,
    STATUS_UNAUTHENTICATED = 16,
};

struct status_detail;

typedef struct __attribute__((warn_unused_result)) status {
    enum status_code code;
    struct status_detail *detail; /* owned; NULL when OK, or when memory ran out */
} status;

static inline status status_ok(void)
{
    return (status){.code = STATUS_OK, .detail = NULL};
}

static inline bool status_is_ok(status s)
{
    return s.code == STATUS_OK;
}

static inline status status_with(enum status_code code, struct status_detail *detail)
{
    return (status){.code = code, .detail = detail};
}

/* A failure and its cause in words, as printf. A macro, so that the code is set in sight of the
 * compiler and of clang's analyser, which then know that such a status is not OK. */
#define status_make(code, ...) status_with(code, status_detail_make(__VA_ARGS__))

/* NULL without memory. */
__attribute__((format(printf, 1, 2), warn_unused_result)) struct status_detail *
status_detail_make(const char *format, ...);

/* For a failed allocation: RESOURCE_EXHAUSTED. Needs no memory itself. */
static inline status status_out_of_memory(void)
{
    return status_with(STATUS_RESOURCE_EXHAUSTED, NULL);
}

/* For a failed system call: what was tried, and errno's words. The one place that turns errno into
 * a code (ENOSPC and EDQUOT RESOURCE_EXHAUSTED, ENOENT NOT_FOUND, EEXIST ALREADY_EXISTS, EACCES and
 * EPERM PERMISSION_DENIED, ENOMEM RESOURCE_EXHAUSTED, others UNAVAILABLE). */
__attribute__((format(printf, 2, 3), warn_unused_result)) status
status_from_errno(int error, const char *format, ...);

/* The cause in words: never NULL. Valid until the status is freed. */
const char *status_message(status s);

/* The code's name as Google's APIs write it, e.g. "NOT_FOUND". */
const char *status_code_name(enum status_code code);

/* Adds one google.protobuf.Any to what a client gets in `grpc-status-details-bin`: `type` is the
 * full message name ("google.rpc.RetryInfo"), `value` its serialised bytes, copied. Does nothing
 * on an OK status or without memory. */
void status_add_detail(status *s, const char *type, bytes value);

/* Adds google.rpc.RetryInfo: the client had better wait this long before it asks again. */
void status_add_retry_info(status *s, int64_t delay_ms);

/* The details added so far, in order, each serialised as field 3 of google.rpc.Status, ready to be
 * appended to code and message. Empty if there are none. */
bytes status_details(status s);

__attribute__((warn_unused_result)) status status_copy(status s);
void status_free(status s);

/* Takes `s` and forgets it: for the few places where a failure changes nothing that follows. */
static inline void status_ignore(status s)
{
    status_free(s);
}

/* Leaves the function with what `expression` returned, unless that was OK. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        status try_status_ = (expression);                                                         \
        if (!status_is_ok(try_status_))                                                            \
            return try_status_;                                                                    \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
