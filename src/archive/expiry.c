/* See expiry.h. */
#include "archive/expiry.h"

#include "archive/restore.h"
#include "tablet/event.h"

struct expiring {
    const struct archive_expiry *expiry;
    bool has_files;
    struct buffer text; /* of a piece */
};

/* --- the files that a piece names --- */

static status note_file(void *context, const struct place_entry *entry)
{
    struct expiring *expiring = context;
    expiring->has_files = expiring->has_files || !entry->is_folder;
    return status_ok();
}

static status look_for_files(struct expiring *expiring)
{
    char folder[PIECE_NAME_SIZE];
    stream_files_folder(expiring->expiry->stream, folder);
    status s = place_list(expiring->expiry->place, folder, note_file, expiring);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

static status remove_files_of(void *context, const struct event_change *change)
{
    const struct archive_expiry *expiry = ((const struct expiring *)context)->expiry;
    char name[PIECE_NAME_SIZE];
    for (uint64_t i = 0; i < change->count; i++) {
        stream_file_name(expiry->stream, change->keyspace, i, name);
        TRY(place_remove(expiry->place, name));
    }
    return status_ok();
}

static status remove_files(struct expiring *expiring, const struct piece *name)
{
    struct piece piece;
    bytes entry;
    status s = archive_get_piece(expiring->expiry->place, name, &expiring->text, &piece);
    if (s.code == STATUS_DATA_LOSS) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    while (piece_next_entry(&piece.entries, &entry))
        TRY(event_visit_taken_in(entry, remove_files_of, expiring));
    return status_ok();
}

/* --- pieces --- */

static status remove_piece(struct expiring *expiring, const struct piece *piece)
{
    char name[PIECE_NAME_SIZE];
    if (expiring->has_files && piece->kind == PIECE_SEGMENT)
        TRY(remove_files(expiring, piece));
    piece_name(piece, name);
    return place_remove(expiring->expiry->place, name);
}

static status remove_pieces(struct expiring *expiring, const struct piece_list *list,
                            size_t *removed)
{
    const struct archive_expiry *expiry = expiring->expiry;
    char folder[PIECE_NAME_SIZE];
    for (size_t i = 0;
         i + 1 < list->count && *removed < expiry->most && list->pieces[i].last <= expiry->up_to;
         i++) {
        TRY(remove_piece(expiring, &list->pieces[i]));
        ++*removed;
    }
    if (*removed == 0)
        return status_ok();
    stream_folder(expiry->stream, folder);
    return place_sync_folder(expiry->place, folder);
}

status archive_expire(const struct archive_expiry *expiry, size_t *removed)
{
    struct expiring expiring = {.expiry = expiry};
    struct piece_list list;
    *removed = 0;
    TRY(archive_list_pieces(expiry->place, expiry->stream, &list));
    status s = look_for_files(&expiring);
    if (status_is_ok(s))
        s = remove_pieces(&expiring, &list, removed);
    buffer_free(&expiring.text);
    piece_list_free(&list);
    return s;
}
