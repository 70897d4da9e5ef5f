/* Messages of ReadChangeStream. Changes are made by hand, since there may be hundreds of thousands
 * of them a second; heartbeats and closes are left to protobuf-c.
 *
 * A change is one message or several: each is begun, gets one mutation or piece after the other,
 * and is ended. All append to the buffer, whose `failed` says whether there was memory. */
#ifndef TRESTLE_BIGTABLE_STREAM_ANSWER_H
#define TRESTLE_BIGTABLE_STREAM_ANSWER_H

#include "google/bigtable/v2/bigtable.pb-c.h"
#include "row/change_list.h"
#include "stream/record.h"

/* What the first message of a change says. */
struct change_head {
    const struct stream_record *record;
    bytes cluster_id; /* not said of what a rule collected */
};

/* What the last one says. */
struct change_end {
    bytes token;
    int64_t watermark_us;
};

struct change_message {
    struct buffer *out;
    size_t start; /* where the fields begin, */
    size_t about; /* and how many bytes of them there were thought to be */
};

/* `head`: NULL for what goes on. `about`: the size of what is to be added. */
struct change_message change_message_begin(struct buffer *out, const struct change_head *head,
                                           size_t about);
/* A whole mutation. */
void change_message_add(struct change_message *message, const struct list_mutation *mutation);
/* A piece, from `offset` on, of a value of that size; the last one says so. */
void change_message_add_piece(struct change_message *message, const struct list_mutation *mutation,
                              size_t size, size_t offset, bytes piece);
/* `end`: NULL if the change goes on in another message. */
void change_message_end(struct change_message *message, const struct change_end *end);

/* A partition, in the form that all have: both bounds are set, also where they are empty. Points to
 * the keys. */
struct partition_message {
    Bt__StreamPartition partition;
    Bt__RowRange range;
};
void partition_message(bytes start, bytes end, struct partition_message *out);

/* `token`: a string. */
void heartbeat_append(struct buffer *out, bytes start, bytes end, const char *token,
                      int64_t watermark_us);

/* The partition is to be read from others: tokens[i] is what newer[i] has of it. */
struct successor {
    struct partition_message newer;
    struct partition_message part;
    const char *token;
};
/* None: the end that was asked for has been reached. */
void close_append(struct buffer *out, struct successor *successors, size_t count,
                  struct arena *arena);

#endif
