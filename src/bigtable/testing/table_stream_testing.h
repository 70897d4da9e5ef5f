/* A change stream for tests of its readers, which has and does what the test says: `stream`. */
#ifndef TRESTLE_BIGTABLE_TESTING_TABLE_STREAM_TESTING_H
#define TRESTLE_BIGTABLE_TESTING_TABLE_STREAM_TESTING_H

#include "bigtable/testing/data_testing.h"
#include "cluster/stream/table_stream.h"
#include "stream/eras.h"

enum { FAKE_MOST_RECORDS = 300, FAKE_MOST_PARTITIONS = 8, FAKE_LIFE = 77 };

struct fake_record {
    const char *key;
    int64_t time_us;
    enum stream_record_kind kind;
    struct change_list list;
};

struct fake_bounds {
    const char *start;
    const char *end;
};

extern struct fake_stream {
    struct stream_facts facts;
    struct stream_eras eras;
    struct fake_bounds partitions[FAKE_MOST_PARTITIONS];
    size_t partition_count;
    struct fake_record records[FAKE_MOST_RECORDS]; /* of sequence 1 and so on */
    size_t record_count;
    int64_t watermark_us;
    int64_t cap_us;               /* no watermark is greater; 0: there is none */
    struct stream_waiter *waiter; /* the one in line */
    size_t reads;
    void (*on_read)(void); /* before each; NULL: nothing happens */
    enum status_code piece_fails;
    size_t pieces; /* that were read */
} stream;

void fake_stream_reset(void);
void fake_stream_free(void);
void fake_stream_partition(const char *start, const char *end);
/* The next one; mutations are added by change_list_add to what it returns. */
struct change_list *fake_stream_record(const char *key, int64_t time_us);
/* Wakes who is in line. */
void fake_stream_wake(void);
/* The byte of a large value at a place. */
uint8_t fake_stream_byte(size_t offset);

#endif
