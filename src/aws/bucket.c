/* See bucket.h.
 *
 * The lock is an object of its own below locks/: a process that finds another one there, beside its
 * own, gives up. Each puts its object before it looks, and what was put is listed from then on, so
 * of two at the same time at least one sees the other. An object that has not been renewed for
 * LEASE_S, by the bucket's own clock, was left by a process that was killed, and is removed; its
 * owner renews it as the work goes on. */
#include "aws/bucket.h"

#include "aws/bucket_calls.h"
#include "aws/bucket_private.h"
#include "aws/xml.h"
#include "base/clock.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define SCHEME "s3://"
#define LOCKS  "locks"

enum {
    PART = 16 << 20, /* at least 5 MiB, and not more than 10,000 of them */
    PIECE = 8 << 20, /* that is read at a time */
    MOST_PARTS = 10000,
    ANSWER_MOST = 1 << 20,
    LEASE_S = 15 * 60,
    RENEW_US = 60 * 1000 * 1000,
};

/* --- keys and small calls --- */

static status make_key(struct place *place, const char *name, struct buffer *out)
{
    buffer_append_format(out, "%s%s%c", own(place)->prefix, name, 0);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* A call of the object whose answer is of no interest. */
static status call_object(struct place *place, const char *method, const char *name, bytes body)
{
    struct bucket_answer answer = {0};
    struct buffer key = {0};
    status s = make_key(place, name, &key);
    const struct bucket_request request = {
        .method = method, .key = text(&key), .body = body, .answer_most = ANSWER_MOST};
    if (status_is_ok(s))
        s = bucket_call(own(place)->bucket, &request, &answer);
    bucket_answer_clear(&answer);
    buffer_free(&key);
    return s;
}

/* Renews the lock, if this process has it and RENEW_US have passed. */
static status renew_lock(struct place *place)
{
    struct bucket_place *b = own(place);
    char name[LOCK_NAME_SIZE] = "";
    int64_t now_us = clock_steady_us(clock_system());
    pthread_mutex_lock(&b->lock);
    if (b->lock_name[0] != '\0' && now_us - b->renewed_us >= RENEW_US) {
        memcpy(name, b->lock_name, sizeof name);
        b->renewed_us = now_us;
    }
    pthread_mutex_unlock(&b->lock);
    return name[0] == '\0' ? status_ok() : call_object(place, "PUT", name, bytes_of(""));
}

/* --- folders --- */

static status make(struct place *place)
{
    (void)place;
    return status_ok();
}

static status nothing_to_do(struct place *place, const char *folder)
{
    (void)place, (void)folder;
    return status_ok();
}

static status remove_object(struct place *place, const char *name)
{
    TRY(renew_lock(place));
    return call_object(place, "DELETE", name, bytes_of(""));
}

/* --- reading --- */

struct bucket_reader {
    struct place_reader reader;
    struct bucket *bucket;
    struct buffer key;
    struct bucket_answer answer;
    size_t taken;    /* of its body */
    uint64_t offset; /* of what comes behind the body */
    uint64_t total;
};

static status fetch(struct bucket_reader *r)
{
    const struct bucket_request request = {.method = "GET",
                                           .key = text(&r->key),
                                           .is_ranged = true,
                                           .first = r->offset,
                                           .last = r->offset + PIECE - 1,
                                           .answer_most = PIECE};
    TRY(bucket_call(r->bucket, &request, &r->answer));
    bool is_behind_end = r->answer.http_status == 416;
    if (is_behind_end)
        buffer_clear(&r->answer.body);
    size_t size = r->answer.body.size;
    uint64_t total = r->answer.http_status == 206 ? r->answer.total : r->offset + size;
    if (r->offset > 0 && (total != r->total || size == 0))
        return status_make(STATUS_UNAVAILABLE, "%s has changed while it was read", text(&r->key));
    r->total = total;
    r->offset += size;
    r->taken = 0;
    return status_ok();
}

static status next(struct place_reader *reader, uint8_t *to, size_t size, size_t *got)
{
    struct bucket_reader *r = (struct bucket_reader *)reader;
    *got = 0;
    if (r->taken == r->answer.body.size && r->offset < r->total)
        TRY(fetch(r));
    size_t left = r->answer.body.size - r->taken;
    *got = left < size ? left : size;
    if (*got > 0)
        memcpy(to, r->answer.body.data + r->taken, *got);
    r->taken += *got;
    return status_ok();
}

static void close_reader(struct place_reader *reader)
{
    struct bucket_reader *r = (struct bucket_reader *)reader;
    bucket_answer_clear(&r->answer);
    buffer_free(&r->key);
    free(r);
}

static status open_object(struct place *place, const char *name, struct place_reader **out)
{
    struct bucket_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return status_out_of_memory();
    r->reader = (struct place_reader){.next = next, .close = close_reader};
    r->bucket = own(place)->bucket;
    status s = renew_lock(place);
    if (status_is_ok(s))
        s = make_key(place, name, &r->key);
    if (status_is_ok(s))
        s = fetch(r);
    if (status_is_ok(s))
        *out = &r->reader;
    else
        close_reader(&r->reader);
    return s;
}

/* --- writing --- */

struct bucket_writer {
    struct place_writer writer;
    struct place *place;
    struct bucket *bucket;
    struct buffer key;
    struct buffer part;
    struct buffer upload; /* id, escaped; with a NUL; empty: no parts were begun, or they ended */
    struct buffer parts;  /* XML of those that were put */
    unsigned part_count;
};

/* `root`: see bucket_request. */
static status call_upload(struct bucket_writer *w, const char *method, const char *query,
                          bytes body, const char *root, struct bucket_answer *answer)
{
    const struct bucket_request request = {.method = method,
                                           .key = text(&w->key),
                                           .query = query,
                                           .body = body,
                                           .answer_most = ANSWER_MOST,
                                           .root = root};
    return bucket_call(w->bucket, &request, answer);
}

static status take_upload(struct bucket_writer *w, const struct bucket_answer *answer)
{
    struct buffer decoded = {0};
    bytes id;
    bool has_id =
        xml_first(answer->content, "UploadId", &id) && id.size > 0 && xml_text(id, &decoded);
    buffer_append_byte(&decoded, '\0');
    bool is_short = decoded.failed;
    if (has_id && !is_short) {
        bucket_append_escaped(&w->upload, text(&decoded));
        buffer_append_byte(&w->upload, '\0');
    }
    buffer_free(&decoded);
    if (is_short || w->upload.failed)
        return status_out_of_memory();
    return has_id ? status_ok()
                  : status_make(STATUS_UNAVAILABLE, "the bucket names no upload for %s",
                                text(&w->key));
}

static status begin_parts(struct bucket_writer *w)
{
    struct bucket_answer answer = {0};
    status s =
        call_upload(w, "POST", "uploads=", bytes_of(""), "InitiateMultipartUploadResult", &answer);
    if (status_is_ok(s))
        s = take_upload(w, &answer);
    bucket_answer_clear(&answer);
    return s;
}

static status note_part(struct bucket_writer *w, const struct bucket_answer *answer)
{
    if (answer->etag[0] == '\0')
        return status_make(STATUS_UNAVAILABLE, "the bucket says nothing of a part of %s",
                           text(&w->key));
    buffer_append_format(&w->parts, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
                         w->part_count, answer->etag);
    buffer_clear(&w->part);
    return w->parts.failed ? status_out_of_memory() : status_ok();
}

static status put_part(struct bucket_writer *w)
{
    struct bucket_answer answer = {0};
    struct buffer query = {0};
    TRY(renew_lock(w->place));
    if (w->upload.size == 0)
        TRY(begin_parts(w));
    if (++w->part_count > MOST_PARTS)
        return status_make(STATUS_UNIMPLEMENTED, "%s is too large for a bucket", text(&w->key));
    buffer_append_format(&query, "partNumber=%u&uploadId=%s%c", w->part_count, text(&w->upload), 0);
    status s = query.failed
                   ? status_out_of_memory()
                   : call_upload(w, "PUT", text(&query), buffer_bytes(&w->part), NULL, &answer);
    if (status_is_ok(s))
        s = note_part(w, &answer);
    bucket_answer_clear(&answer);
    buffer_free(&query);
    return s;
}

static status append(struct place_writer *writer, bytes piece)
{
    struct bucket_writer *w = (struct bucket_writer *)writer;
    while (piece.size > 0) {
        if (w->part.size == PART)
            TRY(put_part(w));
        size_t size = PART - w->part.size < piece.size ? PART - w->part.size : piece.size;
        buffer_append(&w->part, piece.data, size);
        piece = bytes_from(piece, size);
    }
    return w->part.failed ? status_out_of_memory() : status_ok();
}

static status complete(struct bucket_writer *w)
{
    struct bucket_answer answer = {0};
    struct buffer query = {0}, body = {0};
    buffer_append_format(&query, "uploadId=%s%c", text(&w->upload), 0);
    buffer_append_format(&body, "<CompleteMultipartUpload>%.*s</CompleteMultipartUpload>",
                         (int)w->parts.size, text(&w->parts));
    status s = query.failed || body.failed
                   ? status_out_of_memory()
                   : call_upload(w, "POST", text(&query), buffer_bytes(&body),
                                 "CompleteMultipartUploadResult", &answer);
    if (status_is_ok(s))
        buffer_clear(&w->upload);
    bucket_answer_clear(&answer);
    buffer_free(&query);
    buffer_free(&body);
    return s;
}

static status finish(struct place_writer *writer)
{
    struct bucket_writer *w = (struct bucket_writer *)writer;
    struct bucket_answer answer = {0};
    if (w->upload.size > 0) {
        TRY(put_part(w));
        return complete(w);
    }
    status s = call_upload(w, "PUT", NULL, buffer_bytes(&w->part), NULL, &answer);
    bucket_answer_clear(&answer);
    return s;
}

static status abort_upload(struct bucket *bucket, const char *key, const char *upload)
{
    struct bucket_answer answer = {0};
    struct buffer query = {0};
    buffer_append_format(&query, "uploadId=%s%c", upload, 0);
    const struct bucket_request request = {
        .method = "DELETE", .key = key, .query = text(&query), .answer_most = ANSWER_MOST};
    status s = query.failed ? status_out_of_memory() : bucket_call(bucket, &request, &answer);
    bucket_answer_clear(&answer);
    buffer_free(&query);
    return s;
}

static void close_writer(struct place_writer *writer)
{
    struct bucket_writer *w = (struct bucket_writer *)writer;
    if (w->upload.size > 0 && !w->upload.failed)
        status_ignore(abort_upload(w->bucket, text(&w->key), text(&w->upload)));
    buffer_free(&w->key);
    buffer_free(&w->part);
    buffer_free(&w->upload);
    buffer_free(&w->parts);
    free(w);
}

static status create_object(struct place *place, const char *name, struct place_writer **out)
{
    struct bucket_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return status_out_of_memory();
    w->writer = (struct place_writer){.append = append, .finish = finish, .close = close_writer};
    w->place = place;
    w->bucket = own(place)->bucket;
    status s = renew_lock(place);
    if (status_is_ok(s))
        s = make_key(place, name, &w->key);
    if (status_is_ok(s))
        *out = &w->writer;
    else
        close_writer(&w->writer);
    return s;
}

/* --- lists --- */

static status list(struct place *place, const char *folder,
                   status (*visit)(void *context, const struct place_entry *entry), void *context)
{
    struct bucket_listing l = {0};
    status s = bucket_listing_gather(&l, place, folder);
    const struct bucket_found *found = (const struct bucket_found *)(const void *)l.found.data;
    for (size_t i = 0; status_is_ok(s) && i < l.found.size / sizeof *found; i++)
        s = visit(context, &found[i].entry);
    bucket_listing_end(&l);
    return s;
}

/* --- what a crash left --- */

static status abort_one(struct place *place, const char *key, const char *id)
{
    struct buffer escaped = {0};
    bucket_append_escaped(&escaped, id);
    buffer_append_byte(&escaped, '\0');
    status s = escaped.failed ? status_out_of_memory()
                              : abort_upload(own(place)->bucket, key, text(&escaped));
    buffer_free(&escaped);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

static status abort_listed(struct bucket_listing *l, struct place *place, bytes upload)
{
    bytes key, id, name;
    if (!xml_first(upload, "Key", &key) || !xml_first(upload, "UploadId", &id))
        return bucket_listing_refuse(l, "it does not say of an upload what there is to say");
    TRY(bucket_listing_take_key(l, key, &name));
    TRY(bucket_listing_take_text(l, key, &key));
    TRY(bucket_listing_take_text(l, id, &id));
    return abort_one(place, (const char *)key.data, (const char *)id.data);
}

/* A thousand of them at most: more are there for the next. */
static status sweep_uploads(struct bucket_listing *l, struct place *place)
{
    struct bucket_answer answer = {0};
    struct buffer query = {0};
    bytes upload;
    buffer_append_format(&query, "prefix=");
    bucket_append_escaped(&query, text(&l->prefix));
    buffer_append_format(&query, "&uploads=%c", 0);
    const struct bucket_request request = {.method = "GET",
                                           .key = "",
                                           .query = text(&query),
                                           .answer_most = PAGE_MOST,
                                           .root = "ListMultipartUploadsResult"};
    status s =
        query.failed ? status_out_of_memory() : bucket_call(own(place)->bucket, &request, &answer);
    while (status_is_ok(s) && xml_child(&answer.content, "Upload", &upload))
        s = abort_listed(l, place, upload);
    bucket_answer_clear(&answer);
    buffer_free(&query);
    return s;
}

static status sweep(struct place *place, const char *folder)
{
    struct bucket_listing l = {0};
    status s = bucket_listing_begin(&l, place, folder);
    if (status_is_ok(s))
        s = sweep_uploads(&l, place);
    bucket_listing_end(&l);
    return s;
}

/* --- lock --- */

/* Fails for a lock that another process holds; removes one that was left. */
static status look_at_lock(struct place *place, const struct bucket_listing *l,
                           const struct bucket_found *found, const char *mine)
{
    char name[LOCK_NAME_SIZE];
    snprintf(name, sizeof name, LOCKS "/%.30s", found->entry.name);
    if (found->entry.is_folder || strcmp(name, mine) == 0)
        return status_ok();
    if (l->server_us - found->modified_us < LEASE_S * INT64_C(1000000))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "somebody else is writing to %s, or was killed there in the last %d "
                           "minutes: its lock is %s",
                           place->title, LEASE_S / 60, name);
    return call_object(place, "DELETE", name, bytes_of(""));
}

static status look_for_others(struct place *place, const char *mine)
{
    struct bucket_listing l = {0};
    status s = bucket_listing_gather(&l, place, LOCKS);
    const struct bucket_found *found = (const struct bucket_found *)(const void *)l.found.data;
    for (size_t i = 0; status_is_ok(s) && i < l.found.size / sizeof *found; i++)
        s = look_at_lock(place, &l, &found[i], mine);
    bucket_listing_end(&l);
    return s;
}

static void forget_lock(struct place *place)
{
    pthread_mutex_lock(&own(place)->lock);
    own(place)->lock_name[0] = '\0';
    pthread_mutex_unlock(&own(place)->lock);
}

static void unlock(struct place *place, struct place_lock *held)
{
    const char *name = (const char *)(void *)held;
    forget_lock(place);
    status_ignore(call_object(place, "DELETE", name, bytes_of("")));
    free(held);
}

static status lock(struct place *place, struct place_lock **out)
{
    struct bucket_place *b = own(place);
    uint64_t random;
    char *name = calloc(1, LOCK_NAME_SIZE);
    *out = NULL;
    if (name == NULL || getrandom(&random, sizeof random, 0) != sizeof random) {
        free(name);
        return status_out_of_memory();
    }
    snprintf(name, LOCK_NAME_SIZE, LOCKS "/%016" PRIx64, random);
    status s = call_object(place, "PUT", name, bytes_of(""));
    if (status_is_ok(s))
        s = look_for_others(place, name);
    if (!status_is_ok(s)) {
        unlock(place, (struct place_lock *)(void *)name);
        return s;
    }
    pthread_mutex_lock(&b->lock);
    memcpy(b->lock_name, name, LOCK_NAME_SIZE);
    b->renewed_us = clock_steady_us(clock_system());
    pthread_mutex_unlock(&b->lock);
    *out = (struct place_lock *)(void *)name;
    return status_ok();
}

/* --- life --- */

static void close_place(struct place *place)
{
    struct bucket_place *b = own(place);
    bucket_close(b->bucket);
    pthread_mutex_destroy(&b->lock);
    free(b->prefix);
    free(b);
}

static const struct place_methods methods = {.make = make,
                                             .make_folder = nothing_to_do,
                                             .open = open_object,
                                             .create = create_object,
                                             .list = list,
                                             .remove = remove_object,
                                             .remove_folder = nothing_to_do,
                                             .sync_folder = nothing_to_do,
                                             .sweep = sweep,
                                             .lock = lock,
                                             .unlock = unlock,
                                             .close = close_place};

/* Bucket and prefix out of what stands behind the scheme; the slashes at its end are none of it. */
static status parse(const char *address, char **bucket, char **prefix)
{
    bytes rest = bytes_of(address + strlen(SCHEME));
    while (rest.size > 0 && rest.data[rest.size - 1] == '/')
        rest.size--;
    size_t size = 0;
    while (size < rest.size && rest.data[size] != '/')
        size++;
    *bucket = bytes_to_string(bytes_make(rest.data, size));
    *prefix = bytes_to_string(bytes_from(rest, size < rest.size ? size + 1 : size));
    if (*bucket == NULL || *prefix == NULL)
        return status_out_of_memory();
    bool is_sound = size > 0 && place_name_is_sound(*bucket) &&
                    ((*prefix)[0] == '\0' || place_name_is_sound(*prefix));
    return is_sound ? status_ok()
                    : status_make(STATUS_INVALID_ARGUMENT,
                                  "%s is no place: s3://BUCKET/PREFIX is expected", address);
}

static status end_with_slash(char **prefix)
{
    size_t size = strlen(*prefix);
    char *longer = size == 0 ? *prefix : realloc(*prefix, size + 2);
    if (longer == NULL)
        return status_out_of_memory();
    *prefix = longer;
    if (size > 0)
        memcpy(longer + size, "/", 2);
    return status_ok();
}

static status open_place(struct bucket_place *b, const char *address)
{
    char *name = NULL;
    status s = parse(address, &name, &b->prefix);
    if (status_is_ok(s))
        s = end_with_slash(&b->prefix);
    if (status_is_ok(s))
        s = bucket_open(name, &b->bucket);
    free(name);
    return s;
}

status place_of_bucket(struct files *files, const char *address, struct place **out)
{
    struct bucket_place *b = calloc(1, sizeof *b);
    char *title = strdup(address);
    *out = NULL;
    if (b == NULL || title == NULL) {
        free(b);
        free(title);
        return status_out_of_memory();
    }
    b->place = (struct place){.methods = &methods, .title = title, .files = files};
    pthread_mutex_init(&b->lock, NULL);
    status s = open_place(b, address);
    if (status_is_ok(s))
        *out = &b->place;
    else
        place_close(&b->place);
    return s;
}

status place_of_name(struct files *files, const char *name, struct place **out)
{
    *out = NULL;
    if (strncmp(name, SCHEME, strlen(SCHEME)) == 0)
        return place_of_bucket(files, name, out);
    if (strstr(name, "://") != NULL)
        return status_make(STATUS_UNIMPLEMENTED,
                           "%s: a place is a directory, or s3://BUCKET/PREFIX", name);
    return place_of_directory(files, name, out);
}

static status seal_with_file(const char *key_file, struct place *plain, struct place **out)
{
    struct place_key key;
    status s = place_key_read(key_file, &key);
    if (!status_is_ok(s)) {
        place_close(plain);
        return s;
    }
    s = place_seal(plain, &key, out);
    cipher_forget(&key, sizeof key);
    return s;
}

status place_of_name_with_key(struct files *files, const char *name, const char *key_file,
                              struct place **out)
{
    struct place *plain;
    *out = NULL;
    TRY(place_of_name(files, name, &plain));
    if (key_file != NULL)
        return seal_with_file(key_file, plain, out);
    *out = plain;
    return status_ok();
}
