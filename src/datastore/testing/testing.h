/* Keys, values and entities from short texts: for tests. All are the arena's; a text that does not
 * parse ends the test. */
#ifndef TRESTLE_DATASTORE_TESTING_TESTING_H
#define TRESTLE_DATASTORE_TESTING_TESTING_H

#include "datastore/model/key.h"
#include "google/datastore/v1/datastore.pb-c.h"

/* A key of the project "p": "K/5/J/'n'" has a child of kind J and name n; "K/5/J" an incomplete
 * one. */
Ds__Key *test_key(struct arena *arena, const char *name_space, const char *path);

/* JSON, in which ' stands for ". */
Ds__Value *test_value(struct arena *arena, const char *json);
Ds__Entity *test_entity(struct arena *arena, const char *json);
Ds__Mutation *test_mutation(struct arena *arena, const char *json);
Ds__Query *test_query(struct arena *arena, const char *json);
Ds__AggregationQuery *test_aggregation_query(struct arena *arena, const char *json);

/* A message of any type. */
ProtobufCMessage *test_message(struct arena *arena, const ProtobufCMessageDescriptor *type,
                               const char *json);

/* A message as JSON on one line with ' for " is this. */
void assert_json(const ProtobufCMessage *message, const char *expected);

#endif
