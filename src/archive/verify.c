/* See verify.h. */
#include "archive/verify.h"

#include "archive/restore.h"
#include "tablet/event.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNK = 256 << 10, WORDS = 512 };

struct walk {
    const struct archive_verifying *verifying;
    struct archive_verified *out;
    struct buffer text;  /* of a piece */
    uint8_t *chunk;      /* of a file */
    struct piece before; /* the last that could be read; its number is 0 if there is none */
    struct piece first;  /* the same of the first */
    bool is_open;        /* what follows is a stretch of moments */
    uint64_t after;
    uint64_t last;
};

/* --- what is told --- */

static void note_damage(struct walk *walk, const char *what)
{
    walk->out->damages++;
    walk->verifying->damage(walk->verifying->context, what);
}

static void note_damaged_object(struct walk *walk, const char *name, const char *wrong)
{
    char what[WORDS];
    snprintf(what, sizeof what, "%s/%s %s", place_title(walk->verifying->place), name, wrong);
    note_damage(walk, what);
}

static void end_stretch(struct walk *walk)
{
    if (walk->is_open)
        walk->verifying->moments(walk->verifying->context, walk->after, walk->last);
    walk->is_open = false;
}

static void extend_stretch(struct walk *walk, const struct piece *piece)
{
    if (!walk->is_open)
        walk->after = piece->after;
    walk->is_open = true;
    walk->last = piece->last;
}

static status pace(const struct walk *walk, uint64_t bytes)
{
    const struct store_pacer *pacer = walk->verifying->pacer;
    return pacer == NULL || pacer->go_on(pacer->context, bytes)
               ? status_ok()
               : status_make(STATUS_CANCELLED, "cancelled");
}

/* --- the files that a piece names --- */

static status sum_content(struct walk *walk, struct place_reader *reader, struct running_sum *sum)
{
    size_t got;
    do {
        TRY(place_reader_next(reader, walk->chunk, CHUNK, &got));
        running_sum_add(sum, bytes_make(walk->chunk, got));
        TRY(pace(walk, got));
    } while (got > 0);
    return status_ok();
}

/* NOT_FOUND. */
static status sum_object(struct walk *walk, const char *name, struct file_sum *out)
{
    struct place_reader *reader;
    struct running_sum *sum;
    TRY(place_open(walk->verifying->place, name, &reader));
    status s = running_sum_create(&sum);
    if (status_is_ok(s)) {
        s = sum_content(walk, reader, sum);
        running_sum_finish(sum, out);
    }
    place_reader_close(reader);
    return s;
}

static status verify_file(struct walk *walk, const struct event_change *change, uint64_t index,
                          const struct event_file *expected)
{
    char name[PIECE_NAME_SIZE];
    struct file_sum sum;
    stream_file_name(walk->verifying->stream, change->keyspace, index, name);
    status s = sum_object(walk, name, &sum);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        note_damaged_object(walk, name, "is missing");
        return status_ok();
    }
    TRY(s);
    walk->out->files++;
    walk->out->bytes += sum.size;
    if (sum.size != expected->size || sum.crc32c != expected->crc32c)
        note_damaged_object(walk, name, "is damaged");
    return status_ok();
}

static status verify_files(void *context, const struct event_change *change)
{
    struct walk *walk = context;
    struct event_file *expected = calloc(change->count + 1, sizeof *expected);
    status s = expected == NULL ? status_out_of_memory() : status_ok();
    if (expected != NULL)
        event_files(change, expected);
    for (uint64_t i = 0; i < change->count && status_is_ok(s); i++)
        s = verify_file(walk, change, i, &expected[i]);
    free(expected);
    return s;
}

/* --- pieces --- */

/* Only a piece that follows one which could not be read is taken as it is. */
static void check_chain(struct walk *walk, const struct piece *piece)
{
    char name[PIECE_NAME_SIZE];
    const struct piece *before = &walk->before;
    if (before->number == 0 || before->number + 1 != piece->number)
        return;
    if (piece->after == before->last &&
        memcmp(piece->chain, before->digest, sizeof piece->chain) == 0)
        return;
    piece_name(piece, name);
    note_damaged_object(walk, name, "does not follow the piece before it");
    end_stretch(walk);
}

static status verify_content(struct walk *walk, const struct piece *piece)
{
    bytes entries = piece->entries, entry;
    size_t damages = walk->out->damages;
    while (piece_next_entry(&entries, &entry))
        TRY(event_visit_taken_in(entry, verify_files, walk));
    if (piece->kind == PIECE_GAP || walk->out->damages > damages)
        end_stretch(walk);
    else
        extend_stretch(walk, piece);
    return status_ok();
}

static void check_last(struct walk *walk, const struct piece *piece)
{
    char name[PIECE_NAME_SIZE];
    const struct archive_known *known = walk->verifying->known;
    if (known == NULL || piece->number != known->pieces ||
        memcmp(piece->digest, known->digest, sizeof known->digest) == 0)
        return;
    piece_name(piece, name);
    note_damaged_object(walk, name, "is not the piece that the server has put there");
    end_stretch(walk);
}

static status verify_piece(struct walk *walk, const struct piece *name)
{
    struct piece piece;
    status s = archive_get_piece(walk->verifying->place, name, &walk->text, &piece);
    if (s.code == STATUS_DATA_LOSS || s.code == STATUS_NOT_FOUND) {
        note_damage(walk, status_message(s));
        status_free(s);
        end_stretch(walk);
        return status_ok();
    }
    TRY(s);
    walk->out->pieces++;
    walk->out->bytes += walk->text.size;
    TRY(pace(walk, walk->text.size));
    check_chain(walk, &piece);
    if (walk->first.number == 0)
        walk->first = piece;
    walk->before = piece;
    check_last(walk, &piece);
    return verify_content(walk, &piece);
}

static void check_number(struct walk *walk, uint64_t before, uint64_t number)
{
    char missing[PIECE_RANGE_SIZE], what[WORDS];
    if (number == before + 1)
        return;
    snprintf(what, sizeof what, "of %016llx: %s", (unsigned long long)walk->verifying->stream,
             piece_missing(before, number, missing));
    note_damage(walk, what);
    end_stretch(walk);
}

/* Pieces are removed when they are old, but none that a backup of the server's needs. */
static void check_first(struct walk *walk)
{
    char what[WORDS];
    const struct archive_known *known = walk->verifying->known;
    if (known->oldest_base == 0 || walk->first.number == 0 ||
        walk->first.after <= known->oldest_base)
        return;
    snprintf(what, sizeof what,
             "of %016llx: pieces before %llu are missing, which the whole backup of version %llu "
             "needs",
             (unsigned long long)walk->verifying->stream, (unsigned long long)walk->first.number,
             (unsigned long long)known->oldest_base);
    note_damage(walk, what);
}

/* One piece more than the server knows of may be there: it was killed before it had noted that. */
static void check_ends(struct walk *walk, const struct piece_list *list)
{
    const struct archive_known *known = walk->verifying->known;
    uint64_t last = list->count == 0 ? 0 : list->pieces[list->count - 1].number;
    if (known == NULL)
        return;
    check_first(walk);
    if (last < known->pieces)
        check_number(walk, last, known->pieces + 1);
}

static status verify_list(struct walk *walk, const struct piece_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            check_number(walk, list->pieces[i - 1].number, list->pieces[i].number);
        TRY(verify_piece(walk, &list->pieces[i]));
    }
    end_stretch(walk);
    check_ends(walk, list);
    return status_ok();
}

status archive_verify(const struct archive_verifying *verifying, struct archive_verified *out)
{
    struct walk walk = {.verifying = verifying, .out = out};
    struct piece_list list;
    *out = (struct archive_verified){0};
    TRY(archive_list_pieces(verifying->place, verifying->stream, &list));
    walk.chunk = malloc(CHUNK);
    status s = walk.chunk == NULL ? status_out_of_memory() : verify_list(&walk, &list);
    free(walk.chunk);
    buffer_free(&walk.text);
    piece_list_free(&list);
    return s;
}
