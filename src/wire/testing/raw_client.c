/* See raw_client.h. */
#include "wire/testing/raw_client.h"

#include "base/limits.h"

static int set_up_with(void **state, struct grpc_server_options *options)
{
    struct raw_client *f = calloc(1, sizeof *f);
    assert_non_null(f);
    if (options != NULL)
        f->t.options = *options;
    testing_start(&f->t);
    assert_int_equal(nghttp2_hd_inflate_new(&f->inflater), 0);
    buffer_append(&f->t.to_server, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    *state = f;
    return 0;
}

int raw_client_set_up(void **state)
{
    return set_up_with(state, NULL);
}

int raw_client_set_up_small(void **state)
{
    struct grpc_server_options options;
    grpc_server_options_init(&options);
    options.max_message_size = 1 << 20;
    options.max_concurrent_streams = 10;
    return set_up_with(state, &options);
}

int raw_client_tear_down(void **state)
{
    struct raw_client *f = *state;
    if (f->t.held != NULL)
        grpc_call_finish(f->t.held, status_ok());
    for (int i = 0; i < f->t.kept_count; i++)
        grpc_call_finish(f->t.kept[i], status_ok());
    testing_stop(&f->t);
    nghttp2_hd_inflate_del(f->inflater);
    buffer_free(&f->block);
    free(f);
    return 0;
}

/* --- frames to the server --- */

void put_frame_header(struct raw_client *f, size_t size, uint8_t type, uint8_t flags,
                      int32_t stream)
{
    uint32_t id = (uint32_t)stream;
    const uint8_t header[9] = {
        (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size,      type,       flags,
        (uint8_t)(id >> 24),   (uint8_t)(id >> 16),  (uint8_t)(id >> 8), (uint8_t)id};
    buffer_append(&f->t.to_server, header, sizeof header);
}

void put_frame(struct raw_client *f, uint8_t type, uint8_t flags, int32_t stream, bytes payload)
{
    put_frame_header(f, payload.size, type, flags, stream);
    buffer_append_bytes(&f->t.to_server, payload);
}

void put_settings(struct raw_client *f)
{
    put_frame(f, NGHTTP2_SETTINGS, 0, 0, bytes_make(NULL, 0));
}

void put_reset(struct raw_client *f, int32_t stream)
{
    put_frame(f, NGHTTP2_RST_STREAM, 0, stream, bytes_make("\0\0\0\010", 4)); /* CANCEL */
}

void put_window_update(struct raw_client *f, int32_t stream, uint32_t increment)
{
    const uint8_t payload[4] = {(uint8_t)(increment >> 24), (uint8_t)(increment >> 16),
                                (uint8_t)(increment >> 8), (uint8_t)increment};
    put_frame(f, NGHTTP2_WINDOW_UPDATE, 0, stream, bytes_make(payload, 4));
}

void put_initial_window(struct raw_client *f, uint32_t size)
{
    const uint8_t payload[6] = {0,
                                NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                (uint8_t)(size >> 24),
                                (uint8_t)(size >> 16),
                                (uint8_t)(size >> 8),
                                (uint8_t)size};
    put_frame(f, NGHTTP2_SETTINGS, 0, 0, bytes_make(payload, sizeof payload));
}

/* HPACK: a string's length, in 7 bits and more. */
static void put_length(struct buffer *block, size_t size)
{
    if (size < 127) {
        buffer_append_byte(block, (uint8_t)size);
        return;
    }
    buffer_append_byte(block, 127);
    for (size -= 127; size >= 128; size /= 128)
        buffer_append_byte(block, (uint8_t)(size % 128 + 128));
    buffer_append_byte(block, (uint8_t)size);
}

void put_literal(struct buffer *block, const char *name, bytes value, bool index)
{
    buffer_append_byte(block, index ? 0x40 : 0x00);
    put_length(block, strlen(name));
    buffer_append_bytes(block, bytes_of(name));
    put_length(block, value.size);
    buffer_append_bytes(block, value);
}

void put_field(struct raw_client *f, const char *name, const char *value)
{
    put_literal(&f->block, name, bytes_of(value), false);
}

void start_block(struct raw_client *f, const char *path)
{
    buffer_clear(&f->block);
    put_field(f, ":method", "POST");
    put_field(f, ":scheme", "http");
    put_field(f, ":path", path);
    put_field(f, ":authority", "test");
    put_field(f, "content-type", "application/grpc");
}

void put_block(struct raw_client *f, uint8_t flags, int32_t stream)
{
    put_frame(f, NGHTTP2_HEADERS, flags, stream, buffer_bytes(&f->block));
}

void put_headers(struct raw_client *f, int32_t stream, const char *path)
{
    start_block(f, path);
    put_block(f, END_HEADERS, stream);
}

void put_data(struct raw_client *f, int32_t stream, uint8_t flags, const void *data, size_t size)
{
    put_frame(f, NGHTTP2_DATA, flags, stream, bytes_make(data, size));
}

void put_request(struct raw_client *f, int32_t stream, const char *path)
{
    put_headers(f, stream, path);
    put_data(f, stream, END_STREAM, "\0\0\0\0\0", 5);
}

/* --- frames from the server --- */

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void note_field(struct raw_client *f, const nghttp2_nv *field)
{
    static const char *const names[] = {"grpc-status", ":status", "grpc-accept-encoding"};
    char *const to[] = {f->grpc_status, f->http_status, f->accept_encoding};
    const size_t room[] = {sizeof f->grpc_status, sizeof f->http_status, sizeof f->accept_encoding};
    bytes name = bytes_make(field->name, field->namelen);
    for (size_t i = 0; i < 3; i++) {
        if (!bytes_equal(name, bytes_of(names[i])))
            continue;
        assert_true(field->valuelen < room[i]);
        memcpy(to[i], field->value, field->valuelen);
        to[i][field->valuelen] = '\0';
    }
}

static void read_block(struct raw_client *f, bytes block)
{
    int flags = 0;
    while ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) {
        nghttp2_nv field;
        ssize_t used =
            nghttp2_hd_inflate_hd2(f->inflater, &field, &flags, block.data, block.size, 1);
        assert_true(used >= 0);
        block = bytes_from(block, (size_t)used);
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
            note_field(f, &field);
    }
    nghttp2_hd_inflate_end_headers(f->inflater);
}

static void read_frame(struct raw_client *f, uint8_t type, uint8_t flags, int32_t stream,
                       bytes payload)
{
    switch (type) {
    case NGHTTP2_GOAWAY:
        f->goaway = true;
        f->goaway_code = read_u32(payload.data + 4);
        break;
    case NGHTTP2_RST_STREAM:
        f->resets++;
        f->reset_stream = stream;
        f->reset_code = read_u32(payload.data);
        break;
    case NGHTTP2_HEADERS:
        assert_true((flags & END_HEADERS) != 0);
        read_block(f, payload);
        break;
    case NGHTTP2_DATA:
        f->data_bytes += payload.size;
        break;
    case NGHTTP2_PING:
        f->pings++;
        break;
    default:
        break;
    }
}

void turn(struct raw_client *f)
{
    testing_turn(&f->t);
    testing_turn(&f->t);
    bytes rest = buffer_bytes(&f->t.from_server);
    while (rest.size > 0) {
        assert_true(rest.size >= 9);
        size_t size = read_u32(rest.data) >> 8;
        assert_true(rest.size - 9 >= size);
        read_frame(f, rest.data[3], rest.data[4], (int32_t)read_u32(rest.data + 5),
                   bytes_make(rest.data + 9, size));
        rest = bytes_from(rest, size + 9);
    }
    buffer_clear(&f->t.from_server);
}

void advance_a_quarter(struct raw_client *f)
{
    for (int i = 0; i < 5; i++)
        testing_advance(&f->t, f->t.options.stall_timeout_us / 20);
}

void assert_alive(struct raw_client *f, int32_t stream)
{
    assert_false(f->goaway);
    f->grpc_status[0] = '\0';
    put_request(f, stream, "/test.Service/Echo");
    turn(f);
    assert_string_equal(f->grpc_status, "0");
    assert_false(grpc_connection_is_finished(f->t.connection));
}

void assert_closed(struct raw_client *f, uint32_t code)
{
    turn(f);
    assert_true(f->goaway);
    assert_int_equal(f->goaway_code, code);
    assert_true(grpc_connection_is_finished(f->t.connection));
}

void assert_answer(struct raw_client *f, const char *grpc_status)
{
    turn(f);
    assert_string_equal(f->grpc_status, grpc_status);
}
