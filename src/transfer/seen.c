/* See seen.h. The fingerprints are in a table with open addressing, at most three quarters full. */
#include "transfer/seen.h"

#include "base/siphash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    FIRST_SLOTS = 1 << 12,
    SLOTS_MOST = 1 << 24,
    SHOWN_MOST = 100, /* bytes of a row key */
};

struct seen {
    enum transfer_unique unique;
    char *path;                /* NULL: none */
    struct fingerprint *slots; /* 0: free */
    uint64_t *tags;            /* of versions, by slot; else NULL */
    size_t slot_count;
    size_t count;
    struct buffer fresh; /* those that the file does not have yet */
    uint64_t saved_bytes;
};

static bool has_tags(const struct seen *seen)
{
    return seen->unique == UNIQUE_VERSIONS || seen->unique == UNIQUE_LAST;
}

status seen_create(enum transfer_unique unique, const char *path, struct seen **out)
{
    struct seen *seen = *out = calloc(1, sizeof *seen);
    if (seen == NULL)
        return status_out_of_memory();
    seen->unique = unique;
    seen->path = path == NULL ? NULL : strdup(path);
    seen->slots = calloc(FIRST_SLOTS, sizeof *seen->slots);
    seen->tags = has_tags(seen) ? calloc(FIRST_SLOTS, sizeof *seen->tags) : NULL;
    seen->slot_count = FIRST_SLOTS;
    bool is_whole = seen->slots != NULL && (path == NULL || seen->path != NULL) &&
                    (seen->tags != NULL || !has_tags(seen));
    if (is_whole)
        return status_ok();
    seen_destroy(seen);
    *out = NULL;
    return status_out_of_memory();
}

void seen_destroy(struct seen *seen)
{
    if (seen == NULL)
        return;
    buffer_free(&seen->fresh);
    free(seen->slots);
    free(seen->tags);
    free(seen->path);
    free(seen);
}

/* --- the table --- */

static bool is_free(const struct fingerprint *slot)
{
    return fingerprint_equal(*slot, (struct fingerprint){0});
}

/* Where the fingerprint is, or would be. */
static struct fingerprint *find_slot(struct fingerprint *slots, size_t slot_count,
                                     struct fingerprint print)
{
    size_t at = print.words[0] & (slot_count - 1);
    while (!is_free(&slots[at]) && !fingerprint_equal(slots[at], print))
        at = (at + 1) & (slot_count - 1);
    return &slots[at];
}

static void move_slots(const struct seen *seen, struct fingerprint *slots, uint64_t *tags,
                       size_t slot_count)
{
    for (size_t i = 0; i < seen->slot_count; i++) {
        if (is_free(&seen->slots[i]))
            continue;
        struct fingerprint *slot = find_slot(slots, slot_count, seen->slots[i]);
        *slot = seen->slots[i];
        if (tags != NULL)
            tags[slot - slots] = seen->tags[i];
    }
}

static status grow(struct seen *seen)
{
    size_t slot_count = 2 * seen->slot_count;
    struct fingerprint *slots = calloc(slot_count, sizeof *slots);
    uint64_t *tags = seen->tags == NULL ? NULL : calloc(slot_count, sizeof *tags);
    if (slots == NULL || (tags == NULL && seen->tags != NULL)) {
        free(slots);
        free(tags);
        return status_out_of_memory();
    }
    move_slots(seen, slots, tags, slot_count);
    free(seen->slots);
    free(seen->tags);
    seen->slots = slots;
    seen->tags = tags;
    seen->slot_count = slot_count;
    return status_ok();
}

static bool is_crowded(const struct seen *seen)
{
    return seen->count >= seen->slot_count / 4 * 3;
}

bool seen_is_full(const struct seen *seen)
{
    return is_crowded(seen) && seen->slot_count == SLOTS_MOST;
}

static status make_room(struct seen *seen)
{
    return is_crowded(seen) && !seen_is_full(seen) ? grow(seen) : status_ok();
}

static bool has(const struct seen *seen, struct fingerprint print)
{
    return !is_free(find_slot(seen->slots, seen->slot_count, print));
}

/* For the file. */
static status note(struct seen *seen, struct fingerprint print, uint64_t tag)
{
    if (seen->path == NULL)
        return status_ok();
    buffer_append(&seen->fresh, &print, sizeof print);
    if (has_tags(seen))
        buffer_append(&seen->fresh, &tag, sizeof tag);
    return seen->fresh.failed ? status_out_of_memory() : status_ok();
}

/* `*tag`: of the record; then, if it was there (`*is_new` is false), of the one that it is the
 * second of. */
static status keep_tagged(struct seen *seen, struct fingerprint print, uint64_t *tag, bool *is_new)
{
    TRY(make_room(seen));
    struct fingerprint *slot = find_slot(seen->slots, seen->slot_count, print);
    uint64_t *kept = seen->tags == NULL ? NULL : &seen->tags[slot - seen->slots];
    uint64_t own = *tag;
    *is_new = is_free(slot);
    if (!*is_new && kept != NULL)
        *tag = *kept;
    bool is_kept = *is_new ? !seen_is_full(seen) : seen->unique == UNIQUE_LAST;
    if (!is_kept)
        return status_ok();
    *slot = print;
    if (kept != NULL)
        *kept = own;
    seen->count += *is_new;
    return note(seen, print, own);
}

static status keep(struct seen *seen, struct fingerprint print, bool *is_new)
{
    uint64_t tag = 0;
    return keep_tagged(seen, print, &tag, is_new);
}

/* --- records --- */

static struct fingerprint finish(struct siphash *hash)
{
    struct fingerprint print = siphash_finish(hash);
    if (is_free(&print))
        print.words[0] = 1;
    return print;
}

/* Behind its size, so that no two lists of parts are the same bytes. */
static void add_part(struct siphash *hash, bytes part)
{
    uint64_t size = part.size;
    siphash_add(hash, bytes_make(&size, sizeof size));
    siphash_add(hash, part);
}

static struct siphash row_hash(bytes row_key)
{
    struct siphash hash;
    siphash_start(&hash);
    add_part(&hash, row_key);
    return hash;
}

/* `hash`: a copy of the row's, which goes on. */
static struct fingerprint cell_print(struct siphash hash, const struct move_cell *cell)
{
    add_part(&hash, bytes_of(cell->family));
    add_part(&hash, cell->qualifier);
    siphash_add(&hash, bytes_make(&cell->timestamp_us, sizeof cell->timestamp_us));
    return finish(&hash);
}

static int shown(bytes b)
{
    return b.size < SHOWN_MOST ? (int)b.size : SHOWN_MOST;
}

static struct fingerprint row_print(bytes row_key)
{
    struct siphash hash = row_hash(row_key);
    return finish(&hash);
}

status seen_note_row(struct seen *seen, bytes row_key)
{
    bool is_new;
    return keep(seen, row_print(row_key), &is_new);
}

bool seen_has_row(const struct seen *seen, bytes row_key)
{
    return has(seen, row_print(row_key));
}

static status refuse_row(bytes row_key)
{
    return status_make(STATUS_ALREADY_EXISTS, "one before it has the row key %.*s", shown(row_key),
                       (const char *)row_key.data);
}

static status add_row(struct seen *seen, bytes row_key)
{
    bool is_new;
    TRY(keep(seen, row_print(row_key), &is_new));
    return is_new ? status_ok() : refuse_row(row_key);
}

static status refuse_cell(const struct move_change *change, const struct move_cell *cell,
                          const char *who)
{
    return status_make(STATUS_ALREADY_EXISTS, "%s the cell %s:%.*s of the row %.*s at %lld", who,
                       cell->family, shown(cell->qualifier), (const char *)cell->qualifier.data,
                       shown(change->row_key), (const char *)change->row_key.data,
                       (long long)cell->timestamp_us);
}

/* None is kept of a record of which one is there. */
static status add_cells(struct seen *seen, const struct move_change *change)
{
    const struct siphash row = row_hash(change->row_key);
    bool is_new;
    for (size_t i = 0; i < change->count; i++)
        if (has(seen, cell_print(row, &change->cells[i])))
            return refuse_cell(change, &change->cells[i], "one before it has");
    for (size_t i = 0; i < change->count; i++) {
        TRY(keep(seen, cell_print(row, &change->cells[i]), &is_new));
        if (!is_new)
            return refuse_cell(change, &change->cells[i], "it has twice");
    }
    return status_ok();
}

static struct fingerprint version_print(const struct move_change *change)
{
    struct siphash hash = row_hash(change->row_key);
    int64_t timestamp_us = change->count == 0 ? 0 : change->cells[0].timestamp_us;
    siphash_add(&hash, bytes_make(&timestamp_us, sizeof timestamp_us));
    return finish(&hash);
}

static status add_version(struct seen *seen, const struct move_change *change, uint64_t tag,
                          uint64_t *first)
{
    bool is_new;
    *first = tag;
    TRY(keep_tagged(seen, version_print(change), first, &is_new));
    return is_new || seen->unique == UNIQUE_LAST ? status_ok() : refuse_row(change->row_key);
}

status seen_add(struct seen *seen, const struct move_change *change, uint64_t tag, uint64_t *first)
{
    switch (seen->unique) {
    case UNIQUE_ROWS:
        return add_row(seen, change->row_key);
    case UNIQUE_CELLS:
        return add_cells(seen, change);
    case UNIQUE_VERSIONS:
    case UNIQUE_LAST:
        return add_version(seen, change, tag, first);
    case UNIQUE_NOTHING:
        break;
    }
    return status_ok();
}

bool seen_is_outdone(const struct seen *seen, const struct move_change *change, uint64_t tag)
{
    const struct fingerprint *slot =
        find_slot(seen->slots, seen->slot_count, version_print(change));
    return seen->unique == UNIQUE_LAST && !is_free(slot) && seen->tags[slot - seen->slots] > tag;
}

/* --- the file --- */

static status cannot(const struct seen *seen, const char *what)
{
    return status_from_errno(errno, "cannot %s %s", what, seen->path);
}

static status write_fresh(const struct seen *seen, int fd)
{
    for (size_t done = 0; done < seen->fresh.size;) {
        ssize_t count = write(fd, seen->fresh.data + done, seen->fresh.size - done);
        if (count < 0)
            return cannot(seen, "write");
        done += (size_t)count;
    }
    return fsync(fd) == 0 ? status_ok() : cannot(seen, "sync");
}

status seen_save(struct seen *seen, uint64_t *bytes)
{
    *bytes = seen->saved_bytes;
    if (seen->path == NULL || seen->fresh.size == 0)
        return status_ok();
    int flags = seen->saved_bytes == 0 ? O_TRUNC : O_APPEND;
    int fd = open(seen->path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    if (fd < 0)
        return cannot(seen, "write");
    status s = write_fresh(seen, fd);
    close(fd);
    TRY(s);
    *bytes = seen->saved_bytes += seen->fresh.size;
    buffer_clear(&seen->fresh);
    return status_ok();
}

static size_t entry_size(const struct seen *seen)
{
    return sizeof(struct fingerprint) + (has_tags(seen) ? sizeof(uint64_t) : 0);
}

static bool read_entry(const struct seen *seen, FILE *file, struct fingerprint *print,
                       uint64_t *tag)
{
    *tag = 0;
    return fread(print, sizeof *print, 1, file) == 1 && !is_free(print) &&
           (!has_tags(seen) || fread(tag, sizeof *tag, 1, file) == 1);
}

static status read_prints(struct seen *seen, FILE *file, uint64_t count)
{
    struct fingerprint print;
    uint64_t tag;
    bool is_new;
    for (uint64_t i = 0; i < count; i++) {
        if (!read_entry(seen, file, &print, &tag))
            return status_make(STATUS_DATA_LOSS,
                               "%s is shorter than the checkpoint says; without both all begins "
                               "anew",
                               seen->path);
        TRY(keep_tagged(seen, print, &tag, &is_new));
    }
    return status_ok();
}

status seen_restore(struct seen *seen, uint64_t bytes)
{
    if (seen->path == NULL || bytes == 0)
        return status_ok();
    FILE *file = fopen(seen->path, "r+e");
    if (file == NULL)
        return cannot(seen, "read");
    status s = read_prints(seen, file, bytes / entry_size(seen));
    if (status_is_ok(s) && ftruncate(fileno(file), (off_t)bytes) != 0)
        s = cannot(seen, "write");
    fclose(file);
    buffer_clear(&seen->fresh);
    seen->saved_bytes = bytes;
    return s;
}

void seen_remove_file(const struct seen *seen)
{
    if (seen->path != NULL)
        unlink(seen->path);
}
