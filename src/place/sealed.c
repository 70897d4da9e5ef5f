/* See sealed.h. */
#include "place/sealed.h"

#include <stdlib.h>

static const char MAGIC[] = "trestle sealed 1\n";
static const char PREFIX[] = "trestle sealed ";

enum {
    MAGIC_SIZE = sizeof MAGIC - 1,
    HEAD_SIZE = MAGIC_SIZE + PLACE_KEY_ID_BYTES + PLACE_SALT_BYTES,
    CHUNK = 64 << 10, /* bytes before they are sealed; of the last one as many as are left */
    SEALED_CHUNK = CHUNK + CIPHER_TAG_BYTES,
    NUMBER_AT = 3, /* in a nonce */
};

struct sealed_place {
    struct place place;
    struct place *inner;
    struct place_key key;
};

static struct sealed_place *own(struct place *place)
{
    return (struct sealed_place *)place;
}

static bool is_sealed(bytes beginning)
{
    return bytes_start_with(beginning, bytes_of(PREFIX));
}

status place_check_plain(const struct place *place, const char *name, bytes beginning)
{
    return is_sealed(beginning)
               ? status_make(STATUS_PERMISSION_DENIED,
                             "%s/%s is encrypted: --backup-key names the file of the key",
                             place_title(place), name)
               : status_ok();
}

/* --- what reader and writer have in common --- */

struct stream {
    uint8_t key[CIPHER_KEY_BYTES];
    uint64_t number; /* of the next chunk */
    char *name;      /* of the object; owned */
};

/* Where the next chunk is. */
static struct cipher_place next_chunk(struct stream *stream, bool is_last,
                                      uint8_t nonce[CIPHER_NONCE_BYTES])
{
    memset(nonce, 0, CIPHER_NONCE_BYTES);
    for (unsigned i = 0; i < 8; i++)
        nonce[NUMBER_AT + i] = (uint8_t)(stream->number >> (56 - 8 * i));
    nonce[CIPHER_NONCE_BYTES - 1] = is_last;
    stream->number++;
    return (struct cipher_place){
        .key = stream->key, .nonce = nonce, .associated = bytes_of(stream->name)};
}

static void stream_free(struct stream *stream)
{
    cipher_forget(stream->key, sizeof stream->key);
    free(stream->name);
}

/* --- writing --- */

struct sealed_writer {
    struct place_writer writer;
    struct place_writer *inner;
    struct stream stream;
    size_t size; /* of what waits in `plain` */
    uint8_t plain[CHUNK];
    uint8_t sealed[SEALED_CHUNK];
};

static status put_chunk(struct sealed_writer *w, bool is_last)
{
    uint8_t nonce[CIPHER_NONCE_BYTES];
    const struct cipher_place place = next_chunk(&w->stream, is_last, nonce);
    TRY(cipher_seal(&place, bytes_make(w->plain, w->size), w->sealed));
    bytes sealed = bytes_make(w->sealed, w->size + CIPHER_TAG_BYTES);
    w->size = 0;
    return place_writer_append(w->inner, sealed);
}

/* A chunk that is full waits until it is known whether another one follows. */
static status append(struct place_writer *writer, bytes piece)
{
    struct sealed_writer *w = (struct sealed_writer *)writer;
    while (piece.size > 0) {
        if (w->size == CHUNK)
            TRY(put_chunk(w, false));
        size_t fits = CHUNK - w->size < piece.size ? CHUNK - w->size : piece.size;
        memcpy(w->plain + w->size, piece.data, fits);
        w->size += fits;
        piece = bytes_from(piece, fits);
    }
    return status_ok();
}

static status finish(struct place_writer *writer)
{
    struct sealed_writer *w = (struct sealed_writer *)writer;
    TRY(put_chunk(w, true));
    return place_writer_finish(w->inner);
}

static void close_writer(struct place_writer *writer)
{
    struct sealed_writer *w = (struct sealed_writer *)writer;
    place_writer_close(w->inner);
    stream_free(&w->stream);
    cipher_forget(w->plain, sizeof w->plain);
    free(w);
}

static status begin_object(struct sealed_place *place, const char *name, struct sealed_writer *w)
{
    uint8_t head[HEAD_SIZE], *salt = head + HEAD_SIZE - PLACE_SALT_BYTES;
    w->stream.name = strdup(name);
    if (w->stream.name == NULL)
        return status_out_of_memory();
    memcpy(head, MAGIC, MAGIC_SIZE);
    memcpy(head + MAGIC_SIZE, place->key.id, PLACE_KEY_ID_BYTES);
    TRY(cipher_random(salt, PLACE_SALT_BYTES));
    TRY(place_key_of_object(&place->key, salt, w->stream.key));
    TRY(place_create(place->inner, name, &w->inner));
    return place_writer_append(w->inner, bytes_make(head, sizeof head));
}

static status create_object(struct place *place, const char *name, struct place_writer **out)
{
    struct sealed_writer *w = malloc(sizeof *w);
    if (w == NULL)
        return status_out_of_memory();
    w->writer = (struct place_writer){.append = append, .finish = finish, .close = close_writer};
    w->inner = NULL;
    w->stream = (struct stream){.number = 0};
    w->size = 0;
    status s = begin_object(own(place), name, w);
    if (status_is_ok(s))
        *out = &w->writer;
    else
        close_writer(&w->writer);
    return s;
}

/* --- reading --- */

struct sealed_reader {
    struct place_reader reader;
    struct place_reader *inner;
    struct stream stream;
    bool has_ended;   /* the last chunk was opened */
    size_t next_size; /* of the chunk that is opened next, sealed, in `next` */
    uint8_t next[SEALED_CHUNK];
    size_t at, size; /* what is left of `plain` */
    uint8_t sealed[SEALED_CHUNK];
    uint8_t plain[CHUNK];
};

/* As many as there are, up to the size. */
static status fill(struct place_reader *inner, uint8_t *to, size_t size, size_t *out)
{
    size_t got;
    for (*out = 0; *out < size; *out += got) {
        TRY(place_reader_next(inner, to + *out, size - *out, &got));
        if (got == 0)
            break;
    }
    return status_ok();
}

/* Opens the next chunk: the last one if nothing follows. */
static status open_next(struct sealed_reader *r)
{
    uint8_t nonce[CIPHER_NONCE_BYTES];
    size_t sealed_size = r->next_size;
    memcpy(r->sealed, r->next, sealed_size);
    TRY(fill(r->inner, r->next, sizeof r->next, &r->next_size));
    bool is_last = r->next_size == 0;
    const struct cipher_place place = next_chunk(&r->stream, is_last, nonce);
    status s = cipher_open(&place, bytes_make(r->sealed, sealed_size), r->plain);
    if (s.code == STATUS_DATA_LOSS) {
        status_free(s);
        return status_make(STATUS_DATA_LOSS, "it is damaged, cut off, or another object");
    }
    TRY(s);
    r->at = 0;
    r->size = sealed_size - CIPHER_TAG_BYTES;
    r->has_ended = is_last;
    return status_ok();
}

static status next(struct place_reader *reader, uint8_t *to, size_t size, size_t *got)
{
    struct sealed_reader *r = (struct sealed_reader *)reader;
    *got = 0;
    if (r->size == 0 && !r->has_ended)
        TRY(open_next(r));
    size_t some = size < r->size ? size : r->size;
    memcpy(to, r->plain + r->at, some);
    r->at += some;
    r->size -= some;
    *got = some;
    return status_ok();
}

static void close_reader(struct place_reader *reader)
{
    struct sealed_reader *r = (struct sealed_reader *)reader;
    place_reader_close(r->inner);
    stream_free(&r->stream);
    cipher_forget(r->plain, sizeof r->plain);
    free(r);
}

static status check_head(const struct sealed_place *place, const char *name, bytes head)
{
    const char *title = place_title(place->inner);
    if (!is_sealed(head))
        return status_make(STATUS_PERMISSION_DENIED,
                           "%s/%s is not encrypted, and --backup-key was given", title, name);
    if (!bytes_start_with(head, bytes_of(MAGIC)))
        return status_make(STATUS_FAILED_PRECONDITION, "a later release has encrypted it");
    if (head.size < HEAD_SIZE)
        return status_make(STATUS_DATA_LOSS, "it is cut off");
    if (memcmp(head.data + MAGIC_SIZE, place->key.id, PLACE_KEY_ID_BYTES) != 0)
        return status_make(STATUS_PERMISSION_DENIED,
                           "%s/%s is encrypted with another key than that of --backup-key", title,
                           name);
    return status_ok();
}

static status open_head(struct sealed_place *place, const char *name, struct sealed_reader *r)
{
    uint8_t head[HEAD_SIZE];
    size_t size;
    r->stream.name = strdup(name);
    if (r->stream.name == NULL)
        return status_out_of_memory();
    TRY(place_open(place->inner, name, &r->inner));
    TRY(fill(r->inner, head, sizeof head, &size));
    TRY(check_head(place, name, bytes_make(head, size)));
    TRY(place_key_of_object(&place->key, head + HEAD_SIZE - PLACE_SALT_BYTES, r->stream.key));
    return fill(r->inner, r->next, sizeof r->next, &r->next_size);
}

static status open_object(struct place *place, const char *name, struct place_reader **out)
{
    struct sealed_reader *r = malloc(sizeof *r);
    if (r == NULL)
        return status_out_of_memory();
    r->reader = (struct place_reader){.next = next, .close = close_reader};
    r->inner = NULL;
    r->stream = (struct stream){.number = 0};
    r->has_ended = false;
    r->at = r->size = r->next_size = 0;
    status s = open_head(own(place), name, r);
    if (status_is_ok(s))
        *out = &r->reader;
    else
        close_reader(&r->reader);
    return s;
}

/* --- all else is the place's own --- */

static status make(struct place *place)
{
    return place_make(own(place)->inner);
}

static status make_folder(struct place *place, const char *folder)
{
    return place_make_folder(own(place)->inner, folder);
}

struct listing {
    status (*visit)(void *context, const struct place_entry *entry);
    void *context;
};

/* The size before it was sealed. */
static uint64_t plain_size(uint64_t size)
{
    if (size < HEAD_SIZE + CIPHER_TAG_BYTES)
        return 0;
    uint64_t chunks = (size - HEAD_SIZE + SEALED_CHUNK - 1) / SEALED_CHUNK;
    return size - HEAD_SIZE - chunks * CIPHER_TAG_BYTES;
}

static status visit_entry(void *context, const struct place_entry *entry)
{
    const struct listing *listing = context;
    struct place_entry plain = *entry;
    if (!plain.is_folder)
        plain.size = plain_size(entry->size);
    return listing->visit(listing->context, &plain);
}

static status list(struct place *place, const char *folder,
                   status (*visit)(void *context, const struct place_entry *entry), void *context)
{
    struct listing listing = {.visit = visit, .context = context};
    return place_list(own(place)->inner, folder, visit_entry, &listing);
}

static status remove_object(struct place *place, const char *name)
{
    return place_remove(own(place)->inner, name);
}

static status remove_folder(struct place *place, const char *folder)
{
    return place_remove_folder(own(place)->inner, folder);
}

static status sync_folder(struct place *place, const char *folder)
{
    return place_sync_folder(own(place)->inner, folder);
}

static status sweep(struct place *place, const char *folder)
{
    return place_sweep(own(place)->inner, folder);
}

static status lock(struct place *place, struct place_lock **out)
{
    return place_lock(own(place)->inner, out);
}

static void unlock(struct place *place, struct place_lock *held)
{
    place_unlock(own(place)->inner, held);
}

static status hide(struct place *place, const uint8_t digest[32], uint8_t out[32])
{
    return place_key_hide(&own(place)->key, digest, out);
}

static void close_place(struct place *place)
{
    struct sealed_place *sealed = own(place);
    place_close(sealed->inner);
    cipher_forget(&sealed->key, sizeof sealed->key);
    free(sealed);
}

static const struct place_methods methods = {
    .make = make,
    .make_folder = make_folder,
    .open = open_object,
    .create = create_object,
    .list = list,
    .remove = remove_object,
    .remove_folder = remove_folder,
    .sync_folder = sync_folder,
    .sweep = sweep,
    .lock = lock,
    .unlock = unlock,
    .hide = hide,
    .close = close_place,
};

status place_seal(struct place *inner, const struct place_key *key, struct place **out)
{
    struct sealed_place *sealed = calloc(1, sizeof *sealed);
    char *title = strdup(place_title(inner));
    *out = NULL;
    if (sealed == NULL || title == NULL) {
        free(sealed);
        free(title);
        place_close(inner);
        return status_out_of_memory();
    }
    *sealed =
        (struct sealed_place){.place = {.methods = &methods, .title = title, .files = inner->files},
                              .inner = inner,
                              .key = *key};
    *out = &sealed->place;
    return status_ok();
}
