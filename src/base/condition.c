/* See condition.h.
 *
 * `lock` of the whole guards the reasons, its parts' too. It is not held while the log is written:
 * lines may come in another order than what they tell of, if two threads say different things of
 * one reason at once. */
#include "base/condition.h"

#include "base/check.h"
#include "base/utf8.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOLD_EVERY_US = 10 * 1000 * 1000 };

struct trouble {
    bool is_there;
    bool is_told;       /* the log's last line of it says that it is there */
    bool has_been_told; /* ever: `told_us` */
    int64_t told_us;    /* when that line was written, by the steady clock */
    int64_t since_us;   /* by the wall clock: for people */
    int64_t entered_us; /* by the steady clock: for how long */
    uint64_t untold;    /* times that it was entered since the line before */
    char text[CONDITION_TEXT_SIZE];
};

struct condition {
    uint32_t magic;
    const struct log *log;
    struct clock *clock;
    struct metrics *metrics;
    pthread_mutex_t lock; /* of a whole, as the list */
    struct trouble reasons[REASON_COUNT];
    struct condition *whole; /* NULL: it is one. Of a part `reasons` has texts alone */
    struct condition *parts; /* by `next`, in the order in which they were made */
    struct condition *next;
};

#define CONDITION_MAGIC 0x68656c74u

static const struct {
    const char *name;
    const char *sentence;
    enum health_level level;
} facts[] = {
#define REASON(level_, name_, sentence_)                                                           \
    {.name = #name_, .sentence = sentence_, .level = HEALTH_##level_},
#include "base/reasons.def"
};

const char *health_level_name(enum health_level level)
{
    static const char *const names[] = {"ok", "degraded", "no_writes"};
    return names[level];
}

/* With the lock held. */
static enum health_level level_of(const struct condition *condition)
{
    enum health_level level = HEALTH_OK;
    for (size_t i = 0; i < REASON_COUNT; i++)
        if (condition->reasons[i].is_there && facts[i].level > level)
            level = facts[i].level;
    return level;
}

/* With the lock held, so that what is set last is what is so. */
static void show(const struct condition *condition, enum reason reason)
{
    const struct trouble *trouble = &condition->reasons[reason];
    enum health_level level = level_of(condition);
    metrics_set(condition->metrics, (enum metric)(METRIC_health_data_gone + (int)reason),
                trouble->is_there);
    metrics_set(condition->metrics, METRIC_health_level, level);
    metrics_set(condition->metrics, METRIC_store_healthy, level != HEALTH_NO_WRITES);
}

status condition_create(const struct log *log, struct clock *clock, struct metrics *metrics,
                        struct condition **out)
{
    struct condition *condition = *out = calloc(1, sizeof *condition);
    if (condition == NULL)
        return status_out_of_memory();
    condition->magic = CONDITION_MAGIC;
    condition->log = log;
    condition->clock = clock;
    condition->metrics = metrics;
    pthread_mutex_init(&condition->lock, NULL);
    show(condition, 0);
    return status_ok();
}

status condition_create_part(struct condition *whole, struct condition **out)
{
    struct condition *part = *out = calloc(1, sizeof *part);
    if (part == NULL)
        return status_out_of_memory();
    CHECK(whole->whole == NULL);
    part->magic = CONDITION_MAGIC;
    part->clock = whole->clock;
    part->whole = whole;
    pthread_mutex_init(&part->lock, NULL);
    pthread_mutex_lock(&whole->lock);
    struct condition **at = &whole->parts;
    while (*at != NULL)
        at = &(*at)->next;
    *at = part;
    pthread_mutex_unlock(&whole->lock);
    return status_ok();
}

/* The trouble of the first part that has the reason; NULL: none has. With the lock held. */
static const struct trouble *trouble_of_parts(const struct condition *whole, enum reason reason)
{
    for (const struct condition *at = whole->parts; at != NULL; at = at->next)
        if (at->reasons[reason].is_there)
            return &at->reasons[reason];
    return NULL;
}

static void leave_whole(struct condition *part)
{
    struct condition *whole = part->whole;
    pthread_mutex_lock(&whole->lock);
    struct condition **at = &whole->parts;
    while (*at != part)
        at = &(*at)->next;
    *at = part->next;
    for (unsigned i = 0; i < REASON_COUNT; i++)
        if (part->reasons[i].is_there && trouble_of_parts(whole, (enum reason)i) == NULL) {
            whole->reasons[i].is_there = whole->reasons[i].is_told = false;
            show(whole, (enum reason)i);
        }
    pthread_mutex_unlock(&whole->lock);
}

void condition_destroy(struct condition *condition)
{
    if (condition == NULL)
        return;
    CHECK_MAGIC(condition, CONDITION_MAGIC);
    CHECK(condition->parts == NULL);
    if (condition->whole != NULL)
        leave_whole(condition);
    pthread_mutex_destroy(&condition->lock);
    condition->magic = 0;
    free(condition);
}

/* --- the log --- */

/* A log line's content, gathered under the lock. */
struct line {
    bool is_due;
    enum health_level level; /* of all, afterwards */
    int64_t seconds;         /* for how long it was so */
    uint64_t untold;
};

/* With the lock held. */
static struct line tell_entered(const struct condition *condition, struct trouble *trouble,
                                int64_t now_us)
{
    bool is_due = !trouble->is_told &&
                  (!trouble->has_been_told || now_us - trouble->told_us >= TOLD_EVERY_US);
    struct line line = {
        .is_due = is_due, .level = level_of(condition), .untold = trouble->untold - 1};
    if (!is_due)
        return line;
    trouble->is_told = trouble->has_been_told = true;
    trouble->told_us = now_us;
    trouble->untold = 0;
    return line;
}

static void log_entered(const struct condition *condition, enum reason reason,
                        const struct line *line, const char *text)
{
    bool is_worst = facts[reason].level == HEALTH_NO_WRITES;
    log_write(condition->log, is_worst ? LOG_ERROR : LOG_WARN,
              is_worst ? "takes no writes" : "degraded",
              LOG_FIELDS_(LOG_STR("reason", facts[reason].name), LOG_STR("why", text),
                          LOG_STR("health", health_level_name(line->level)),
                          LOG_INT("untold", line->untold)));
}

static void log_left(const struct condition *condition, enum reason reason, const struct line *line)
{
    log_info(condition->log, "no longer so", LOG_STR("reason", facts[reason].name),
             LOG_INT("seconds", line->seconds), LOG_STR("health", health_level_name(line->level)));
}

/* --- entering and leaving --- */

static void take_text(struct trouble *trouble, bytes text)
{
    bool is_text = utf8_is_valid(text);
    snprintf(trouble->text, sizeof trouble->text, "%.*s", is_text ? (int)text.size : 0,
             (const char *)text.data);
    if (!is_text)
        snprintf(trouble->text, sizeof trouble->text, "why is not text: see the log");
}

/* With the lock held. */
static void enter(const struct condition *condition, struct trouble *trouble, int64_t now_us)
{
    if (trouble->is_there)
        return;
    trouble->is_there = true;
    trouble->since_us = clock_wall_us(condition->clock);
    trouble->entered_us = now_us;
    trouble->untold++;
}

/* Notes the reason in a part. With the lock held. */
static void note_in_part(struct condition *part, enum reason reason, bytes text)
{
    take_text(&part->reasons[reason], text);
    part->reasons[reason].is_there = true;
}

static struct condition *whole_of(struct condition *condition)
{
    CHECK_MAGIC(condition, CONDITION_MAGIC);
    return condition->whole != NULL ? condition->whole : condition;
}

/* Takes the words of the first part that has the reason; else those that were just said. With the
 * lock held. */
static void take_words(struct condition *whole, enum reason reason, bytes said)
{
    const struct trouble *first = trouble_of_parts(whole, reason);
    take_text(&whole->reasons[reason], first == NULL ? said : bytes_of(first->text));
}

static void enter_with(struct condition *condition, enum reason reason, const char *text)
{
    struct condition *whole = whole_of(condition);
    bytes shown = utf8_cut(bytes_of(text), CONDITION_TEXT_SIZE - 1);
    int64_t now_us = clock_steady_us(whole->clock);
    struct trouble *trouble = &whole->reasons[reason];
    pthread_mutex_lock(&whole->lock);
    if (condition != whole)
        note_in_part(condition, reason, shown);
    enter(whole, trouble, now_us);
    take_words(whole, reason, shown);
    show(whole, reason);
    struct line line = tell_entered(whole, trouble, now_us);
    pthread_mutex_unlock(&whole->lock);
    if (line.is_due)
        log_entered(whole, reason, &line, text);
}

void condition_enter(struct condition *condition, enum reason reason, const char *format, ...)
{
    char text[2 * CONDITION_TEXT_SIZE];
    va_list arguments;
    if (condition == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    enter_with(condition, reason, text);
}

/* Ends a reason that no part has any more. With the lock held. */
static struct line leave(struct condition *whole, enum reason reason)
{
    struct trouble *trouble = &whole->reasons[reason];
    int64_t now_us = clock_steady_us(whole->clock);
    struct line line = {.is_due = trouble->is_there && trouble->is_told,
                        .seconds = (now_us - trouble->entered_us) / 1000000};
    trouble->is_there = trouble->is_told = false;
    show(whole, reason);
    line.level = level_of(whole);
    return line;
}

void condition_leave(struct condition *condition, enum reason reason)
{
    struct line line = {.is_due = false};
    if (condition == NULL)
        return;
    struct condition *whole = whole_of(condition);
    pthread_mutex_lock(&whole->lock);
    if (condition != whole)
        condition->reasons[reason].is_there = false;
    const struct trouble *other = trouble_of_parts(whole, reason);
    if (other != NULL)
        take_text(&whole->reasons[reason], bytes_of(other->text));
    else
        line = leave(whole, reason);
    pthread_mutex_unlock(&whole->lock);
    if (line.is_due)
        log_left(whole, reason, &line);
}

/* --- looking --- */

void condition_look(struct condition *condition, struct condition_view *out)
{
    CHECK_MAGIC(condition, CONDITION_MAGIC);
    CHECK(condition->whole == NULL);
    out->count = 0;
    pthread_mutex_lock(&condition->lock);
    out->level = level_of(condition);
    for (unsigned i = 0; i < REASON_COUNT; i++) {
        const struct trouble *trouble = &condition->reasons[i];
        if (!trouble->is_there)
            continue;
        struct condition_reason *reason = &out->reasons[out->count++];
        reason->reason = (enum reason)i;
        reason->name = facts[i].name;
        reason->sentence = facts[i].sentence;
        reason->level = facts[i].level;
        reason->since_us = trouble->since_us;
        memcpy(reason->text, trouble->text, sizeof reason->text);
    }
    pthread_mutex_unlock(&condition->lock);
}
