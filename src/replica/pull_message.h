/* What a server tells its peers of its clients' changes, as the answers of PullChanges have it:
 * written piece by piece as the feed is read, since what the feed shows lives no longer. */
#ifndef TRESTLE_REPLICA_PULL_MESSAGE_H
#define TRESTLE_REPLICA_PULL_MESSAGE_H

#include "cluster/origin/origin_feed.h"

/* Appends to an answer's encoded message; failures show in out->failed. */
void pull_message_table(struct buffer *out, uint64_t uid, const char *name);
void pull_message_sized_table(struct buffer *out, uint64_t uid, const char *name,
                              uint64_t size_bytes);
void pull_message_change(struct buffer *out, uint64_t uid, const struct origin_change *change);
/* `complete_version`: 0: it is not known. */
void pull_message_reached(struct buffer *out, struct stream_position reached,
                          uint64_t complete_version);
/* Of a copy: where to go on with the cluster of that number; the version of the last edit; and that
 * all of it was told. */
void pull_message_place(struct buffer *out, unsigned number, struct stream_position after,
                        uint64_t complete_version);
void pull_message_edit_version(struct buffer *out, uint64_t version);
void pull_message_whole(struct buffer *out);

#endif
