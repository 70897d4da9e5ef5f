/* See change_kafka.h. */
#include "transfer/change_kafka.h"

#include "os/file.h"

#include <dlfcn.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WORDS = 512,
    POLL_MS = 100,
    POLLS_MOST = 650, /* more than the minute after which messages are given up */
    CONFIG_MOST = 1 << 20,
};

/* What is used of the library, by the types that its header has. */
#define FUNCTIONS(_)                                                                               \
    _(rd_kafka_conf_new)                                                                           \
    _(rd_kafka_conf_set)                                                                           \
    _(rd_kafka_conf_destroy)                                                                       \
    _(rd_kafka_conf_set_dr_msg_cb)                                                                 \
    _(rd_kafka_conf_set_opaque)                                                                    \
    _(rd_kafka_new)                                                                                \
    _(rd_kafka_destroy)                                                                            \
    _(rd_kafka_topic_new)                                                                          \
    _(rd_kafka_topic_destroy)                                                                      \
    _(rd_kafka_produce)                                                                            \
    _(rd_kafka_poll)                                                                               \
    _(rd_kafka_outq_len)                                                                           \
    _(rd_kafka_last_error)                                                                         \
    _(rd_kafka_purge)                                                                              \
    _(rd_kafka_err2str)

#define DECLARE(name) __typeof__(name) *name##_;

struct library {
    void *handle;
    FUNCTIONS(DECLARE)
};

struct change_kafka {
    struct library library;
    rd_kafka_t *producer;
    rd_kafka_topic_t *topic;
    char brokers[WORDS];
    char topic_name[WORDS];
    char failure[WORDS]; /* of the first message that was not delivered; "": none */
};

/* --- the library --- */

/* dlsym's pointer is one to data, which C does not let become one to a function. */
static bool find_function(void *handle, const char *name, void *place)
{
    void *found = dlsym(handle, name);
    memcpy(place, &found, sizeof found);
    return found != NULL;
}

#define FIND(name) &&find_function(library->handle, #name, &library->name##_)

static status load(const char *name, struct library *library)
{
    library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Kafka needs a library that is not there; Debian's package librdkafka1 "
                           "has it (%s)",
                           dlerror());
    if (true FUNCTIONS(FIND))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION, "%s is no librdkafka of version 1 or later",
                       name);
}

/* --- settings --- */

static status set(struct change_kafka *kafka, rd_kafka_conf_t *conf, const char *name,
                  const char *value)
{
    char words[WORDS] = "";
    if (kafka->library.rd_kafka_conf_set_(conf, name, value, words, sizeof words) ==
        RD_KAFKA_CONF_OK)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Kafka: %s", words);
}

/* What keeps order and loses nothing; messages are as large as the topic takes, and go to the
 * partitions to which Java's producers would send their keys. */
static status set_own(struct change_kafka *kafka, rd_kafka_conf_t *conf)
{
    static const char *const settings[][2] = {
        {"acks", "all"},
        {"enable.idempotence", "true"},
        {"message.timeout.ms", "60000"},
        {"message.max.bytes", "1000000000"},
        {"partitioner", "murmur2_random"},
        {"linger.ms", "5"},
        {"client.id", "trestle-tail"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        TRY(set(kafka, conf, settings[i][0], settings[i][1]));
    return set(kafka, conf, "bootstrap.servers", kafka->brokers);
}

static status set_line(struct change_kafka *kafka, rd_kafka_conf_t *conf, const char *path,
                       char *line)
{
    char *value = strchr(line, '=');
    if (line[0] == '\0' || line[0] == '#')
        return status_ok();
    if (value == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s: \"%s\" is not NAME=VALUE", path, line);
    *value++ = '\0';
    return set(kafka, conf, line, value);
}

static status set_given(struct change_kafka *kafka, rd_kafka_conf_t *conf, const char *path)
{
    struct buffer text = {0};
    if (path == NULL)
        return status_ok();
    TRY(file_read(path, CONFIG_MOST, 0, &text));
    buffer_append_byte(&text, '\0');
    status s = text.failed ? status_out_of_memory() : status_ok();
    char *rest = (char *)text.data;
    for (char *line; status_is_ok(s) && (line = strsep(&rest, "\r\n")) != NULL;)
        s = set_line(kafka, conf, path, line);
    buffer_free(&text);
    return s;
}

/* --- making --- */

#define SCHEME "kafka://"

/* Where the topic begins, after a slash; NULL: it has not the form. */
static const char *find_topic(const char *url)
{
    const char *brokers = url + strlen(SCHEME);
    bool is_one = strncmp(url, SCHEME, strlen(SCHEME)) == 0 && strlen(url) < WORDS;
    const char *slash = is_one ? strchr(brokers, '/') : NULL;
    bool is_whole = slash != NULL && slash != brokers && slash[1] != '\0';
    return is_whole && strchr(slash + 1, '/') == NULL ? slash : NULL;
}

status change_kafka_check(const char *url)
{
    return find_topic(url) != NULL
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT, "%s is no kafka://HOST:PORT/TOPIC", url);
}

static status read_url(struct change_kafka *kafka, const char *url)
{
    TRY(change_kafka_check(url));
    const char *brokers = url + strlen(SCHEME), *slash = find_topic(url);
    snprintf(kafka->brokers, sizeof kafka->brokers, "%.*s", (int)(slash - brokers), brokers);
    snprintf(kafka->topic_name, sizeof kafka->topic_name, "%s", slash + 1);
    return status_ok();
}

/* By librdkafka, from within rd_kafka_poll. */
static void was_delivered(rd_kafka_t *producer, const rd_kafka_message_t *message, void *context)
{
    struct change_kafka *kafka = context;
    (void)producer;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR || kafka->failure[0] != '\0')
        return;
    snprintf(kafka->failure, sizeof kafka->failure,
             "a message of %zu bytes has not been taken by %.150s: %.150s", message->len,
             kafka->brokers, kafka->library.rd_kafka_err2str_(message->err));
}

static status make_conf(struct change_kafka *kafka, const char *config, rd_kafka_conf_t *conf)
{
    TRY(set_own(kafka, conf));
    TRY(set_given(kafka, conf, config));
    kafka->library.rd_kafka_conf_set_dr_msg_cb_(conf, was_delivered);
    kafka->library.rd_kafka_conf_set_opaque_(conf, kafka);
    return status_ok();
}

/* The producer takes the configuration, if it is made. */
static status make_producer(struct change_kafka *kafka, const char *config)
{
    char words[WORDS] = "";
    rd_kafka_conf_t *conf = kafka->library.rd_kafka_conf_new_();
    status s = make_conf(kafka, config, conf);
    if (status_is_ok(s)) {
        kafka->producer =
            kafka->library.rd_kafka_new_(RD_KAFKA_PRODUCER, conf, words, sizeof words);
        if (kafka->producer == NULL)
            s = status_make(STATUS_INVALID_ARGUMENT, "Kafka: %s", words);
    }
    if (kafka->producer == NULL)
        kafka->library.rd_kafka_conf_destroy_(conf);
    TRY(s);
    kafka->topic = kafka->library.rd_kafka_topic_new_(kafka->producer, kafka->topic_name, NULL);
    return kafka->topic != NULL
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT, "Kafka takes no topic %s", kafka->topic_name);
}

/* --- the sink --- */

static status check_failure(const struct change_kafka *kafka)
{
    return kafka->failure[0] == '\0' ? status_ok()
                                     : status_make(STATUS_UNAVAILABLE, "Kafka: %s", kafka->failure);
}

static bool produce(struct change_kafka *kafka, bytes key, bytes value)
{
    return kafka->library.rd_kafka_produce_(kafka->topic, RD_KAFKA_PARTITION_UA,
                                            RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)value.data,
                                            value.size, key.data, key.size, NULL) == 0;
}

/* While the library's queue is full, it is waited for. */
static status add(void *object, const struct feed_change *change, bytes line)
{
    struct change_kafka *kafka = object;
    bytes value = bytes_make(line.data, line.size - 1); /* without the line's end */
    for (int i = 0; !produce(kafka, change->row_key, value); i++) {
        rd_kafka_resp_err_t error = kafka->library.rd_kafka_last_error_();
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL || i == POLLS_MOST)
            return status_make(STATUS_UNAVAILABLE, "Kafka: a message of %zu bytes: %s", value.size,
                               kafka->library.rd_kafka_err2str_(error));
        kafka->library.rd_kafka_poll_(kafka->producer, POLL_MS);
    }
    kafka->library.rd_kafka_poll_(kafka->producer, 0);
    return check_failure(kafka);
}

/* Messages that are not delivered are given up after a minute, so this ends. */
static status flush(void *object)
{
    struct change_kafka *kafka = object;
    for (int i = 0; kafka->library.rd_kafka_outq_len_(kafka->producer) > 0; i++) {
        TRY(check_failure(kafka));
        if (i == POLLS_MOST)
            return status_make(STATUS_UNAVAILABLE, "Kafka: %s does not acknowledge what it got",
                               kafka->brokers);
        kafka->library.rd_kafka_poll_(kafka->producer, POLL_MS);
    }
    return check_failure(kafka);
}

static void destroy(void *object)
{
    struct change_kafka *kafka = object;
    const struct library *library = &kafka->library;
    if (kafka->topic != NULL)
        library->rd_kafka_topic_destroy_(kafka->topic);
    if (kafka->producer != NULL) {
        library->rd_kafka_purge_(kafka->producer,
                                 RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        library->rd_kafka_destroy_(kafka->producer);
    }
    /* The library stays: threads of it may still be ending. */
    free(kafka);
}

status change_kafka_create(const struct change_kafka_options *options, struct change_sink *out)
{
    struct change_kafka *kafka = calloc(1, sizeof *kafka);
    if (kafka == NULL)
        return status_out_of_memory();
    status s = read_url(kafka, options->url);
    if (status_is_ok(s))
        s = load(options->library, &kafka->library);
    if (status_is_ok(s))
        s = make_producer(kafka, options->config);
    if (!status_is_ok(s)) {
        destroy(kafka);
        return s;
    }
    *out = (struct change_sink){.object = kafka, .add = add, .flush = flush, .destroy = destroy};
    return s;
}
