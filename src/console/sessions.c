/* See sessions.h. */
#include "console/sessions.h"

#include "base/limits.h"

#include <stdlib.h>

enum { SECOND_US = 1000 * 1000 };

struct session {
    char *credential; /* NULL: a free place */
    size_t credential_size;
    uint8_t hash[TOKEN_HASH_SIZE]; /* of the cookie */
    int64_t begun_us;              /* clock_steady_us, as the next */
    int64_t used_us;
};

struct sessions {
    struct clock *clock;
    struct session places[LIMIT_CONSOLE_SESSIONS];
};

status sessions_create(struct clock *clock, struct sessions **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->clock = clock;
    return status_ok();
}

/* Secrets do not stay in memory. */
static void end(struct session *session)
{
    if (session->credential != NULL)
        explicit_bzero(session->credential, session->credential_size);
    free(session->credential);
    *session = (struct session){0};
}

void sessions_destroy(struct sessions *sessions)
{
    if (sessions == NULL)
        return;
    for (size_t i = 0; i < LIMIT_CONSOLE_SESSIONS; i++)
        end(&sessions->places[i]);
    free(sessions);
}

static bool has_run_out(const struct session *session, int64_t now)
{
    return now - session->used_us >= (int64_t)LIMIT_CONSOLE_IDLE_SECONDS * SECOND_US ||
           now - session->begun_us >= (int64_t)LIMIT_CONSOLE_SESSION_SECONDS * SECOND_US;
}

static void end_those_run_out(struct sessions *sessions, int64_t now)
{
    for (size_t i = 0; i < LIMIT_CONSOLE_SESSIONS; i++)
        if (sessions->places[i].credential != NULL && has_run_out(&sessions->places[i], now))
            end(&sessions->places[i]);
}

/* A free place, or that of the session that was used least lately. */
static struct session *find_place(struct sessions *sessions)
{
    struct session *oldest = &sessions->places[0];
    for (size_t i = 0; i < LIMIT_CONSOLE_SESSIONS; i++) {
        struct session *session = &sessions->places[i];
        if (session->credential == NULL)
            return session;
        if (session->used_us < oldest->used_us)
            oldest = session;
    }
    return oldest;
}

status sessions_begin(struct sessions *sessions, bytes credential, char cookie[TOKEN_TEXT_SIZE])
{
    int64_t now = clock_steady_us(sessions->clock);
    TRY(token_make(cookie));
    char *copy = bytes_to_string(credential);
    if (copy == NULL)
        return status_out_of_memory();
    end_those_run_out(sessions, now);
    struct session *place = find_place(sessions);
    end(place);
    *place = (struct session){
        .credential = copy, .credential_size = credential.size, .begun_us = now, .used_us = now};
    token_hash(bytes_of(cookie), place->hash);
    return status_ok();
}

/* NULL if there is none. */
static struct session *find(struct sessions *sessions, bytes cookie)
{
    uint8_t hash[TOKEN_HASH_SIZE];
    token_hash(cookie, hash);
    for (size_t i = 0; i < LIMIT_CONSOLE_SESSIONS; i++) {
        struct session *session = &sessions->places[i];
        if (session->credential != NULL && memcmp(session->hash, hash, sizeof hash) == 0)
            return session;
    }
    return NULL;
}

bool sessions_look(struct sessions *sessions, bytes cookie, bytes *credential)
{
    *credential = bytes_make(NULL, 0);
    end_those_run_out(sessions, clock_steady_us(sessions->clock));
    const struct session *session = find(sessions, cookie);
    if (session != NULL)
        *credential = bytes_make(session->credential, session->credential_size);
    return session != NULL;
}

bool sessions_find(struct sessions *sessions, bytes cookie, bytes *credential)
{
    if (!sessions_look(sessions, cookie, credential))
        return false;
    find(sessions, cookie)->used_us = clock_steady_us(sessions->clock);
    return true;
}

void sessions_end(struct sessions *sessions, bytes cookie)
{
    struct session *session = find(sessions, cookie);
    if (session != NULL)
        end(session);
}

size_t sessions_count(const struct sessions *sessions)
{
    size_t count = 0;
    for (size_t i = 0; i < LIMIT_CONSOLE_SESSIONS; i++)
        count += sessions->places[i].credential != NULL;
    return count;
}
