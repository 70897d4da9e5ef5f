/* A client made of raw frames, for tests of what no well-behaved client sends: it puts frames into
 * the server's input, and notes what the server's frames say. One thread, as struct testing. */
#ifndef TRESTLE_WIRE_TESTING_RAW_CLIENT_H
#define TRESTLE_WIRE_TESTING_RAW_CLIENT_H

#include "wire/testing/grpc_testing.h"

#include <nghttp2/nghttp2.h>

enum { END_STREAM = NGHTTP2_FLAG_END_STREAM, END_HEADERS = NGHTTP2_FLAG_END_HEADERS };

struct raw_client {
    struct testing t;
    struct buffer block; /* a header block under construction */

    /* What the server has sent. */
    nghttp2_hd_inflater *inflater;
    bool goaway;
    uint32_t goaway_code;
    int resets;
    int32_t reset_stream;
    uint32_t reset_code;
    size_t data_bytes;
    int pings;
    char grpc_status[8]; /* of the last answer that had one */
    char http_status[8];
    char accept_encoding[32];
};

int raw_client_set_up(void **state);

/* Small limits, so that they are reached soon. */
int raw_client_set_up_small(void **state);

int raw_client_tear_down(void **state);
void put_frame_header(struct raw_client *f, size_t size, uint8_t type, uint8_t flags,
                      int32_t stream);
void put_frame(struct raw_client *f, uint8_t type, uint8_t flags, int32_t stream, bytes payload);
void put_settings(struct raw_client *f);
void put_reset(struct raw_client *f, int32_t stream);
void put_window_update(struct raw_client *f, int32_t stream, uint32_t increment);
/* What the server may send on each stream until it is given more. */
void put_initial_window(struct raw_client *f, uint32_t size);

/* A literal field; with `index`, one that enters the dynamic table. */
void put_literal(struct buffer *block, const char *name, bytes value, bool index);

void put_field(struct raw_client *f, const char *name, const char *value);
void start_block(struct raw_client *f, const char *path);
void put_block(struct raw_client *f, uint8_t flags, int32_t stream);
void put_headers(struct raw_client *f, int32_t stream, const char *path);
void put_data(struct raw_client *f, int32_t stream, uint8_t flags, const void *data, size_t size);
/* A whole request with an empty message. */
void put_request(struct raw_client *f, int32_t stream, const char *path);

/* Gives the server what was put, and reads what it has sent. */
void turn(struct raw_client *f);

/* A quarter of the time after which a peer that stalls is dropped, in the steps in which the
 * connection looks for it. */
void advance_a_quarter(struct raw_client *f);

/* The connection has stayed whole: a call on a new stream is answered. */
void assert_alive(struct raw_client *f, int32_t stream);

void assert_closed(struct raw_client *f, uint32_t code);
void assert_answer(struct raw_client *f, const char *grpc_status);

#endif
