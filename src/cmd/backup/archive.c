/* See archive.h. */
#include "cmd/backup/archive.h"

#include "archive/restore.h"
#include "aws/bucket.h"
#include "base/options.h"
#include "cluster/catalog.h"
#include "cmd/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void archive_tell_dates(uint64_t first, uint64_t second, date_text texts[2])
{
    const int64_t us[] = {sequence_time_us(first), sequence_time_us(second)};
    dates_tell(us, 2, texts);
}

/* --- where it is --- */

struct place_options {
    const char *backup_key;
    struct archive_reading reading;
};

enum { PLACE_ROWS = 3 };

/* The first alone where no pieces are read. */
static const struct option place_rows[] = {
    {.member = "backup_key",
     .kind = OPTION_STRING,
     .offset = offsetof(struct place_options, backup_key),
     .unit = "FILE",
     .sentence = ARCHIVE_KEY_SENTENCE},
    {.member = "rate",
     .kind = OPTION_SIZE,
     .offset = offsetof(struct place_options, reading.rate),
     .preset = "0",
     .most = INT64_MAX,
     .unit = "",
     .sentence = "Bytes that are read each second; 0: no bound."},
    {.member = "data_dir",
     .kind = OPTION_STRING,
     .offset = offsetof(struct place_options, reading.data_dir),
     .unit = "DIR",
     .sentence = "The data directory of the server, which is stopped: what it has put there is to "
                 "be there, up to the last piece, and from its oldest whole backup on."},
};

void archive_write_place_options(const char *command, bool is_reading, struct buffer *out)
{
    const struct option_table of_command = {
        .rows = place_rows, .count = is_reading ? PLACE_ROWS : 1, .command = command};
    options_write_help(&of_command, out);
}

status archive_open_place(const char *const *arguments, struct archive_reading *reading,
                          struct place **out)
{
    const struct option_table place_table = {.rows = place_rows,
                                             .count = reading != NULL ? PLACE_ROWS : 1};
    struct place_options options = {.backup_key = NULL};
    struct option_origin origins[PLACE_ROWS] = {{0}};
    struct option_values values = {.object = &options, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = NULL;
    TRY(command_need_words(arguments, 1, "the place comes first"));
    TRY(options_read(&place_table, arguments + 1, no_environment, &values));
    if (reading != NULL)
        *reading = options.reading;
    return place_of_name_with_key(files_of_system(), arguments[0], options.backup_key, out);
}

/* --- list --- */

struct listing {
    struct place *place;
    bool is_perfect;
    size_t streams;
};

static void print_gaps(const struct piece_list *list)
{
    date_text dates[2];
    for (size_t i = 0; i < list->count; i++) {
        if (list->pieces[i].kind != PIECE_GAP)
            continue;
        uint64_t before = i == 0 ? 0 : list->pieces[i - 1].last;
        archive_tell_dates(before, list->pieces[i].last, dates);
        printf("  gap: after %s (version %" PRIu64 "), up to %s (version %" PRIu64 ")\n", dates[0],
               before, dates[1], list->pieces[i].last);
    }
}

static void print_missing(struct listing *listing, const struct piece_list *list)
{
    char missing[PIECE_RANGE_SIZE];
    date_text dates[2];
    for (size_t i = 1; i < list->count; i++) {
        const struct piece *before = &list->pieces[i - 1], *piece = &list->pieces[i];
        if (piece->number == before->number + 1)
            continue;
        listing->is_perfect = false;
        archive_tell_dates(before->last, piece->last, dates);
        printf("  damaged: %s: after %s (version %" PRIu64 "), before %s (version %" PRIu64 ")\n",
               piece_missing(before->number, piece->number, missing), dates[0], before->last,
               dates[1], piece->last);
    }
}

static status print_pieces(struct listing *listing, uint64_t stream, const struct piece_list *list)
{
    date_text dates[2];
    struct buffer text = {0};
    struct piece first;
    status s = archive_get_piece(listing->place, &list->pieces[0], &text, &first);
    buffer_free(&text);
    TRY(s);
    uint64_t last = list->pieces[list->count - 1].last;
    archive_tell_dates(first.after, last, dates);
    printf("%016" PRIx64 ": %zu pieces, after %s (version %" PRIu64 "), up to %s (version %" PRIu64
           ")\n",
           stream, list->count, dates[0], first.after, dates[1], last);
    print_gaps(list);
    print_missing(listing, list);
    return status_ok();
}

static status print_stream(void *context, uint64_t stream)
{
    struct listing *listing = context;
    struct piece_list list;
    listing->streams++;
    TRY(archive_list_pieces(listing->place, stream, &list));
    status s = status_ok();
    if (list.count == 0)
        printf("%016" PRIx64 ": no pieces\n", stream);
    else
        s = print_pieces(listing, stream, &list);
    piece_list_free(&list);
    if (s.code == STATUS_DATA_LOSS) {
        printf("%016" PRIx64 ": damaged: %s\n", stream, status_message(s));
        listing->is_perfect = false;
        status_free(s);
        return status_ok();
    }
    return s;
}

static void write_list_help(struct buffer *out)
{
    archive_write_place_options("trestle archive list PLACE", false, out);
    buffer_append_format(
        out,
        "\nNames what has been archived in PLACE: a line for each server and time that it went on\n"
        "without a break, with the moments between which it can be restored, and a line for each\n"
        "gap. It reads the names of pieces, and the first one of each line: `trestle archive\n"
        "verify` reads all. Exits with 1 if a piece is missing, or the first is damaged.\n");
}

static int list_kind(const char *const *arguments)
{
    struct listing listing = {.is_perfect = true};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_list_help);
    status s = archive_open_place(arguments, NULL, &listing.place);
    if (!status_is_ok(s))
        return command_refuse("archive list", s);
    s = archive_list_streams(listing.place, print_stream, &listing);
    place_close(listing.place);
    if (status_is_ok(s))
        puts(listing.streams == 0 ? "nothing is archived there"
                                  : "read: names, and the first piece of each; "
                                    "`trestle archive verify` reads all");
    return command_end("archive list", s, listing.is_perfect);
}

/* --- one table --- */

struct search {
    const char *name;
    uint64_t table_id; /* 0: not found */
    uint64_t *keyspaces;
    size_t count;
};

static status look_at_table(void *context, const struct table_record *record)
{
    struct search *search = context;
    if (record->deleted_us == 0 && strcmp(record->name, search->name) == 0)
        search->table_id = record->id;
    return status_ok();
}

static status look_at_tablet(void *context, const struct tablet_record *record)
{
    struct search *search = context;
    if (record->table_id != search->table_id)
        return status_ok();
    uint64_t *more = realloc(search->keyspaces, (search->count + 1) * sizeof *more);
    if (more == NULL)
        return status_out_of_memory();
    search->keyspaces = more;
    more[search->count++] = record->keyspace_id;
    return status_ok();
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static status choose_table(void *context, struct keyspace *catalog, uint64_t **keyspaces,
                           size_t *count)
{
    struct search search = {.name = context};
    const struct catalog_visitor tables = {.context = &search, .table = look_at_table};
    const struct catalog_visitor tablets = {.context = &search, .tablet = look_at_tablet};
    status s = catalog_read(catalog, &tables);
    if (status_is_ok(s) && search.table_id == 0)
        s = status_make(STATUS_NOT_FOUND, "there is no table %s at that moment", search.name);
    if (status_is_ok(s))
        s = catalog_read(catalog, &tablets);
    if (!status_is_ok(s)) {
        free(search.keyspaces);
        return s;
    }
    qsort(search.keyspaces, search.count, sizeof *search.keyspaces, compare_ids);
    *keyspaces = search.keyspaces;
    *count = search.count;
    return status_ok();
}

static status take_on(const struct archive_taking *taking, struct archive_restore *restore,
                      const char *directory, struct archive_restored *out)
{
    struct buffer scratch = {0}, name = {0};
    buffer_append_format(&scratch, "%s/archive%c", directory, 0);
    restore->scratch = (const char *)scratch.data;
    if (taking->table != NULL) {
        buffer_append(&name, taking->table, strlen(taking->table) + 1);
        restore->choose = choose_table;
        restore->context = name.data;
    }
    status s =
        scratch.failed || name.failed ? status_out_of_memory() : archive_restore(restore, out);
    buffer_free(&scratch);
    buffer_free(&name);
    return s;
}

status archive_take_on(const struct archive_taking *taking, struct store *store,
                       const char *directory, struct archive_restored *out)
{
    struct archive_restore restore = {.store = store,
                                      .catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID),
                                      .place = taking->place,
                                      .what = taking->what,
                                      .clock = clock_system(),
                                      .log = taking->log,
                                      .until = taking->until,
                                      .from = taking->from,
                                      .next = taking->next};
    if (restore.catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    return take_on(taking, &restore, directory, out);
}

void archive_tell_restored(const char *directory, const struct archive_restored *restored)
{
    const int64_t us[] = {sequence_time_us(restored->from), sequence_time_us(restored->to),
                          sequence_time_us(restored->until)};
    date_text dates[3];
    dates_tell(us, 3, dates);
    printf("%s: from %s to %s (version %" PRIu64 "), %" PRIu64 " commits out of %" PRIu64
           " pieces; there is no later one %s%s\n",
           directory, dates[0], dates[1], restored->to, restored->events, restored->pieces,
           restored->is_all ? "in the archive" : "up to ", restored->is_all ? "" : dates[2]);
}

/* --- the command --- */

static const struct command_kind kinds[] = {
    {"list", list_kind, "say between which moments can be restored"},
    {"verify", archive_verify_kind, "read all of it, and say what is damaged"},
    {"replay", archive_replay_kind, "take the copy of a data directory on to a later moment"},
};

int archive_command(const char *const *arguments)
{
    static const struct command_kinds all = {.command = "archive",
                                             .arguments = "…",
                                             .question = "what?",
                                             .all = kinds,
                                             .count = sizeof kinds / sizeof *kinds};
    return command_run_kind(&all, arguments);
}
