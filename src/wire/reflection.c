/* See reflection.h. Both versions of the interface have the same bytes, so one handler serves both.
 *
 * There is no index: a question walks through the descriptor set, whose wire format is read where
 * it lies. The set is our own and small, and questions are rare. */
#include "wire/reflection.h"

#include "base/varint.h"
#include "wire/proto.h"
#include "wire/proto_call.h"

#include "grpc/reflection/v1/reflection.pb-c.h"

#include <stdlib.h>

struct reflection {
    struct grpc_service v1;
    struct grpc_service v1alpha;
    const char **names;
    size_t name_count;
    bytes descriptor_set;
};

/* --- descriptors, on the wire --- */

/* Numbers of google/protobuf/descriptor.proto. */
enum {
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_DEPENDENCY = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    FILE_EXTENSION = 7,
    ANY_NAME = 1, /* of messages, fields, enums, values, services, methods, oneofs */
};

/* The next field that has a length, skipping others; false at the end. */
static bool next_field(bytes *message, uint32_t *number, bytes *value)
{
    enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };
    const uint8_t *at = message->data;
    const uint8_t *end = at + message->size;
    while (at < end) {
        uint64_t key, content;
        at = varint_read(at, end, &key);
        if (at == NULL)
            return false;
        uint64_t skipped = (key & 7) == FIXED64 ? 8 : (key & 7) == FIXED32 ? 4 : 0;
        if (skipped == 0) {
            at = varint_read(at, end, &content);
            if (at == NULL)
                return false;
            skipped = (key & 7) == LENGTH ? content : 0;
        }
        if (skipped > (uint64_t)(end - at))
            return false;
        bytes found = bytes_make(at, (size_t)skipped);
        at += skipped;
        if ((key & 7) != LENGTH)
            continue;
        *number = (uint32_t)(key >> 3);
        *value = found;
        *message = bytes_make(at, (size_t)(end - at));
        return true;
    }
    return false;
}

static bytes find_field(bytes message, uint32_t wanted)
{
    uint32_t number;
    bytes value;
    while (next_field(&message, &number, &value))
        if (number == wanted)
            return value;
    return bytes_make(NULL, 0);
}

/* Takes the part before the first dot off the front of a name. */
static bytes take_part(bytes *name)
{
    const uint8_t *dot = name->size == 0 ? NULL : memchr(name->data, '.', name->size);
    bytes part = *name;
    if (dot == NULL) {
        *name = bytes_make(NULL, 0);
        return part;
    }
    part.size = (size_t)(dot - name->data);
    *name = bytes_from(*name, part.size + 1);
    return part;
}

/* What may have members with names, in the file itself and in messages, enums and services. */
static bool may_be_member(uint32_t number, bool of_file)
{
    enum { FIELD_VALUE_OR_METHOD = 2, NESTED = 3, NESTED_ENUM = 4, EXTENSION = 6, ONEOF = 8 };
    if (of_file)
        return number == FILE_MESSAGE || number == FILE_ENUM || number == FILE_SERVICE ||
               number == FILE_EXTENSION;
    return number == FIELD_VALUE_OR_METHOD || number == NESTED || number == NESTED_ENUM ||
           number == EXTENSION || number == ONEOF;
}

/* Whether a descriptor declares "Table", or "Table.View", or "Table.name". */
static bool declares(bytes descriptor, bytes name, bool is_file)
{
    for (;;) {
        bytes part = take_part(&name);
        bytes rest = descriptor;
        bytes member = {0};
        uint32_t number;
        bool found = false;
        while (!found && next_field(&rest, &number, &member))
            found =
                may_be_member(number, is_file) && bytes_equal(find_field(member, ANY_NAME), part);
        if (!found || name.size == 0)
            return found;
        descriptor = member;
        is_file = false;
    }
}

static bool has_symbol(bytes file, bytes symbol)
{
    bytes package = find_field(file, FILE_PACKAGE);
    if (package.size > 0) {
        if (!bytes_start_with(symbol, package) || symbol.size <= package.size ||
            symbol.data[package.size] != '.')
            return false;
        symbol = bytes_from(symbol, package.size + 1);
    }
    return declares(file, symbol, true);
}

static bool has_name(bytes file, bytes name)
{
    return bytes_equal(find_field(file, FILE_NAME), name);
}

/* --- answers --- */

typedef Reflection__ServerReflectionRequest question;
typedef Reflection__ServerReflectionResponse response;

/* The files of the set up to the first that `matches`, in `files`; their number, or 0 if none. */
static size_t find_files(const struct reflection *reflection, bytes wanted,
                         bool (*matches)(bytes file, bytes wanted), bytes *files)
{
    bytes set = reflection->descriptor_set;
    uint32_t number;
    bytes file;
    size_t count = 0;
    while (next_field(&set, &number, &file)) {
        if (number != SET_FILE)
            continue;
        files[count++] = file;
        if (matches(file, wanted))
            return count;
    }
    return 0;
}

static size_t count_files(const struct reflection *reflection)
{
    bytes set = reflection->descriptor_set;
    uint32_t number;
    bytes file;
    size_t count = 0;
    while (next_field(&set, &number, &file))
        count += number == SET_FILE;
    return count;
}

static void mark_imports(bytes file, const bytes *files, size_t count, bool *needed)
{
    uint32_t number;
    bytes import;
    while (next_field(&file, &number, &import))
        for (size_t i = 0; number == FILE_DEPENDENCY && i < count; i++)
            needed[i] = needed[i] || has_name(files[i], import);
}

static status answer_error(struct arena *arena, enum status_code code, const char *words,
                           response *out)
{
    Reflection__ErrorResponse *error;
    PROTO_NEW(arena, error, REFLECTION__ERROR_RESPONSE__INIT);
    error->error_code = (int32_t)code;
    error->error_message = words;
    out->message_response_case =
        REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    out->error_response = error;
    return status_ok();
}

/* The file that matches, and all that it imports, directly or not. */
static status answer_files(const struct reflection *reflection, struct arena *arena, bytes wanted,
                           bool (*matches)(bytes file, bytes wanted), response *out)
{
    size_t most = count_files(reflection);
    bytes *files = arena_alloc(arena, most * sizeof *files);
    bool *needed = arena_zalloc(arena, most * sizeof *needed);
    ProtobufCBinaryData *list = arena_alloc(arena, most * sizeof *list);
    if (files == NULL || needed == NULL || list == NULL)
        return status_out_of_memory();
    size_t count = find_files(reflection, wanted, matches, files);
    if (count == 0)
        return answer_error(arena, STATUS_NOT_FOUND, "there is no such file or symbol", out);
    Reflection__FileDescriptorResponse *answer;
    PROTO_NEW(arena, answer, REFLECTION__FILE_DESCRIPTOR_RESPONSE__INIT);
    answer->file_descriptor_proto = list;
    needed[count - 1] = true;
    for (size_t i = count; i-- > 0;) {
        if (!needed[i])
            continue;
        mark_imports(files[i], files, i, needed);
        list[answer->n_file_descriptor_proto++] = proto_data(files[i]);
    }
    out->message_response_case =
        REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    out->file_descriptor_response = answer;
    return status_ok();
}

static status answer_services(const struct reflection *reflection, struct arena *arena,
                              response *out)
{
    Reflection__ListServiceResponse *answer;
    PROTO_NEW(arena, answer, REFLECTION__LIST_SERVICE_RESPONSE__INIT);
    answer->service = arena_alloc(arena, reflection->name_count * sizeof *answer->service);
    if (answer->service == NULL)
        return status_out_of_memory();
    for (; answer->n_service < reflection->name_count; answer->n_service++) {
        Reflection__ServiceResponse *service;
        PROTO_NEW(arena, service, REFLECTION__SERVICE_RESPONSE__INIT);
        service->name = reflection->names[answer->n_service];
        answer->service[answer->n_service] = service;
    }
    out->message_response_case =
        REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    out->list_services_response = answer;
    return status_ok();
}

static status answer(const struct reflection *reflection, struct arena *arena,
                     const question *asked, response *out)
{
    switch (asked->message_request_case) {
    case REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        return answer_files(reflection, arena, bytes_of(asked->file_by_filename), has_name, out);
    case REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        return answer_files(reflection, arena, bytes_of(asked->file_containing_symbol), has_symbol,
                            out);
    case REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        return answer_services(reflection, arena, out);
    case REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
    case REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        return answer_error(arena, STATUS_NOT_FOUND, "proto3 messages have no extensions", out);
    default:
        return answer_error(arena, STATUS_INVALID_ARGUMENT, "the request asks nothing", out);
    }
}

/* Decodes and answers one question, in an arena of its own: the call may go on for long. */
static status reply(const struct reflection *reflection, struct grpc_call *call,
                    struct arena *arena, bytes request)
{
    ProtobufCMessage *asked;
    TRY(proto_decode(&reflection__server_reflection_request__descriptor, request, arena, &asked));
    response out = REFLECTION__SERVER_REFLECTION_RESPONSE__INIT;
    out.original_request = (question *)asked;
    out.valid_host = out.original_request->host;
    TRY(answer(reflection, arena, out.original_request, &out));
    grpc_call_send_proto(call, &out.base);
    return status_ok();
}

static void handle(void *context, struct grpc_call *call, bytes request)
{
    enum { ARENA_LIMIT = 1 << 20 };
    if (request.data == NULL) { /* the client has no more questions */
        grpc_call_finish(call, status_ok());
        return;
    }
    struct arena *arena = arena_create(ARENA_LIMIT);
    status s = arena == NULL ? status_out_of_memory() : reply(context, call, arena, request);
    arena_destroy(arena);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}

/* --- life --- */

static struct grpc_service make_service(struct reflection *reflection, const char *name)
{
    static const struct grpc_method methods[] = {{"ServerReflectionInfo", GRPC_BIDI, handle}};
    return (struct grpc_service){
        .name = name, .methods = methods, .method_count = 1, .context = reflection};
}

status reflection_create(const struct grpc_service *const *services, size_t service_count,
                         bytes descriptor_set, struct reflection **out)
{
    *out = NULL;
    struct reflection *reflection = calloc(1, sizeof *reflection);
    const char **names = calloc(service_count + 2, sizeof *names);
    if (reflection == NULL || names == NULL) {
        free(reflection);
        free(names);
        return status_out_of_memory();
    }
    reflection->v1 = make_service(reflection, "grpc.reflection.v1.ServerReflection");
    reflection->v1alpha = make_service(reflection, "grpc.reflection.v1alpha.ServerReflection");
    for (size_t i = 0; i < service_count; i++)
        names[i] = services[i]->name;
    names[service_count] = reflection->v1.name;
    names[service_count + 1] = reflection->v1alpha.name;
    reflection->names = names;
    reflection->name_count = service_count + 2;
    reflection->descriptor_set = descriptor_set;
    *out = reflection;
    return status_ok();
}

void reflection_destroy(struct reflection *reflection)
{
    if (reflection == NULL)
        return;
    free(reflection->names);
    free(reflection);
}

const struct grpc_service *reflection_service_v1(const struct reflection *reflection)
{
    return &reflection->v1;
}

const struct grpc_service *reflection_service_v1alpha(const struct reflection *reflection)
{
    return &reflection->v1alpha;
}
