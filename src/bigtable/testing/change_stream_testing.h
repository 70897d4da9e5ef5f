/* A client of ReadChangeStream for its tests, as strict as Google's in Java: what it was told, and
 * requests. The stream that it reads: table_stream_testing.h. */
#ifndef TRESTLE_BIGTABLE_TESTING_CHANGE_STREAM_TESTING_H
#define TRESTLE_BIGTABLE_TESTING_CHANGE_STREAM_TESTING_H

#include "bigtable/testing/table_stream_testing.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum {
    NOW_US = 2000000000,
    MOST_CHANGES = 600,
    CLIENT_TEXT = 400,
    MIB = 1 << 20,
    LARGE_BYTES = 100 * MIB,
};

/* --- what was told --- */

struct change {
    char row_key[16];
    char text[CLIENT_TEXT]; /* its mutations, in short */
    char token[CLIENT_TEXT];
    int64_t time_us;
    int64_t watermark_us;
    Bt__ReadChangeStreamResponse__DataChange head;
};

extern struct client {
    struct change changes[MOST_CHANGES];
    size_t change_count; /* whole ones */
    bool is_inside;      /* a change */
    size_t value_size;   /* of the value that comes in pieces; 0: none does */
    size_t value_sum;
    size_t heartbeats;
    char heartbeat_token[CLIENT_TEXT];
    int64_t heartbeat_watermark_us;
    int64_t watermark_us;
    const Bt__ReadChangeStreamResponse__CloseStream *close;
    enum status_code profile_fails;
} client;

extern uint8_t *large_value; /* of LARGE_BYTES */
int client_make_large_value(void **state);
int client_free_large_value(void **state);

int client_setup(void **state);
int client_teardown(void **state);

/* Whether the changes from that number on are of rows whose keys begin with these letters. */
void assert_keys(size_t from, const char *keys);

/* --- what is in the stream --- */

void set_cell(struct change_list *list, const char *qualifier, int64_t timestamp_us, bytes value);
void put(const char *key, int64_t time_us); /* a record of one small cell */
/* One partition, and a record each second from NOW_US - 10 s on. */
void put_ten(void);

/* --- requests --- */

struct request {
    Bt__ReadChangeStreamRequest message;
    Bt__StreamPartition partition;
    Bt__RowRange range;
    Pb__Timestamp start;
    Pb__Timestamp end;
    Pb__Duration heartbeat;
    Bt__StreamContinuationTokens tokens;
    Bt__StreamContinuationToken token[4];
    Bt__StreamContinuationToken *token_pointers[4];
    Bt__StreamPartition token_partition[4];
    Bt__RowRange token_range[4];
};

void ask(struct request *request, const char *start, const char *end);
void from_time(struct request *request, int64_t us);
void until(struct request *request, int64_t us);
void from_token(struct request *request, const char *start, const char *end, const char *token);
/* Until there is nothing to do. */
void call(const struct request *request);
void let_go(void);

#endif
