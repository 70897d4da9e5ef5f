/* Changes to a topic of Kafka: a message each, with the row's key as its key, so that those of one
 * row are in one partition, in their order. By librdkafka, which is loaded when it is wanted, and
 * need not be there else. */
#ifndef TRESTLE_TRANSFER_CHANGE_KAFKA_H
#define TRESTLE_TRANSFER_CHANGE_KAFKA_H

#include "transfer/change_sink.h"

#define CHANGE_KAFKA_LIBRARY "librdkafka.so.1"

struct change_kafka_options {
    const char *library; /* CHANGE_KAFKA_LIBRARY; tests have others */
    const char *url;     /* kafka://HOST:PORT[,HOST:PORT…]/TOPIC */
    const char *config;  /* a file of librdkafka's settings, NAME=VALUE a line; NULL: none */
};

/* Whether it has that form. INVALID_ARGUMENT. */
status change_kafka_check(const char *url);

/* Connects to nothing yet. FAILED_PRECONDITION, in words that name its package, if the library is
 * not there; INVALID_ARGUMENT. Flushed is what the brokers have acknowledged, all that are in sync;
 * UNAVAILABLE if they have not for a minute, or refuse a message. */
status change_kafka_create(const struct change_kafka_options *options, struct change_sink *out);

#endif
