/* See metadata.h. The text is a sequence of: name size and value size (a size_t each), name, value.
 */
#include "wire/metadata.h"

#include "wire/grpc_text.h"

bool metadata_is_binary(bytes name)
{
    return name.size > 4 && memcmp(name.data + name.size - 4, "-bin", 4) == 0;
}

static void append_field(struct buffer *text, bytes name, bytes value)
{
    const size_t sizes[2] = {name.size, value.size};
    buffer_append(text, sizes, sizeof sizes);
    buffer_append_bytes(text, name);
    buffer_append_bytes(text, value);
}

static bool is_allowed(bytes name, bytes value)
{
    return nghttp2_check_header_name(name.data, name.size) &&
           nghttp2_check_header_value(value.data, value.size);
}

void metadata_add_text(struct metadata *metadata, bytes name, bytes value)
{
    size_t before = metadata->text.size;
    if (metadata->count == METADATA_MOST || !is_allowed(name, value))
        return;
    append_field(&metadata->text, name, value);
    if (metadata->text.failed) {
        metadata->text.size = before;
        metadata->text.failed = false;
        return;
    }
    metadata->count++;
}

void metadata_add(struct metadata *metadata, const char *name, bytes value)
{
    struct buffer encoded = {0};
    bool is_binary = metadata_is_binary(bytes_of(name));
    if (is_binary)
        base64_encode(value, &encoded);
    if (!encoded.failed)
        metadata_add_text(metadata, bytes_of(name), is_binary ? buffer_bytes(&encoded) : value);
    buffer_free(&encoded);
}

void metadata_clear(struct metadata *metadata)
{
    buffer_clear(&metadata->text);
    metadata->count = 0;
}

void metadata_free(struct metadata *metadata)
{
    buffer_free(&metadata->text);
    metadata->count = 0;
}

static void add(struct fields *fields, bytes name, bytes value, uint8_t flags)
{
    union { /* nghttp2_nv has no const */
        const uint8_t *given;
        uint8_t *wanted;
    } name_data = {.given = name.data}, value_data = {.given = value.data};
    if (fields->count < FIELDS_MOST)
        fields->list[fields->count++] = (nghttp2_nv){.name = name_data.wanted,
                                                     .value = value_data.wanted,
                                                     .namelen = name.size,
                                                     .valuelen = value.size,
                                                     .flags = flags};
}

void fields_add_constant(struct fields *fields, bytes name, bytes value)
{
    add(fields, name, value, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);
}

void fields_add(struct fields *fields, const char *name, bytes value)
{
    add(fields, bytes_of(name), value, NGHTTP2_NV_FLAG_NO_COPY_NAME);
}

static void add_all(struct fields *fields, const struct metadata *metadata, uint8_t flags)
{
    const uint8_t *at = metadata->text.data;
    for (size_t i = 0; i < metadata->count; i++) {
        size_t sizes[2];
        memcpy(sizes, at, sizeof sizes);
        at += sizeof sizes;
        add(fields, bytes_make(at, sizes[0]), bytes_make(at + sizes[0], sizes[1]), flags);
        at += sizes[0] + sizes[1];
    }
}

void fields_add_metadata(struct fields *fields, const struct metadata *metadata)
{
    add_all(fields, metadata, NGHTTP2_NV_FLAG_NO_INDEX);
}

void fields_add_shared(struct fields *fields, const struct metadata *metadata)
{
    add_all(fields, metadata, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);
}
