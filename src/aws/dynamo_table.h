/* A table as DynamoDB describes it (DescribeTable). */
#ifndef TRESTLE_AWS_DYNAMO_TABLE_H
#define TRESTLE_AWS_DYNAMO_TABLE_H

#include "aws/dynamo_client.h"

/* All of an arena. */
struct dynamo_table {
    const char *name;
    const char *partition_key;
    const char *sort_key;    /* NULL: there is none */
    const char *stream;      /* the ARN of its stream; NULL: it has none now */
    const char *stream_view; /* "NEW_AND_OLD_IMAGES"; NULL */
    int64_t server_us;       /* when the service said so, by its clock; else by ours */
};

/* NOT_FOUND: there is no such table; DATA_LOSS: an answer that says too little; as the call. */
status dynamo_table_describe(struct dynamo_client *client, const char *name, struct arena *arena,
                             struct dynamo_table *out);

#endif
